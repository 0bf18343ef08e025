"""Suites, evaluation folders and the commands of ``turngym``: the top layer, which may use all others."""
