"""Completions and episodes that were cut off: known from the log, masked on request, and counted."""

import json
from typing import Any

import pytest
import torch
from small import play, small_model

from turngym.agents.episodes.groups import play_groups
from turngym.agents.players import AgentSettings
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.agents.trajectory_json import trajectory_from_json, trajectory_to_json
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError
from turngym.trainers import build, prepare
from turngym.trainers.core.context import exclusion_metrics, masked
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.core.update_config import Exclusion, UpdateConfig
from turngym.trainers.engine.learner import Learner
from turngym.trainers.functional import NORMALISATIONS, loss_weights
from turngym.trainers.records.rollout_metrics import rollout_metrics

torch.set_num_threads(1)


def turn(*ids: int, **fields: Any) -> Turn:
    return Turn("s", "s", "up", prompt_ids=(3, 4), completion_ids=ids, logprobs=(-5.78,) * len(ids), **fields)


def episode(number: int, reward: float, *turns: Turn, **fields: Any) -> Trajectory:
    turns[-1].reward = reward
    fields = fields or {"terminated": True}
    return Trajectory(EpisodeSpec(number, 0, number // 2), "game", turns=list(turns), **fields)


def unfinished(number: int, *turns: Turn, reason: Any = "environment") -> Trajectory:
    return episode(number, 0.0, *turns, truncated=True, truncation_reason=reason)


def whole() -> list[Trajectory]:
    return [episode(0, 1.0, turn(5, 6), turn(7)), episode(2, 0.0, turn(8, 9, 10)), episode(3, 1.0, turn(5))]


def trained(played: list[Trajectory], algorithm: str = "grpo", **update: Any) -> torch.Tensor:
    model = small_model(dtype=torch.float64)
    Learner(model, build(algorithm), UpdateConfig(learning_rate=1e-2, **update)).update(played, 0)
    return torch.cat([p.detach().flatten() for p in model.network.parameters()])


@pytest.mark.parametrize("algorithm", ["grpo", "dapo", "gspo", "grpo+tis"])
def test_what_a_cut_off_completion_says_moves_no_weight(algorithm: str) -> None:
    """Its reward stays in the statistics of its group; the other turns of its episode are trained on."""
    found = [
        trained([*whole(), episode(1, 0.0, turn(6), turn(*ids, cut_off=True))], algorithm, on_overlong="mask")
        for ids in ((11, 12), (11, 13))
    ]
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)
    train = trained([*whole(), episode(1, 0.0, turn(6), turn(11, 12, cut_off=True))], algorithm)
    assert not torch.equal(found[0], train)
    other = trained([*whole(), episode(1, 2.0, turn(6), turn(11, 12, cut_off=True))], algorithm, on_overlong="mask")
    assert not torch.equal(found[0], other), "its reward counts"


def test_what_an_unfinished_episode_says_moves_no_weight() -> None:
    found = [trained([*whole(), unfinished(1, turn(6), turn(*ids))], on_truncated="mask") for ids in ((11, 12), (13,))]
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)
    assert not torch.equal(found[0], trained([*whole(), unfinished(1, turn(6), turn(13))]))


def test_each_setting_masks_its_own_kind() -> None:
    """A prompt that did not fit follows ``on_context`` alone, and an episode that the rules ended is finished."""
    played = [
        episode(0, 1.0, turn(5), turn(6, cut_off=True)),
        unfinished(1, turn(5), turn(6)),
        unfinished(2, turn(5), turn(6), reason="context"),
        episode(3, 1.0, turn(5), turn(6), truncated=True, terminated=True),
    ]
    expected = {
        Exclusion(on_overlong="mask"): [0, 1, 0, 0, 0, 0, 0, 0],
        Exclusion(on_truncated="mask"): [0, 0, 1, 1, 0, 0, 0, 0],
        Exclusion(on_context="mask"): [0, 0, 0, 0, 1, 1, 0, 0],
        Exclusion("mask", "mask", "mask"): [0, 1, 1, 1, 1, 1, 0, 0],
    }
    for exclusion, marks in expected.items():
        table = masked(turn_table(played), played, exclusion)
        assert table.masked.tolist() == [bool(mark) for mark in marks], exclusion
        for name in NORMALISATIONS:
            assert not loss_weights(table, name)[table.masked[table.token_turn]].any()
    assert not len(masked(turn_table(played), played, Exclusion()).masked)


def test_what_is_masked_is_counted() -> None:
    played = [
        episode(0, 1.0, turn(5), turn(6, cut_off=True)),
        unfinished(1, turn(5, cut_off=True)),
        unfinished(2, turn(5), reason="context"),
    ]
    assert rollout_metrics(played)["rollout/overlong"] == 0.5
    names = ("train/context_not_in_loss", "train/truncated_not_in_loss", "train/overlong_not_in_loss")
    found = exclusion_metrics(played, Exclusion("mask", "mask", "mask"))
    assert [found[name] for name in names] == [1, 1, 2]
    assert [exclusion_metrics(played, Exclusion())[name] for name in names] == [0, 0, 0]


def test_the_log_says_which_completions_were_cut_off() -> None:
    """Of an untrained model's completions of five tokens, those without an end token, and no other."""
    model = small_model()
    turns = [each for trajectory in play(model) for each in trajectory.turns]
    assert [each.cut_off for each in turns] == [each.completion_ids[-1] not in model.stop_ids for each in turns]
    assert any(each.cut_off for each in turns)
    assert all(len(each.completion_ids) == 5 for each in turns if each.cut_off)


def test_the_marks_survive_a_file() -> None:
    played = episode(0, 1.0, turn(5, cut_off=True), turn(6, restricted=True, pictures=(b"\x89PNG", b"\x00\xff")))
    assert trajectory_from_json(json.loads(json.dumps(trajectory_to_json(played)))) == played
    content = trajectory_to_json(played)
    for each in content["turns"]:
        del each["cut_off"], each["restricted"]  # as an earlier version wrote it
    assert not any(each.cut_off or each.restricted for each in trajectory_from_json(content).turns)


def test_tokens_from_a_part_of_the_vocabulary_are_not_trained_on() -> None:
    """Their log-probabilities are not those of the distribution that they were sampled from."""
    model = small_model()
    vector = make_vec("turngym/Sokoban-v0", 2, autoreset_mode="disabled", view="coordinates", max_turns=2)
    try:
        played = play_groups(vector, model, groups=1, group_size=2, settings=AgentSettings(top_p=0.9))
    finally:
        vector.close()
    assert all(each.restricted for trajectory in played for each in trajectory.turns)
    with pytest.raises(ConfigError, match=r"a part of the vocabulary \(top-p, top-k or min-p\).*with top_p=1"):
        prepare(played, model, build("rloo", {"rloo": {"reward_kl_coef": 0.0}}))


def test_settings_are_checked() -> None:
    for name in ("on_truncated", "on_overlong"):
        with pytest.raises(ConfigError, match=f"{name} must be one of 'train', 'mask', got 'drop'"):
            UpdateConfig(**{name: "drop"})  # type: ignore[arg-type]
