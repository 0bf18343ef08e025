"""Wrappers that choose tasks."""
