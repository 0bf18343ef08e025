"""Small models and trajectories that several tests build on."""

from collections.abc import Sequence
from typing import Any

import torch

from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.embedded import EmbeddedConfig, build_model, build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.players import AgentSettings
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.vector import TextVectorEnv, make_vec

torch.set_num_threads(1)

TEXTS = [
    "player 2 3 box 3 3 goal 4 1 wall 1 2 wall 3 4",
    *(f"<action>{move}</action>" for move in ("up", "down", "left", "right")),
    "You push boxes onto goals. Answer with one move.",
]


def small_model(seed: int = 0, hidden: int = 16, dtype: torch.dtype = torch.float32, layers: int = 2) -> LanguageModel:
    tokenizer = build_tokenizer(TEXTS * 3, 340)
    network = build_model(tokenizer, EmbeddedConfig(hidden_size=hidden, layers=layers, heads=2, vocabulary=340), seed)
    return LanguageModel(network.double() if dtype is torch.float64 else network, tokenizer, "small")


def sokoban_vector(slots: int = 8, **options: Any) -> TextVectorEnv:
    settings: dict[str, Any] = {"view": "coordinates", "max_turns": 4, **options}
    return make_vec("turngym/Sokoban-v0", slots, autoreset_mode="disabled", **settings)


def agent_of(model: LanguageModel, mode: str = "window", temperature: float = 1.0, **prompt: object) -> ModelAgent:
    settings = AgentSettings(
        temperature=temperature, max_new_tokens=5, prompt={"mode": mode, "instructions": False, **prompt}
    )
    return transformers_agent(model, settings)


def group_specs(groups: int = 2, size: int = 4) -> list[EpisodeSpec]:
    return [EpisodeSpec(g * size + k, 100 + g, g) for g in range(groups) for k in range(size)]


def play(
    model: LanguageModel, mode: str = "window", specs: Sequence[EpisodeSpec] = (), **options: Any
) -> list[Trajectory]:
    vector = sokoban_vector(**options)
    try:
        return rollout(vector, agent_of(model, mode), list(specs) or group_specs())
    finally:
        vector.close()
