"""Wrappers that end an episode early."""
