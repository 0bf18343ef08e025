"""Service desks: an agent with a policy and tools serves a scripted caller who has a hidden goal.

``shop`` and ``clinic`` are domains: their tables, tools, rules and wishes. ``domain`` says what a domain consists of,
``script`` makes an instance with its solution, ``caller`` is the caller, ``conduct`` the rules that hold everywhere,
``session`` a conversation and its judge, ``expert`` the expert, ``acts`` the notation.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.service.env:Service"
SPECS: dict[str, Spec] = {
    "turngym/Service-v0": Spec(_ENTRY, {}, "Serve a caller of a shop by its policy, with tools over its records."),
    "turngym/ServiceEasy-v0": Spec(
        _ENTRY,
        {"wishes": 1, "strict_tools": True, "reward": "dense"},
        "Serve a caller with one wish, with tools that refuse what the policy forbids.",
    ),
    "turngym/ServiceClinic-v0": Spec(
        _ENTRY, {"domain": "clinic"}, "Serve a patient at the desk of a clinic by its policy."
    ),
    "turngym/ServiceHard-v0": Spec(
        _ENTRY,
        {"wishes": 3, "acts": "hidden", "customers": 12, "max_turns": 80},
        "Serve a caller with several wishes, from words alone.",
    ),
}
