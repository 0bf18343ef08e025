"""Ask: exact gains, solvable instances, snapshots, nothing that leads to what is hidden but questions."""

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from turngym.envs.ask.belief import Belief, entropy
from turngym.envs.ask.env import KINDS, Ask
from turngym.envs.ask.problem import plain
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError
from turngym.seeding import stream

HARD: dict[str, Any] = {"level": 3, "max_turns": 9}


@pytest.mark.parametrize("options", [{}, {"level": 1, "reward": "dense"}, {"kind": "intent"}])
def test_expert_finds_what_is_meant(options: dict[str, Any]) -> None:
    env = Ask(**options)
    for seed in range(30):
        _, info = env.reset(seed=seed)
        rewards, last = 0.0, 0.0
        while info["success"] < 0:
            action = env.expert_action()
            assert action in info["legal_actions"]
            _, last, _, _, info = env.step(action)
            rewards += last
        assert info["success"] == 1 and info["progress"] == 1.0 and last == 1.0
        assert rewards == pytest.approx(1.0 - 0.02 * (env.turn - 1) + (options.get("reward") == "dense"))


def test_few_questions_are_enough_for_most() -> None:
    env, won, count = Ask(**HARD), 0, 40
    for seed in range(count):
        _, info = env.reset(seed=seed)
        while info["success"] < 0:
            info = env.step(env.expert_action())[4]
        won += info["success"]
    assert won >= 0.95 * count


@pytest.mark.parametrize("kind", KINDS)
def test_gains_are_those_of_the_posterior_by_enumeration(kind: str) -> None:
    """Against Bayes' rule over all candidates and answers, without what the environment computes with."""
    env = Ask(kind=kind)
    for seed in range(5):
        env.reset(seed=seed)
        problem, belief = env._problem, env.belief
        left = set(range(len(problem.names)))
        for question in stream("ask test", seed).permutation(len(problem.questions)):
            before = _entropy([int(problem.weights[each]) for each in left])
            groups: dict[int, list[int]] = {}
            for each in left:
                groups.setdefault(int(problem.answers[each, question]), []).append(each)
            total = sum(int(problem.weights[each]) for each in left)
            expected = before
            for group in groups.values():
                weights = [int(problem.weights[each]) for each in group]
                expected -= sum(weights) / total * _entropy(weights)
            info = env.step(f"ask {problem.questions[question]}")[4]
            left = set(groups[belief.asked[int(question)]])
            after = _entropy([int(problem.weights[each]) for each in left])
            columns = info["columns"]
            assert columns["expected_gain"] == pytest.approx(expected, abs=1e-6)
            assert columns["information_gain"] == pytest.approx(before - after, abs=1e-6)
            assert columns["entropy"] == pytest.approx(after, abs=1e-6)
            assert columns["best_gain"] >= columns["expected_gain"]
            assert set(belief.left) == left and env.hidden in {problem.names[each] for each in left}


def _entropy(weights: list[int]) -> float:
    total = sum(weights)
    return math.fsum(-each / total * math.log2(each / total) for each in weights)


def test_greedy_questions_are_close_to_the_shortest_tree() -> None:
    """Expected questions until one candidate is left, against the least of all trees, found by dynamic programming."""
    generator = np.random.default_rng(0)
    for _ in range(5):
        full = KINDS["intent"](generator, 1).build()
        problem = full if len(full.names) <= 27 else pytest.fail("more candidates than the level has")
        places = frozenset(range(len(problem.names)))

        def split(left: frozenset[int], question: int, problem: Any = problem) -> list[frozenset[int]]:
            groups: dict[int, set[int]] = {}
            for each in left:
                groups.setdefault(int(problem.answers[each, question]), set()).add(each)
            return [frozenset(group) for group in groups.values()]

        def weight(left: frozenset[int], problem: Any = problem) -> int:
            return sum(int(problem.weights[each]) for each in left)

        def cost(left: frozenset[int], is_greedy: bool, problem: Any = problem) -> float:
            if len(left) == 1:
                return 0.0
            useful = [groups for q in range(len(problem.questions)) if len(groups := split(left, q)) > 1]
            if is_greedy:
                useful = [max(useful, key=lambda groups: entropy([weight(each) for each in groups]))]
            return min(weight(left) + sum(cost(each, is_greedy) for each in groups) for groups in useful)

        assert cost(places, True) <= 1.1 * cost(places, False)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_meant_follows_the_weights_and_not_the_place(kind: str) -> None:
    env, places, expected, count = Ask(kind=kind), Counter[int](), 0.0, 400
    for seed in range(count):
        env.reset(seed=seed)
        half = len(env._problem.names) // 2
        places[int(env._hidden < half)] += 1
        expected += float(env._problem.weights[:half].sum() / env._problem.weights.sum())
    assert abs(places[1] - expected) < 4 * math.sqrt(count / 4)


