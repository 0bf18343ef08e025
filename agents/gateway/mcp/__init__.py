"""Environments as tools of the Model Context Protocol (MCP): reset, step and legal actions; scores stay here.

``protocol`` answers messages, ``session`` plays an environment, ``stdio`` and ``http`` are the transports. The gateway
offers the environment of an episode in the same way.
"""

from turngym.agents.gateway.mcp.protocol import Tools, answered
from turngym.agents.gateway.mcp.session import EnvSession, Episodes

__all__ = ["EnvSession", "Episodes", "Tools", "answered"]
