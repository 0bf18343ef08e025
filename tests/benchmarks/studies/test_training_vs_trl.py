"""The benchmark beside TRL: both sides train on episodes of the same size, and its arithmetic is right."""

from __future__ import annotations

from typing import Any

import pytest
from small import small_model

from turngym.agents.models.embedded import build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.benchmarks.studies.speed import training_vs_trl as study
from turngym.benchmarks.studies.speed.sides import trl_task as task
from turngym.errors import ConfigError


def test_an_episode_has_the_same_length_whatever_is_said() -> None:
    env = task.Talk(turns=3, words=4)
    returns = set()
    for seed, said in ((0, "a"), (0, "b"), (1, "")):
        observation, _ = env.reset(seed=seed)
        ends, total = [], 0.0
        for _ in range(3):
            assert len(observation.split()) == 4
            observation, reward, terminated, truncated, _ = env.step(said)
            ends.append((terminated, truncated))
            total += reward
        assert ends == [(False, False), (False, False), (True, False)]
        returns.add(total)
    assert len(returns) == 3


def test_observations_and_what_is_around_them_have_20_tokens() -> None:
    model = LanguageModel(small_model().network, build_tokenizer(task.WORD_TEXTS, 400), "words")
    assert task.words_to_read(model) == 16
    with pytest.raises((RuntimeError, ConfigError), match="20 tokens"):
        task.words_to_read(small_model())


def ran(side: str, seconds: float, model: str = "5M", turns: int = 5, sampled: int = 40) -> dict[str, Any]:
    seen = {"turns": turns, "sampled": sampled, "tokens": 140, "updates": 1}
    parts = {"iteration": seconds, "rollout": seconds / 2, "update": seconds / 2}
    times = {phase: [99.0, value] for phase, value in parts.items()}
    return {"model": model, "turns": turns, "side": side, "repeat": 0, "seen": [seen, seen], **times}


def test_medians_leave_the_first_iteration_out_and_ratios_say_how_many_times_as_fast() -> None:
    found = study.cell([ran("turngym", 2.0), ran("turngym", 4.0), ran("turngym", 3.0), ran("trl", 9.0)])
    assert found["same_work"] and not found["errors"]
    assert found["sides"]["turngym"]["iteration_seconds"] == 3.0
    assert found["sides"]["turngym"]["rollout_seconds_a_turn"] == 0.3
    assert found["times_as_fast"] == {"turngym over trl": {"iteration": 3.0, "rollout": 3.0, "update": 3.0}}
    assert not study.cell([ran("turngym", 2.0), ran("trl", 2.0, sampled=39)])["same_work"]


def test_targets_are_met_or_missed_by_the_figures() -> None:

    def cell(turns: int, ours: float, theirs: float) -> Any:
        return study.cell([ran("turngym", ours, turns=turns), ran("trl", theirs, turns=turns)])

    found = study.verdicts({"5M 5": cell(5, 1, 2), "5M 20": cell(20, 4, 15), "5M 40": cell(40, 16, 80)})
    assert {target: each["met"] for target, each in found.items()} == {
        "5M, 5 turns: at least 2.0": True,
        "5M, 20 turns: at least 4.0": False,
        "5M: more at 40 turns than at 20": True,
        "5M: rollout a turn at 40 turns at most 1.5 of that at 5": False,
    }
