"""Prioritised opponents: the weights, the shares that they come from, and the same draws after a resume."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from turngym.agents.episodes.self_play import LEARNER
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.errors import CheckpointError, ConfigError
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.game_task import GameTask
from turngym.trainers.loop.tasks.matchmaking import Matchmaking, Result, probabilities
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, SelfPlayConfig, TrainConfig
from turngym.trainers.settings.ray import RayConfig
from turngym.trainers.settings.self_play import Matching

torch.set_num_threads(1)
SMALL = TrainConfig(
    env="turngym/KuhnPoker-v0",
    env_options={},
    algorithm="rae",
    iterations=3,
    max_seconds=0,
    control=False,
    checkpoint_every=2,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=340),
    warmup=SupervisedConfig(demonstrations=8, epochs=2, learning_rate=5e-3),
    rollout=RolloutConfig(groups=12, group_size=1, format="plain", max_new_tokens=2),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
    self_play=SelfPlayConfig(
        opponents=("self", "past:2", "random", "equilibrium"), freeze_every=1, matching="squared", matching_decay=0.9
    ),
)


@pytest.mark.parametrize(
    ("matching", "expected"),
    [
        ("uniform", [1, 1, 1]),
        ("linear", [0.9, 0.5, 0.2]),
        ("squared", [0.81, 0.25, 0.04]),
        ("variance", [0.09, 0.25, 0.16]),
        ("linear_capped", [0.5, 0.5, 0.2]),
    ],
)
def test_opponents_are_weighed_as_in_alphastar(matching: Matching, expected: list[float]) -> None:
    """Shares of won games 0.1, 0.5 and 0.8; f_hard and f_var of the paper, the capped one of its pseudocode."""
    assert probabilities([0.1, 0.5, 0.8], matching) == pytest.approx([each / sum(expected) for each in expected])
    assert probabilities([0.3], matching) == [1.0]


def test_all_are_equally_likely_where_no_weight_is_left() -> None:
    assert probabilities([1.0, 1.0], "squared") == [0.5, 0.5]
    assert probabilities([0.0, 1.0, 1.0, 0.0], "variance") == [0.25] * 4


def test_shares_fade_by_game_and_belong_to_an_opponent_and_a_side() -> None:
    found = Matchmaking("linear", 0.5)
    found.begin(0, ["a", "b"])
    found.note(0, [Result("a", "village", won) for won in (True, True, False)])
    assert found.share("a", "village") == 0.5, "results count from the next iteration on"
    found.begin(1, ["a", "b"])
    # games 1 -> 1.5 -> 1.75, won 1 -> 1.5 -> 0.75; a won and a lost game beside them
    assert found.share("a", "village") == (0.75 + 1) / (1.75 + 2)
    assert found.share("a", "werewolves") == found.share("b", "village") == 0.5, "never met"
    found.begin(2, ["b"])
    found.begin(3, ["a", "b"])
    assert found.share("a", "village") == 0.5, "an opponent that has left is forgotten"


def test_an_opponent_that_always_wins_is_drawn_most_and_one_that_never_does_still_sometimes() -> None:
    found = Matchmaking("squared", 0.99)
    found.begin(0, ["strong", "weak", "new"])
    found.note(0, [Result(name, "0", name == "weak") for name in ("strong", "weak") for _ in range(18)])
    found.begin(1, ["strong", "weak", "new"])
    strong, weak, new = found.chances(["strong", "weak", "new"], "0")
    assert strong > 0.7 > 0.25 > new > weak > 0
    even = Matchmaking("variance", 0.99)
    even._records = found._records
    assert even.chances(["strong", "new"], "0")[1] > 0.7, "an opponent out of reach is left for one of equal strength"
    drawn = Counter(found.draw(["strong", "weak", "new"], "0", np.random.default_rng(seed)) for seed in range(2000))
    assert drawn["strong"] / 2000 == pytest.approx(strong, abs=0.04)
    assert drawn["new"] / 2000 == pytest.approx(new, abs=0.04)


def test_records_belong_to_checkpoints(tmp_path: Path) -> None:
    found = Matchmaking("linear", 1.0)
    for iteration in range(4):
        found.begin(iteration, ["a"])
        found.note(iteration, [Result("a", "0", True)])
        found.save(tmp_path, [max(iteration - 1, 0), iteration])
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["000002", "000003"]
    again = Matchmaking("linear", 1.0)
    for iteration, games in ((3, 3), (2, 2)):  # an iteration that a checkpoint has not ended yet does not count
        again.load(tmp_path, iteration)
        assert again.share("a", "0") == (games + 1) / (games + 2)
    again.load(tmp_path, 7)
    assert again.share("a", "0") == 4 / 5, "a kill came between a checkpoint and its records"
    record = '{"records": [{"opponent": "a", "side": "0", "games": %s, "won": %s}]}'
    for damaged in ("{", "[" * 100_000, "[]", record % (1, 2), record % ("NaN", 0), record % (1, -1)):
        (tmp_path / "000003.json").write_text(damaged)
        with pytest.raises(CheckpointError, match=r"results against opponents in .*000003.json are damaged"):
            again.load(tmp_path, 3)


def test_the_share_of_self_play_is_that_of_the_list_and_the_rest_is_drawn_by_results() -> None:
    config = replace(SMALL, rollout=replace(SMALL.rollout, groups=400))
    task = GameTask(config)
    task.matchmaking.begin(0, ["random", "equilibrium"])
    task.matchmaking.note(0, [Result("equilibrium", side, False) for side in "01" for _ in range(40)])
    task.matchmaking.note(0, [Result("random", "1", True) for _ in range(40)])
    task.matchmaking.begin(1, ["random", "equilibrium"])
    drawn = {side: Counter(spec.opponent for spec in task.specs(1) if spec.side % 2 == side) for side in (0, 1)}
    for side in (0, 1):
        assert drawn[side][LEARNER] == pytest.approx(50, abs=25)
        assert drawn[side]["equilibrium"] > 90
    assert drawn[0]["random"] > 10 > drawn[1]["random"]
    assert task.specs(1) == task.specs(1)


def test_wrong_matching_is_told() -> None:
    with pytest.raises(ConfigError, match=r"matching must be one of .*, got 'sqared'. Did you mean 'squared'\?"):
        SelfPlayConfig(opponents=("past:2",), matching="sqared")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"matching_decay must be a number in \[0, 1\], got 1.5"):
        SelfPlayConfig(matching_decay=1.5)
    with pytest.raises(ConfigError, match=r"matching linear draws among opponents other than self"):
        SelfPlayConfig(matching="linear")
    settings = replace(SMALL.rollout, ray=RayConfig(workers=2))
    players = SelfPlayConfig(opponents=("random",), matching="linear")
    with pytest.raises(ConfigError, match=r"results against opponents are kept in the learner's process"):
        make_task(replace(SMALL, rollout=settings, self_play=players))


def test_a_run_that_stopped_draws_the_same_opponents(tmp_path: Path) -> None:
    def stop(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 2:
            raise KeyboardInterrupt

    def numbers(folder: Path) -> list[dict[str, Any]]:
        records = RunFolder(folder).metrics()
        return [{k: v for k, v in record.items() if not k.startswith("time/")} for record in records]

    train(SMALL, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(SMALL, tmp_path / "run", watch=stop)
    train(SMALL, tmp_path / "run", resume=True)
    whole = numbers(tmp_path / "whole")
    assert numbers(tmp_path / "run") == whole
    assert whole[0]["self_play/win_share_as_0_vs_past_1"] == 0.5
    last = {name: value for name, value in whole[-1].items() if name.startswith("self_play/")}
    chances = [value for name, value in last.items() if name.startswith("self_play/match_probability_as_1_vs_")]
    assert len(chances) == 4 and sum(chances) == pytest.approx(1)
    assert last["self_play/win_share_as_1_vs_past_2"] != 0.5
