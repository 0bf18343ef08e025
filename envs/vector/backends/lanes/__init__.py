"""Threads and event loops that play several slots each."""
