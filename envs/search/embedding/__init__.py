"""Texts as vectors, and their index."""
