"""The suite ``turngym-core``: balanced, free of heavy needs, and its committed rows are those that playing gives."""

import json
import math
from pathlib import Path

import gymnasium
import pytest

from turngym.agents.episodes.evaluate import evaluate
from turngym.agents.intervals import wilson
from turngym.agents.players.random import RandomAgent
from turngym.benchmarks.cli.options.parsing import make_text_env
from turngym.benchmarks.evaluation.rulesets import ruleset_hash
from turngym.benchmarks.suites import SUITES, SuiteEntry
from turngym.benchmarks.suites.turngym_core import EPISODES, FAMILIES, OPPONENT
from turngym.envs.checks.players import PLAYERS, compare_all
from turngym.envs.registration import specs

CORE = SUITES["turngym-core"]
RESULT = Path(__file__).parents[3] / "benchmarks" / "results" / "turngym-core.json"
ROWS = json.loads(RESULT.read_text("utf8"))


def test_every_family_has_as_many_environments_and_each_as_many_episodes() -> None:
    assert {len(names) for names in FAMILIES.values()} == {3} and len(FAMILIES) == 6
    listed = [f"turngym/{name}" for names in FAMILIES.values() for name in names]
    assert [entry.env_id for entry in CORE.entries] == listed and len(set(listed)) == 18
    assert {entry.episodes for entry in CORE.entries} == {EPISODES}
    boards = {f"turngym/{name}" for name in FAMILIES["boards"]}
    for entry in CORE.entries:  # of the test split, with default options but for the opponents
        assert dict(entry.options) == ({"opponents": OPPONENT} if entry.env_id in boards else {})


def test_no_environment_needs_an_extra_package() -> None:
    known = specs()
    assert [entry.env_id for entry in CORE.entries if known[entry.env_id].extra] == []


@pytest.mark.parametrize("entry", CORE.entries, ids=lambda entry: str(entry.env_id))
def test_tasks_and_rules_are_those_of_the_committed_rows(entry: SuiteEntry) -> None:
    """Else the rows must be played anew, and the version of the suite counted up."""
    committed = next(each for each in ROWS["environments"] if each["label"] == entry.label)
    assert list(entry.find_seeds()) == committed["seeds"] and len(set(committed["seeds"])) == EPISODES
    assert ruleset_hash(entry.env_id, entry.env_kwargs) == committed["ruleset_hash"]


def test_instances_are_held_out_wherever_there_are_enough() -> None:
    for entry in CORE.entries:
        env = make_text_env(entry.env_id, entry.env_kwargs)
        assert env.finite_instances is None, f"{entry.env_id} is too small to have a test split"
        env.close()


def test_the_committed_rows_are_complete_and_separate_the_two_players() -> None:
    assert (ROWS["suite"], ROWS["version"], ROWS["metric"]) == (CORE.name, CORE.version, CORE.metric)
    labels = {entry.label for entry in CORE.entries}
    for player in ("random", "expert"):
        assert ROWS["rows"][player]["environments"].keys() == labels
    for label in labels:
        random, expert = (ROWS["rows"][player]["environments"][label]["success"] for player in ("random", "expert"))
        assert random["n_games"] == expert["n_games"] == EPISODES
        assert expert["value"] >= random["value"] + 0.25, label


def test_the_mean_of_the_rows_weighs_environments_alike() -> None:
    for row in ROWS["rows"].values():
        found = [numbers["success"] for numbers in row["environments"].values()]
        assert row["mean"]["value"] == pytest.approx(sum(x["value"] for x in found) / 18, abs=1e-9)
        assert row["mean"]["stderr"] == pytest.approx(math.sqrt(sum(x["stderr"] ** 2 for x in found)) / 18, abs=1e-9)
        for each in found:
            low, high = wilson(round(each["value"] * EPISODES), EPISODES)
            assert (each["ci_low"], each["ci_high"]) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize("name", ["FrozenLake-v0", "Wordle-v0", "TicTacToeSeat-v0", "SearchQA-v0"])
def test_playing_a_part_again_gives_the_committed_random_row(name: str) -> None:
    env_id = f"turngym/{name}"
    entry = next(entry for entry in CORE.entries if entry.env_id == env_id)
    result, _ = evaluate(env_id, RandomAgent(0), seeds=entry.find_seeds(), env_kwargs=entry.env_kwargs)
    committed = ROWS["rows"]["random"]["environments"][entry.label]
    assert result.success.value == committed["success"]["value"]
    assert result.turns.value == pytest.approx(committed["turns"]["value"], abs=1e-9)


@pytest.mark.parametrize("name", FAMILIES["boards"])
def test_no_player_without_skill_beats_random_play_on_the_boards(name: str) -> None:
    """One line filled without a look at the board won 87 % of the games with a random opponent."""
    entry = next(entry for entry in CORE.entries if entry.env_id == f"turngym/{name}")
    env = gymnasium.make(entry.env_id, **entry.env_kwargs)
    players = [name for name in PLAYERS if "legal" in name or "alphabetically" in name or "winner" in name]
    rows = compare_all(env, range(20), players=players)
    assert not [row for row in rows if row.p < 0.05 / len(rows)]
    assert max(row.mean for row in rows if row.measure == "success") < 0.3


def test_every_environment_is_registered_under_its_id() -> None:
    assert all(entry.env_id in gymnasium.registry for entry in CORE.entries)
