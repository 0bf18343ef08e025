"""Terminal: tasks in a shell, generated without end.

``task`` says what a task consists of, ``families`` draws them, ``judge`` judges the files that are left, ``shell`` is
what a shell reads first, ``machine`` runs it in a box, ``env`` is the environment.
"""

from turngym.envs.tools.terminal.env import Terminal

__all__ = ["Terminal"]
