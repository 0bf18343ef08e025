"""Language models: loading, sampling with a record of every token, vLLM."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.agents.models.agent import ModelAgent
    from turngym.agents.models.loading import LanguageModel, Vocabulary, load_model
    from turngym.agents.sampling import Sampling
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.agents.models.agent": ("ModelAgent",),
            "turngym.agents.models.loading": ("LanguageModel", "Vocabulary", "load_model"),
            "turngym.agents.sampling": ("Sampling",),
        },
    )

__all__ = ["LanguageModel", "ModelAgent", "Sampling", "Vocabulary", "load_model"]
