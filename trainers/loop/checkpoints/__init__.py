"""Checkpoints of a run: written, read, and exported as models."""
