"""Adapters for third-party environments with other interfaces; their faults are contained."""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/AgentDojo-v0": Spec(
        "turngym.envs.adapters.agentdojo:AgentDojo",
        {},
        "Office work with tools, with or without an attacker's instructions in their results: AgentDojo's suites.",
        "agentdojo",
    ),
    "turngym/BFCL-v0": Spec(
        "turngym.envs.adapters.bfcl:BFCL",
        {},
        "Requests over several turns with functions of simulated services: BFCL's multi-turn questions.",
        "bfcl",
    ),
    "turngym/BrowserGym-v0": Spec(
        "turngym.envs.adapters.browsergym:BrowserGym",
        {},
        "Any task of the package browsergym, by its id there.",
        "browsergym",
    ),
    "turngym/GEM-v0": Spec(
        "turngym.envs.adapters.gem:Gem", {}, "Any game of the package gem-llm, by its id there.", "gem"
    ),
    "turngym/Gymnasium-v0": Spec(
        "turngym.envs.adapters.gymnasium_text:GymnasiumText",
        {},
        "Any Gymnasium environment whose actions are text or a list of names.",
    ),
    "turngym/OpenEnv-v0": Spec(
        "turngym.envs.adapters.openenv:OpenEnv",
        {},
        "Any text environment on a server of OpenEnv's protocol, by its address.",
        "serve",
    ),
    "turngym/ReasoningGym-v0": Spec(
        "turngym.envs.adapters.reasoning_gym:ReasoningGym",
        {},
        "Any data set of the package reasoning-gym, by its name there.",
        "reasoning",
    ),
    "turngym/TextArena-v0": Spec(
        "turngym.envs.adapters.textarena:TextArena",
        {},
        "Any single-player game of the package textarena, by its id there.",
        "textarena",
    ),
}
