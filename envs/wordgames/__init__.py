"""Games of words between seats: the hidden word of Undercover, and the clues of Codenames.

``words`` holds our own list of words with what each has to do with; ``undercover`` and ``codenames`` are the games.
"""

from __future__ import annotations

from turngym.envs.registration import Spec

_UNDERCOVER = "turngym.envs.wordgames.undercover:Undercover"
_CODENAMES = "turngym.envs.wordgames.codenames:Codenames"

SPECS = {
    "turngym/Undercover-v0": Spec(
        _UNDERCOVER, {}, "Describe a secret word, and find who of five has another one.", partner="associate"
    ),
    "turngym/UndercoverSmall-v0": Spec(
        _UNDERCOVER,
        {"num_seats": 3, "talk": False},
        "Describe a secret word among three, and vote without discussion.",
        partner="associate",
    ),
    "turngym/Codenames-v0": Spec(
        _CODENAMES, {}, "Two teams of spymaster and guesser find their words among 25.", partner="associate"
    ),
    "turngym/CodenamesSmall-v0": Spec(
        _CODENAMES,
        {"words": 12, "own": 5},
        "Two teams of spymaster and guesser find their words among 12.",
        partner="associate",
    ),
}
