"""What each of several ranks evaluates; it prints JSON: results, and which episodes or games it played itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.engine.ranks.launch import launched
from turngym.trainers.loop.setup import initial_model
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.first_plays import FirstPlays
from turngym.trainers.loop.tasks.game_task import GameTask
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, SelfPlayConfig, TrainConfig

EPISODES = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 9, "highest": 9},
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=340),
    rollout=RolloutConfig(groups=6, group_size=2, format="plain", max_new_tokens=2),
    evaluation=EvaluationConfig(episodes=7, every=2, curve_episodes=5),
)
CONFIGS = {
    "episodes": EPISODES,
    "fewer than ranks": replace(EPISODES, evaluation=EvaluationConfig(episodes=1, every=2, curve_episodes=1)),
    "first plays": replace(EPISODES, rollout=replace(EPISODES.rollout, journal=True)),
    "games": replace(
        EPISODES,
        env="turngym/KuhnPoker-v0",
        env_options={},
        algorithm="rae",
        self_play=SelfPlayConfig(evaluation_opponents=("random", "equilibrium")),
    ),
}


def watch(owner: Any, name: str, place: int, played: list[int]) -> None:
    """Note the numbers of the specifications that a method is called with."""
    method = getattr(owner, name)

    def noted(*given: Any) -> Any:
        specs: Sequence[Any] = given[place]
        played.extend(getattr(spec, "number", getattr(spec, "episode", -1)) for spec in specs)
        return method(*given)

    setattr(owner, name, noted)


def evaluated(config: TrainConfig, ranks: Ranks) -> dict[str, Any]:
    """Evaluate a policy with new weights, as a learning curve and at the end of a run do."""
    played: list[int] = []
    with closing(make_task(config, None, ranks)) as task:
        model = initial_model(config, lambda: ["player 1 goal 2 left right"])
        if isinstance(task, GameTask):
            watch(task.tables, "play", 0, played)
        elif not isinstance(task, FirstPlays):
            watch(task, "_play_held_out", 2, played)
        curve = task.curve_point(model)
        in_curve = list(played)
        found = [
            [each.name, each.result.summary(), list(each.result.episodes)] for each in task.evaluate(model, "x", 0.0)
        ]
    return {"curve": curve, "final": found, "played in curve": in_curve, "played": played[len(in_curve) :]}


def main() -> None:
    """Print what this rank found."""
    with launched("cpu") as ranks:
        print(json.dumps({name: evaluated(config, ranks) for name, config in CONFIGS.items()}))


if __name__ == "__main__":
    main()
