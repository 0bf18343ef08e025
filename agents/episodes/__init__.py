"""Loops over turns: rollouts, self-play, evaluation, and what they share."""
