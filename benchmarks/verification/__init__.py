"""Verification of untrusted folders: files, tasks, numbers, and replayed episodes."""
