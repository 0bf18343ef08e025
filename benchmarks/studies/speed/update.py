"""Updates of the weights alone, on made-up episodes: processor seconds of each setting in turns.

    python benchmarks/studies/speed/update.py [--models tiny 5M 30M] [--prompts 34 285] [--turns 5] [--repeats 3]
        [--settings "" "layout=tree" "layout=rows"]

Episodes of a group start with the same prompt. Conversations grow by 20 tokens read and 8 sampled a turn; with
``--windows`` every turn is a sequence that starts with the prompt and holds the last two turns. Settings are those of
:class:`turngym.trainers.core.update_config.UpdateConfig`, separated by commas, with ``precision`` besides. The first
update of each setting is not counted. One thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from turngym.agents.models.embedded import EmbeddedConfig, build_model, build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.studies.harness import arguments, interleaved, write_result
from turngym.benchmarks.studies.speed.sides.trl_task import READ, SAMPLED, SIZES
from turngym.trainers.algorithms import build
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner

MODELS = {"tiny": EmbeddedConfig(), **SIZES}
GROUPS = {"tiny": (8, 8), "5M": (2, 8), "30M": (1, 8)}
"""Groups and episodes of each."""


def episodes(model: str, prompt: int, turns: int, windows: bool) -> list[Trajectory]:
    """Return episodes whose groups share a prompt."""
    random = np.random.default_rng(0)
    groups, size = GROUPS[model]

    def tokens(count: int) -> list[int]:
        return [int(each) for each in random.integers(10, 290, count)]

    found = []
    for group in range(groups):
        start = tokens(prompt)
        for member in range(size):
            each = Trajectory(EpisodeSpec(group * size + member, group, group), terminated=True)
            history: list[int] = []
            for _ in range(turns):
                said = tokens(SAMPLED)
                shown = history[-2 * (READ + SAMPLED) :] if windows else history
                ids = ((*start, *shown), tuple(said), (-5.0,) * SAMPLED)
                each.turns.append(Turn("", "", "", "", *ids, reward=random.random()))
                history += [*said, *tokens(READ)]
            found.append(each)
    return found


def model_of(name: str, precision: str) -> LanguageModel:
    """Return a model with random weights."""
    tokenizer = build_tokenizer(["a b"], 300)
    network = build_model(tokenizer, MODELS[name], 0)
    torch.manual_seed(0)
    network.resize_token_embeddings(MODELS[name].vocabulary, mean_resizing=False)
    return LanguageModel(network.to(getattr(torch, precision)), tokenizer, name)


def learner_of(name: str, text: str) -> Learner:
    """Return a learner with some settings."""
    given: dict[str, Any] = dict(part.split("=", 1) for part in text.split(",") if part)
    precision = given.pop("precision", "float32")
    numbers: dict[str, Any] = {key: int(value) if value.isdigit() else value for key, value in given.items()}
    return Learner(model_of(name, precision), build("grpo"), UpdateConfig(**numbers))


def measured(learner: Learner, played: Sequence[Trajectory], _repeat: int) -> tuple[float, float]:
    """Return the processor seconds of an update, and the norm of its gradient."""
    start = time.process_time()
    metrics = learner.update(played, 0)
    return time.process_time() - start, metrics["train/grad_norm"]


def cell(given: argparse.Namespace, model: str, prompt: int, turns: int) -> dict[str, Any]:
    """Return the median seconds of every setting."""
    played = episodes(model, prompt, turns, given.windows)
    arms: dict[str, Callable[[int], tuple[float, float]]] = {}
    found: dict[str, Any] = {}
    for text in given.settings:
        learner = learner_of(model, text)
        found[text] = {"grad_norm": measured(learner, played, 0)[1]}
        arms[text] = partial(measured, learner, played)
    for text, runs in interleaved(arms, given.repeats).items():
        found[text]["seconds"] = round(statistics.median(seconds for seconds, _ in runs), 4)
        found[text]["times_as_fast"] = round(found[given.settings[0]]["seconds"] / found[text]["seconds"], 2)
    return found


def main() -> int:
    """Measure, print, and write the result where a file is given."""
    parser = arguments(__doc__, "update.json", repeats=3)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["5M", "30M"])
    parser.add_argument("--prompts", nargs="+", type=int, default=[34, 285])
    parser.add_argument("--turns", nargs="+", type=int, default=[5])
    parser.add_argument("--windows", action="store_true", help="make each turn a separate sequence")
    parser.add_argument("--settings", nargs="+", default=["layout=rows", "layout=tree"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    cells = {}
    for model in given.models:
        for prompt in given.prompts:
            for turns in given.turns:
                found = cells[f"{model} prompt {prompt} turns {turns}"] = cell(given, model, prompt, turns)
                for text, each in found.items():
                    print(f"{model:6} {prompt:4} {turns:3} {text:30} {each}", flush=True)
    write_result(given.out, {"windows": given.windows, "cells": cells}, "torch", "transformers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
