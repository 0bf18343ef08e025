"""The training loop: tasks, set-up, warm-up, checkpoints, self-play."""
