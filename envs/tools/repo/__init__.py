"""Repo: repositories of generated packages with something wrong.

``parts`` reads the parts of packages (``data``), ``plan`` draws a package and its test cases, ``trial`` runs it here,
``defects`` breaks it, ``task`` makes a repository with a history of it, ``judge`` runs the hidden cases with ``inside``
in the sandbox, ``file_tools`` are the agent's tools, ``env`` is the environment.
"""

from turngym.envs.tools.repo.env import Repo

__all__ = ["Repo"]
