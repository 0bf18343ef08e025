"""Parsing of model output: calls, JSON, delimited passages."""
