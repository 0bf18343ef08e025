"""The suites of tools: held-out tasks, the oracle at the top, random play at the bottom."""

import shutil

import pytest

from turngym.agents.players.expert import ExpertAgent
from turngym.agents.players.random import RandomAgent
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.suites import SUITES
from turngym.envs.instances import split_of
from turngym.envs.tools.code_repair.env import faulty_task
from turngym.envs.tools.code_repair.faults import faults

needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def test_the_whole_test_split_of_faults_is_played() -> None:
    for count, entry in zip((1, 2), SUITES["code-repair"].entries, strict=True):
        texts = {f"{task.text}\n{task.start}" for task in map(faulty_task, faults(count))}
        assert sum(split_of(text) == "test" for text in texts) == entry.episodes


@needs_sandbox
@pytest.mark.parametrize(
    "name",
    [
        "math-python",
        "code-repair",
        *(pytest.param(name, marks=pytest.mark.integration) for name in ("service", "terminal", "repo", "sql", "ask")),
    ],
)
def test_the_oracle_solves_the_suite_and_random_play_does_not(name: str) -> None:
    suite = SUITES[name]
    episodes = 1 if name in ("terminal", "repo") else 3  # of each entry, of which these have many
    seeds = [entry.find_seeds(3) for entry in suite.entries]
    assert {entry.env_kwargs["split"] for entry in suite.entries} == {"test"}
    assert {len(set(each)) for each in seeds} == {3}
    assert evaluate(suite, ExpertAgent(), episodes=episodes).mean.value == 1.0
    assert evaluate(suite, RandomAgent(), episodes=episodes).mean.value < 0.1
