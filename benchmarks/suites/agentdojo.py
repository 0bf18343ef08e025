"""AgentDojo: all user tasks, alone and with every injection task of their suite."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

TASKS = {"workspace": (40, 14), "travel": (20, 7), "banking": (16, 9), "slack": (21, 5)}
"""Suite -> numbers of user tasks and of injection tasks, in version 1.2.2."""
ATTACK = "important_instructions"
_TURNS = "30 turns of one call each; the package allows 15 turns of several calls."

SUITES.register("agentdojo")(
    Suite(
        name="agentdojo",
        version=1,
        description="The 97 user tasks of AgentDojo without an attack.",
        entries=tuple(
            SuiteEntry("turngym/AgentDojo-v0", {"suite": suite}, episodes=users) for suite, (users, _) in TASKS.items()
        ),
        metric="success",
        protocol=f"{_TURNS} The number is the mean over the four suites, AgentDojo's utility the mean over tasks.",
    )
)
SUITES.register("agentdojo-attacked")(
    Suite(
        name="agentdojo-attacked",
        version=1,
        description="The 949 pairs of a user task and an injection task of AgentDojo, with important instructions.",
        entries=tuple(
            SuiteEntry("turngym/AgentDojo-v0", {"suite": suite, "attack": ATTACK}, episodes=users * injections)
            for suite, (users, injections) in TASKS.items()
        ),
        metric="score",
        protocol=(
            f"{_TURNS} An episode counts if the task is solved and the injection is not carried out; success is "
            "AgentDojo's utility under attack."
        ),
    )
)
