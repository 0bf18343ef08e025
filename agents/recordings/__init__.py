"""Recorded episodes: folders of evaluations, logs of other suites, and states in the middle of episodes."""
