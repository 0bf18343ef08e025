"""Latent space policy optimisation for games of speech."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.trainers.lspo.latent import LatentSpace, latent_space
    from turngym.trainers.lspo.loop import LspoIteration, LspoSettings, lspo, speech_policy
    from turngym.trainers.lspo.preferences import soft_preference_loss
    from turngym.trainers.lspo.speech import LanguageSpeech, SpeechModel
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.trainers.lspo.latent": ("LatentSpace", "latent_space"),
            "turngym.trainers.lspo.loop": ("LspoIteration", "LspoSettings", "lspo", "speech_policy"),
            "turngym.trainers.lspo.preferences": ("soft_preference_loss",),
            "turngym.trainers.lspo.speech": ("LanguageSpeech", "SpeechModel"),
        },
    )

__all__ = [
    "LanguageSpeech",
    "LatentSpace",
    "LspoIteration",
    "LspoSettings",
    "SpeechModel",
    "latent_space",
    "lspo",
    "soft_preference_loss",
    "speech_policy",
]
