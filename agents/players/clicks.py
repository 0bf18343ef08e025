"""Clicks on images by a small vision network; needs torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from turngym.agents.players import AGENTS, AgentSettings
from turngym.errors import ConfigError
from turngym.lazy import require

if TYPE_CHECKING:
    from turngym.agents.models.vision.click_agent import ClickAgent

require("torch")
require("safetensors")


@AGENTS.register("clicks")
def make(argument: str, settings: AgentSettings) -> ClickAgent:
    """Return an agent that clicks on images, from a folder of ``ClickNetwork.save``."""
    from turngym.agents.models.vision.click_agent import ClickAgent
    from turngym.agents.models.vision.clicks import load_clicks

    if not argument:
        raise ConfigError("the agent clicks needs the folder of its network: write clicks:FOLDER.")
    return ClickAgent(load_clicks(Path(argument)), settings.seed, settings.temperature)
