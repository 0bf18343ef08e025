"""The suites of the shop, the questions and the sites: held-out tasks, random play at the bottom, the oracle on top."""

import pytest

from turngym.agents.players.expert import ExpertAgent
from turngym.agents.players.random import RandomAgent
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.suites import SUITES
from turngym.envs.search.questions import KINDS


@pytest.mark.parametrize("name", ["webshop", "searchqa", "website"])
def test_the_suite_plays_distinct_tasks_of_the_test_split(name: str) -> None:
    for entry in SUITES[name].entries:
        assert entry.env_kwargs["split"] == "test"
        seeds = entry.find_seeds(20)
        assert len(set(seeds)) == 20


def test_searchqa_has_every_kind_of_question() -> None:
    assert [entry.options["kind"] for entry in SUITES["searchqa"].entries] == list(KINDS)


@pytest.mark.parametrize("name", ["webshop", "searchqa", "website"])
def test_the_oracle_solves_the_suite_and_random_play_does_not(name: str) -> None:
    suite = SUITES[name]
    assert evaluate(suite, ExpertAgent(), episodes=8).mean.value == 1.0
    assert evaluate(suite, RandomAgent(), episodes=8).mean.value < 0.4
