"""A gateway: agent programs of any kind speak to it as to a model's server, and it keeps the exact tokens.

Every call is logged with the ids that were sampled, so that what is trained on is what was sampled. See
:class:`turngym.trainers.integrations.gateway.service.Gateway`.
"""

from __future__ import annotations

from turngym.trainers.integrations.gateway.episode import GatewayEpisode
from turngym.trainers.integrations.gateway.limits import GatewayLimits, GatewayRules
from turngym.trainers.integrations.gateway.server import serve, serving
from turngym.trainers.integrations.gateway.service import Gateway
from turngym.trainers.integrations.gateway.trajectories import trajectory_of

__all__ = ["Gateway", "GatewayEpisode", "GatewayLimits", "GatewayRules", "serve", "serving", "trajectory_of"]
