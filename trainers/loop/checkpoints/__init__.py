"""Checkpoints of a run: writing, reading, and export as models."""
