"""Prompts: what a model is shown of an episode, and how that becomes tokens."""
