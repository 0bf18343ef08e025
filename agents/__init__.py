"""Agents: backends, prompts, the token log, the rollout loop and evaluation.

An agent of your own is one class, which every command takes as ``path/to/file.py:Class``:

>>> from turngym.agents import Agent, Decision
>>> class FirstLegal(Agent):
...     def act(self, requests):
...         return [Decision(request.info["legal_actions"][0]) for request in requests]
"""

from turngym.agents.core import Agent, Decision, Request

__all__ = ["Agent", "Decision", "Request"]
