"""Backends of a vector: this process, threads, event loops, processes, a cluster."""
