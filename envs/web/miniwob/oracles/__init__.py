"""Solvers of the tasks of MiniWoB++."""
