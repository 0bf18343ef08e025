"""Asynchronous rollouts, which overlap with updates and are recorded in a journal."""
