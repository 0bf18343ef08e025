"""Another method for each environment of a mixture: each sees and trains its own episodes, as if it were alone."""

import dataclasses
from dataclasses import replace

import algorithm_batches as batches
import pytest
import torch
from torch import Tensor

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.per_environment import Part, PerEnvironment
from turngym.trainers.core.selection import select_episodes
from turngym.trainers.core.turn_table import TurnTable, turn_table

FIRST, SECOND = "turngym/First-v0", "turngym/Second-v0"
ALONE = batches.COLLECTING | {"mappo", "s_ppo", "st_ppo", "vc_ppo", "echo", "infopo", "offline", "replay"}
"""Registered methods that concern a whole run."""
SHARING = [name for name in batches.METHODS if name not in ALONE][::2]


def mixed() -> list[Trajectory]:
    """Episodes of two environments, group by group."""
    found = batches.episodes()
    for trajectory in found:
        trajectory.env_id = SECOND if trajectory.spec.group == 1 else FIRST
    return found


def methods(first: str, second: str) -> PerEnvironment:
    parts = [(FIRST, "First", first), (SECOND, "Second", second)]
    return PerEnvironment([Part(env, label, name, batches.made(name)) for env, label, name in parts])


def assert_equal(one: TurnTable, other: TurnTable) -> None:
    for field in dataclasses.fields(TurnTable):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name == "columns":
            assert {scope: list(own) for scope, own in mine.items()} == {k: list(own) for k, own in theirs.items()}
            pairs = [(mine[scope][name], theirs[scope][name]) for scope in mine for name in mine[scope]]
        else:
            pairs = [(mine, theirs)]
        for a, b in pairs:
            is_equal = torch.equal(a.nan_to_num(9), b.nan_to_num(9)) if isinstance(a, Tensor) else a == b
            assert is_equal, field.name


def test_a_selection_is_the_table_of_these_episodes() -> None:
    episodes = mixed()
    table = turn_table(episodes)
    for env in (FIRST, SECOND):
        chosen = torch.tensor([each.env_id == env for each in episodes])
        assert_equal(select_episodes(table, chosen), turn_table([each for each in episodes if each.env_id == env]))
    assert_equal(select_episodes(table, torch.ones(len(episodes), dtype=torch.bool)), table)
    none = select_episodes(table, torch.zeros(len(episodes), dtype=torch.bool))
    assert none.num_turns == none.num_episodes == len(none.token_turn) == 0


@pytest.mark.parametrize("name", SHARING)
def test_each_method_trains_its_episodes_as_if_it_were_alone(name: str) -> None:
    both, alone = methods(name, "reinforce"), batches.made(name)
    batch = batches.batch_of(both, mixed())
    own = torch.tensor([each.env_id == FIRST for each in mixed()])
    tokens = own[batch.table.episode][batch.table.token_turn]
    credit = alone.credit(select_episodes(batch.table, own))
    assert torch.equal(batch.credit.advantages[tokens], credit.advantages)
    assert batch.credit.metrics.items() >= {f"First/{key}": value for key, value in credit.metrics.items()}.items()

    rows = batch.by_episode()
    found = batches.everything(both, batch, [batch.inputs(rows)])
    batches.assert_same(batches.everything(both, batch, [batch.inputs([row]) for row in rows]), found)
    inputs = batch.inputs([row for row, is_own in zip(rows, own.tolist(), strict=True) if is_own])
    columns = {key.removeprefix("First/"): each for key, each in inputs.columns.items() if key.startswith("First/")}
    expected = batches.everything(alone, batch, [replace(inputs, columns=columns)])
    for leaf in batch.leaves:
        key = f"gradient of loss by {leaf}"
        assert torch.allclose(found[key][tokens], expected[key][tokens], atol=1e-12), leaf
    terms = {key: value for key, value in expected.items() if key.startswith(("terms/", "metrics/"))}
    for key, value in terms.items():
        kind, _, term = key.partition("/")
        assert torch.allclose(found[f"{kind}/First/{term}"], value), key


def test_an_iteration_without_one_environment_trains_the_other() -> None:
    both = methods("gigpo", "grpo")
    episodes = [each for each in mixed() if each.env_id == SECOND]
    batch = batches.batch_of(both, episodes)
    output = both.loss(batch.inputs(batch.by_episode()))
    assert output.terms and all(key.startswith("Second/") for key in output.terms)
    both.update_state(episodes, batch.credit)


def test_methods_read_their_own_metrics_and_keep_their_own_state() -> None:
    both, alone = methods("epo", "epo"), batches.made("epo")
    own = {"loss/entropy_nested": 0.25, "loss/entropy_turn_0": 0.25, "train/steps": 1.0}
    others = {"loss/Second/entropy_nested": 0.75, "loss/Second/entropy_turn_0": 0.5}
    alone.observe(own)
    both.observe({**others, **{key.replace("loss/", "loss/First/"): value for key, value in own.items()}})
    assert both.state()["First"] == alone.state() != both.state()["Second"]
    again = methods("epo", "epo")
    again.load_state(both.state())
    assert again.state() == both.state()


@pytest.mark.parametrize("name", sorted(ALONE))
def test_methods_of_a_whole_run_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} .* (same method|same)\.$"):
        methods(name, "grpo")


def test_methods_that_want_other_teachers_are_refused() -> None:
    parts = [
        Part(env, env, name, build(name, options))
        for env, name, options in [(FIRST, "gkd", {"gkd": {"beta": 0.1}}), (SECOND, "gkd", {})]
    ]
    with pytest.raises(ConfigError, match=r"^gkd of .* differ in their divergence from the teacher"):
        PerEnvironment(parts)
