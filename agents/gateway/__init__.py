"""A gateway: agent programs of any kind speak to it as to a model's server, and it keeps the exact tokens.

Every call is logged with the ids that were sampled, so that what is trained on is what was sampled. See
:class:`turngym.agents.gateway.service.Gateway`.
"""

from __future__ import annotations

from turngym.agents.gateway.episode import GatewayEpisode
from turngym.agents.gateway.limits import GatewayLimits, GatewayRules
from turngym.agents.gateway.server import serve, serving
from turngym.agents.gateway.service import Gateway
from turngym.agents.gateway.trajectories import trajectory_of

__all__ = ["Gateway", "GatewayEpisode", "GatewayLimits", "GatewayRules", "serve", "serving", "trajectory_of"]
