"""Wrappers that read, check and choose actions."""
