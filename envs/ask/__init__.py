"""Asking: twenty questions and open details of requests, with exact information gains.

``problem`` says what there is to find out, ``twenty`` and ``intents`` draw it, ``belief`` computes the posterior and
what questions tell, ``env`` is the environment.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.ask.env:Ask"
SPECS: dict[str, Spec] = {
    "turngym/Ask-v0": Spec(_ENTRY, {}, "Find out which of 100 things is meant, by questions about its properties."),
    "turngym/AskEasy-v0": Spec(
        _ENTRY, {"level": 1, "reward": "dense"}, "Find out which of 32 things is meant; each answer is rewarded."
    ),
    "turngym/AskIntent-v0": Spec(_ENTRY, {"kind": "intent"}, "Find out the open details of a request."),
    "turngym/AskHard-v0": Spec(
        _ENTRY, {"level": 3, "max_turns": 9}, "Find out which of 200 things is meant, with few questions."
    ),
}
