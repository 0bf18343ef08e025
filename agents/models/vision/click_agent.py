"""The agent that clicks where a small network says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.models.vision.clicks import Click, ClickNetwork, batch
from turngym.agents.trajectory import Turn
from turngym.envs.web.driver.actions import read
from turngym.errors import ConfigError
from turngym.seeding import stream


class ClickAgent(Agent):
    """Samples clicks from a network; it reads neither the page nor the legal actions.

    Args:
        network: The network.
        seed: Seed of the samples, combined with episode and turn.
        temperature: Sampling temperature; 0 takes the likeliest cell.
    """

    def __init__(self, network: ClickNetwork, seed: int = 0, temperature: float = 1.0) -> None:
        self.network = network
        self.seed = seed
        self.temperature = temperature
        self._last: dict[int, Click] = {}

    def view(self, request: Request) -> NDArray[np.uint8]:
        """Return what the network sees, [4, height, width].

        Raises:
            ConfigError: The observation has no picture, or one of another size.
        """
        if request.image is None:
            raise ConfigError("the agent clicks reads pictures, and there is none: add image=true to --env-options.")
        return self.network.settings.view(request.image, self._last.get(request.episode))

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return a click for each request."""
        views = batch([self.view(request) for request in requests])
        with torch.inference_mode():
            logits = self.network(views).double().numpy()
        return [self._decision(request, each) for request, each in zip(requests, logits, strict=True)]

    def _decision(self, request: Request, logits: NDArray[np.float64]) -> Decision:
        cell = int(logits.argmax())
        if self.temperature > 0:
            draws = stream("clicks", self.seed, request.episode, request.turn).gumbel(size=len(logits))
            cell = int((logits / self.temperature + draws).argmax())
        click = self._last[request.episode] = self.network.settings.click_of(cell)
        return Decision(f"click {click[0]:g},{click[1]:g}")

    def recall(self, episode: int, turns: Sequence[Turn]) -> None:
        """Remember the last click of an episode's turns so far."""
        for turn in turns:
            self._note(episode, turn.action)

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Remember a click that was decided elsewhere."""
        self._note(request.episode, action)
        return Decision(action, completion)

    def _note(self, episode: int, action: str) -> None:
        done = read(action)
        if done is not None and done.kind == "click" and isinstance(done.place, tuple):
            self._last[episode] = done.place

    def forget(self, episode: int) -> None:
        """Forget an episode's last click."""
        self._last.pop(episode, None)
