"""Shared command-line inputs: options, prompts, models, and error messages."""
