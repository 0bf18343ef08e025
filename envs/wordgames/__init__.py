"""Games of words between seats: the hidden word of Undercover, and the clues of Codenames.

``words`` holds our own list of words with what each has to do with; ``undercover`` and ``codenames`` are the games.
"""

from __future__ import annotations

from turngym.envs.registration import Spec

_UNDERCOVER = "turngym.envs.wordgames.undercover:Undercover"
SPECS = {
    "turngym/Undercover-v0": Spec(_UNDERCOVER, {}, "Describe a secret word, and find who of five has another one."),
    "turngym/UndercoverSmall-v0": Spec(
        _UNDERCOVER, {"num_seats": 3, "talk": False}, "Describe a secret word among three, and vote without discussion."
    ),
}
