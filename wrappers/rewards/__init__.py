"""Wrappers that change the reward or the progress."""
