"""The quickstart: what ``turngym train`` runs unless it is told on what to train."""

from __future__ import annotations

from collections.abc import Sequence

QUICKSTART = (
    *("--env", "turngym/FrozenLake-v0", "--env-options", "view=coordinates", "hole_share=0.1"),
    *("--warmup.demonstrations", "30", "--warmup.epochs", "10"),
    *("--rollout.format", "plain", "--rollout.groups", "16"),
    *("--iterations", "60", "--max-seconds", "120"),
    *("--evaluation.every", "20", "--evaluation.episodes", "300"),
)
"""Its options: few demonstrations, so that the rest must be learnt from reward."""
_OTHER_TASK = ("env", "game", "env-options", "data", "agent.tasks", "agent.package", "model", "preset")
"""Options that say on what to train, or which model: with one of them nothing of the quickstart is used."""


def with_quickstart(argv: Sequence[str]) -> list[str]:
    """Return the words of a command line with those of the quickstart in front, unless another task is asked for.

    >>> with_quickstart(["--seed", "1"])[:2]
    ['--env', 'turngym/FrozenLake-v0']
    >>> with_quickstart(["--env=turngym/Sokoban-v0"])
    ['--env=turngym/Sokoban-v0']
    """
    asked = {word.partition("=")[0].replace("_", "-") for word in argv}
    return list(argv) if asked.intersection(f"--{name}" for name in _OTHER_TASK) else [*QUICKSTART, *argv]
