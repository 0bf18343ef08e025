"""Systems of agents: a main agent that calls sub-agents, each with its own context.

``game`` seats them at a table around an environment with one agent; ``vault`` is a small environment for that, whose
pages fill a context; ``players`` holds the player that both roles learn from.
"""

from __future__ import annotations

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.delegation.game:Delegation"

SPECS = {
    "turngym/Delegation-v0": Spec(
        _ENTRY,
        {"main_tools": "open", "sub_tools": "look"},
        "Open a vault with digits that called sub-agents find in long pages.",
        partner="expert",
    ),
    "turngym/DelegationSearch-v0": Spec(
        _ENTRY,
        {
            "env": "turngym/SearchQA-v0",
            "env_options": {"kind": "2 hops", "max_turns": 10},
            "main_tools": "answer",
            "sub_tools": "search",
        },
        "Answer questions of two hops by calling sub-agents that search.",
        partner="expert",
    ),
}
