"""Agents: backends, prompts, the token log, the rollout loop and evaluation."""
