"""Processes, calls with limits, and locks."""
