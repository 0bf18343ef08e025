"""Wrappers that add to what the agent sees."""
