"""The quickstart: what ``turngym train`` runs unless it is told on what to train."""

QUICKSTART = (
    *("--env", "turngym/FrozenLake-v0", "--env-options", "view=coordinates", "hole_share=0.1"),
    *("--warmup.demonstrations", "30", "--warmup.epochs", "10"),
    *("--rollout.format", "plain", "--rollout.groups", "16"),
    *("--iterations", "60", "--max-seconds", "120"),
    *("--evaluation.every", "20", "--evaluation.episodes", "300"),
)
"""Its options: few demonstrations, so that the rest must be learnt from reward."""
