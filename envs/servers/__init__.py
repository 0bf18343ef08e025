"""Servers of environments: hosting in threads, and the protocols on top of it."""
