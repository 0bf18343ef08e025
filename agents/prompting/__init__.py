"""Prompts: the part of an episode shown to a model, and its tokens."""
