"""Tower of Hanoi: the rules against stacks of discs, the solution against breadth-first search from every state."""

import json
from collections import deque
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.tower_of_hanoi import PEGS, Discs, TowerOfHanoi, pegs_text, solution, top, transition


def placed(env: TowerOfHanoi, discs: Discs) -> TowerOfHanoi:
    """Put the discs where they are wanted, through the snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"] = list(discs)
    env.restore(json.dumps(content).encode())
    return env


def stacks(discs: Discs) -> list[list[int]]:
    return [[disc for disc in reversed(range(len(discs))) if discs[disc] == peg] for peg in range(3)]


def moves_left(count: int) -> dict[Discs, int]:
    """Fewest moves to the finished tower from every placement: breadth-first, moves can be undone."""
    goal = (2,) * count
    queue, lengths = deque([goal]), {goal: 0}
    while queue:
        discs = queue.popleft()
        for source, target in product(range(3), repeat=2):
            after = transition(discs, source, target)
            if not isinstance(after, str) and after not in lengths:
                lengths[after] = lengths[discs] + 1
                queue.append(after)
    return lengths


@pytest.mark.parametrize("count", [2, 3, 4])
def test_transition_agrees_with_stacks(count: int) -> None:
    for discs in product(range(3), repeat=count):
        for source, target in product(range(3), repeat=2):
            pegs = stacks(discs)
            is_legal = source != target and pegs[source] and (not pegs[target] or pegs[source][-1] < pegs[target][-1])
            after = transition(discs, source, target)
            assert isinstance(after, str) == (not is_legal)
            if is_legal:
                pegs[target].append(pegs[source].pop())
                assert stacks(tuple(after)) == pegs  # type: ignore[arg-type]
            assert [top(discs, peg) for peg in range(3)] == [peg[-1] if peg else None for peg in stacks(discs)]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_solution_is_shortest_from_every_placement(count: int) -> None:
    lengths = moves_left(count)
    assert len(lengths) == 3**count, "every placement can be solved"
    for discs, length in lengths.items():
        moves, first = solution(discs)
        assert moves == length
        if length:
            assert first is not None
            after = transition(discs, *first)
            assert not isinstance(after, str) and lengths[after] == length - 1
        else:
            assert first is None


@pytest.mark.parametrize(("discs", "start"), [(2, "random"), (5, "random"), (8, "random"), (3, "tower"), (8, "tower")])
def test_expert_solves_within_the_smallest_turn_limit(discs: int, start: str) -> None:
    env = TowerOfHanoi(discs, start, max_turns=2**discs - 1)
    for seed in range(200 if discs < 8 else 20):
        env.reset(seed=seed)
        terminated, progress = False, env.progress()
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated and info["progress"] > progress
            progress = info["progress"]
        assert info["success"] == 1 and progress == 1


def test_random_starts_are_all_placements_but_the_solved_one() -> None:
    env = TowerOfHanoi(2, "random")
    seen = set()
    for seed in range(200):
        env.reset(seed=seed)
        seen.add(env.instance)
    assert seen == {pegs_text(discs) for discs in product(range(3), repeat=2)} - {pegs_text((2, 2))}
    assert env.finite_instances == len(seen) == 8


def test_tower_start_is_one_instance_in_every_split() -> None:
    assert TowerOfHanoi().finite_instances == 1
    assert {TowerOfHanoi(split=split).reset(seed=1)[0] for split in ("train", "dev", "test")} == {"A: 3 2 1\nB:\nC:"}


@pytest.mark.parametrize(
    ("action", "note"),
    [
        ("B C", "Illegal move: peg B is empty."),
        ("A A", "Illegal move: the two pegs must differ."),
        ("A C", "Illegal move: disc 2 would lie on the smaller disc 1."),
        ("A", "Unknown action: answer with two pegs, for example A C."),
        ("AC", "Unknown action: answer with two pegs, for example A C."),
        ("A D", "Unknown action: answer with two pegs, for example A C."),
        ("move A C", "Unknown action: answer with two pegs, for example A C."),
    ],
)
def test_illegal_and_unknown_actions_are_answered_and_change_nothing(action: str, note: str) -> None:
    env = placed(TowerOfHanoi(2), (2, 0))
    observation, reward, terminated, _, info = env.step(action)
    assert observation == f"{note}\nA: 2\nB:\nC: 1"
    assert (reward, terminated, info["action_is_valid"], info["anchor"]) == (0.0, False, False, "A: 2\nB:\nC: 1")


@pytest.mark.parametrize("action", ["A B", " a  b\n", "a B"])
def test_case_and_blanks_do_not_matter(action: str) -> None:
    env = placed(TowerOfHanoi(2), (2, 0))
    observation, *_, info = env.step(action)
    assert observation == "A:\nB: 2\nC: 1" and info["action_is_valid"]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_legal_actions_are_the_moves_that_the_rules_allow(count: int) -> None:
    env = TowerOfHanoi(count)
    for discs in product(range(3), repeat=count):
        allowed = [
            f"{PEGS[source]} {PEGS[target]}"
            for source, target in product(range(3), repeat=2)
            if not isinstance(transition(discs, source, target), str)
        ]
        assert placed(env, discs).legal_actions() == tuple(allowed)


def test_rewards_and_end() -> None:
    env = placed(TowerOfHanoi(2, step_reward=-0.25, solve_reward=2.0), (1, 0))
    steps = [env.step(action) for action in ("A C", "A C", "B C")]
    assert [step[1] for step in steps] == [-0.25, -0.25, 1.75]
    assert [step[2] for step in steps] == [False, False, True]
    assert steps[-1][0] == "A:\nB:\nC: 2 1" and steps[-1][4]["success"] == 1
    with pytest.raises(ValueError, match="no expert action after the episode has ended"):
        env.expert_action()


def test_turn_limit_defaults_to_twice_the_longest_solution() -> None:
    env = TowerOfHanoi(2)
    env.reset(seed=0)
    flags = [env.step("?")[2:4] for _ in range(6)]
    assert flags == [(False, False)] * 5 + [(False, True)]


@settings(max_examples=60)
@given(st.lists(st.text() | st.sampled_from(["A B", "B A", "A C", "C A", "B C", "C B"]), max_size=14))
def test_any_text_is_accepted_and_discs_stay_ordered(actions: list[str]) -> None:
    env = TowerOfHanoi(3, max_turns=100)
    env.reset(seed=1)
    for action in actions:
        legal = env.legal_actions()
        _, _, terminated, _, info = env.step(action)
        assert info["action_is_valid"] or action not in legal
        pegs = [[int(disc) for disc in line.split()[1:]] for line in info["anchor"].split("\n")]
        assert all(peg == sorted(peg, reverse=True) for peg in pegs) and sorted(pegs[0] + pegs[1] + pegs[2]) == [
            1,
            2,
            3,
        ]
        if terminated:
            break


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discs": 1}, r"discs of .* must be a whole number in \[2, 8\], got 1"),
        ({"discs": 9}, r"got 9"),
        ({"discs": "3"}, r"got '3'"),
        ({"start": "towers"}, r"start of .* got 'towers'\. Did you mean 'tower'\?"),
        ({"max_turns": 6}, r"is 6, but 3 discs can need 7 moves: pass max_turns=7 or more"),
        ({"max_turns": 0}, r"max_turns of .* got 0"),
        ({"solve_reward": "1"}, r"solve_reward of .* got '1'"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TowerOfHanoi(**options)