@pytest.mark.parametrize("kind", KINDS)
def test_random_guesses_succeed_seldom(kind: str) -> None:
    env, won, count = Ask(kind=kind), 0, 200
    for seed in range(count):
        _, info = env.reset(seed=seed)
        generator = stream("ask random", seed)
        while info["success"] < 0:
            legal = info["legal_actions"]
            info = env.step(legal[int(generator.integers(len(legal)))])[4]
        won += info["success"]
    assert won <= 0.03 * count


def test_every_candidate_can_be_told_from_the_others() -> None:
    for kind, make in KINDS.items():
        for level, fewest in ((1, 15), (2, 90), (3, 180)):
            problem = make(stream("ask", kind, level), level).build()
            spellings = {plain(name) for name in problem.names}
            assert len({tuple(row) for row in problem.answers.tolist()}) == len(problem.names) == len(spellings)
            assert all(name in problem.opening for name in problem.names[:3]) or kind == "intent"
            assert len(problem.names) >= fewest or kind == "intent"
            belief = Belief(problem)
            assert belief.start == entropy(problem.weights.tolist())


def test_snapshots_continue_equally_from_every_turn() -> None:
    for kind in KINDS:
        env, twin = Ask(kind=kind), Ask(kind=kind)
        for seed in range(5):
            actions, snapshots, seen = list[str](), list[bytes](), list[Any]()
            _, info = env.reset(seed=seed)
            while info["success"] < 0:
                snapshots.append(env.snapshot())
                actions.append(env.expert_action() if len(actions) != 1 else "ask nothing")
                seen.append(env.step(actions[-1]))
                info = seen[-1][4]
            for turn, snapshot in enumerate(snapshots):
                twin.restore(snapshot)
                assert twin.snapshot() == snapshot
                assert [twin.step(action) for action in actions[turn:]] == seen[turn:]


def bits(value: Any) -> dict[str, Any]:
    return {"bits": dict.fromkeys(("information_gain", "expected_gain", "best_gain", "entropy"), value)}


@pytest.mark.parametrize(
    "damage",
    [
        *({"number": -1}, {"hidden": 100}, {"hidden": True}, {"asked": [99]}, {"asked": 3}, {"asked": [0, 0]}),
        *({"bits": {}}, {"bits": 1}, bits("nan"), bits("1"), bits(math.inf), bits([1])),
    ],
)
def test_damaged_snapshots_are_refused(damage: dict[str, Any]) -> None:
    env = Ask()
    env.reset(seed=0)
    saved = env.snapshot()
    content = json.loads(saved)
    content["state"] |= damage
    with pytest.raises(ConfigError, match="damaged"):
        env.restore(json.dumps(content).encode())
    assert env.snapshot() == saved


@pytest.mark.parametrize(
    "text",
    ["", "ask", "guess", "ask who it is", "guess everything", "ask the answer | guess it", "success", "a" * 50_000],
)
def test_other_texts_are_answered_and_change_nothing(text: str) -> None:
    env = Ask()
    _, before = env.reset(seed=0)
    observation, reward, _, _, info = env.step(text)
    assert observation.startswith("That is no action: ") and not info["action_is_valid"] and reward == 0
    assert info["anchor"] == before["anchor"] and info["columns"]["information_gain"] == 0


def test_native_calls_are_the_same_actions() -> None:
    env = Ask(kind="intent")
    env.reset(seed=0)
    slot = env._problem.questions[0]
    assert env.step(write_call("ask", {"about": slot}))[0].startswith(f"{slot}: ")
    assert env.step(write_call("guess", {"name": env.hidden.replace(", ", ",")}))[0] == "Right."


@pytest.mark.parametrize("said", ["guess {spaced}", "Guess {titled}.", "GUESS {spaced} .", "guess  {name}\n"])
def test_a_guess_may_lack_commas_and_have_capitals_and_a_full_stop(said: str) -> None:
    env = Ask(kind="intent")
    env.reset(seed=0)
    assert "guess VALUE, VALUE, ...\n" in env.instructions and "guess NAME\n" in Ask().instructions
    name = env.hidden
    env.step(f"Ask {env._problem.questions[0].upper()}.")
    assert len(env.belief.asked) == 1
    assert env.step(said.format(name=name, spaced=name.replace(",", ""), titled=name.title()))[0] == "Right."


def test_a_question_asked_twice_tells_nothing_more() -> None:
    env = Ask()
    env.reset(seed=0)
    action = env.expert_action()
    first, second = env.step(action), env.step(action)
    assert first[0] == second[0] and second[4]["columns"]["information_gain"] == 0
    assert second[4]["columns"]["expected_gain"] == 0 and second[1] == first[1]
