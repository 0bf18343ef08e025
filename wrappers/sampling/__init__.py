"""Wrappers that choose the tasks."""
