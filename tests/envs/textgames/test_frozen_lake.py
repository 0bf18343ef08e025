"""Frozen Lake: reachable lakes, slip probabilities, and the solver against brute force and exact evaluation."""

import json
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from turngym.envs.textgames.frozen_lake.env import FrozenLake
from turngym.envs.textgames.frozen_lake.rules import (
    MOVES,
    Lake,
    coordinate_text,
    count_lakes,
    draw_lake,
    grid_text,
    neighbour,
    parse_lake,
    slippery_policy,
    slips,
)

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
# P _ _
# O _ O
# _ _ G
LAKE = Lake(3, 0, 8, frozenset({3, 5}))


def placed(env: FrozenLake, lake: Lake, player: int) -> FrozenLake:
    """Put the environment onto a given lake, through its snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"] = {"lake": grid_text(lake, lake.start), "player": player}
    env.restore(json.dumps(content).encode())
    return env


def lakes(count: int, size: int = 4, num_holes: int = 3) -> list[Lake]:
    generator = np.random.default_rng(size)
    return [draw_lake(generator, size, num_holes, 100) for _ in range(count)]


@pytest.mark.parametrize("size", [3, 4, 7])
def test_neighbours_stay_on_the_lake(size: int) -> None:
    for cell, move in product(range(size**2), MOVES):
        row, column = cell // size + STEPS[move][0], cell % size + STEPS[move][1]
        is_on = 0 <= row < size and 0 <= column < size
        assert neighbour(size, cell, move) == (row * size + column if is_on else cell)


def test_slips_go_to_the_sides_and_never_back() -> None:
    for move in MOVES:
        down, right = STEPS[move]
        assert {STEPS[way] for way in slips(move)} == {(down, right), (right, down), (-right, -down)}


def test_distances_agree_with_relaxation_over_all_cells() -> None:
    for lake in lakes(30):
        distance = {cell: 0.0 if cell == lake.goal else np.inf for cell in range(16)}
        for _ in range(16):
            for cell in set(distance) - lake.holes - {lake.goal}:
                near = [neighbour(4, cell, move) for move in MOVES]
                distance[cell] = min([distance[cell], *(distance[other] + 1 for other in near)])
        reachable = {cell: value for cell, value in distance.items() if np.isfinite(value)}
        assert lake.distances == reachable


def test_a_lake_reads_back_as_it_was_written() -> None:
    for lake in lakes(30, size=5, num_holes=6):
        assert parse_lake(grid_text(lake, lake.start)) == lake


def test_player_shows_where_it_ended() -> None:
    assert [grid_text(LAKE, cell)[row] for cell, row in ((3, 4), (8, 10), (1, 1))] == ["X", "√", "P"]
    assert coordinate_text(LAKE, 1) == "player 0 1 goal 2 2 hole 1 0 hole 1 2"


def test_every_drawn_lake_has_its_holes_and_a_way() -> None:
    for lake in lakes(100, size=5, num_holes=10):
        assert len(lake.holes) == 10 and not lake.holes & {lake.start, lake.goal}
        assert lake.start != lake.goal and lake.start in lake.distances


@pytest.mark.parametrize("num_holes", [0, 1])
def test_counted_lakes_are_the_ones_that_can_be_drawn(num_holes: int) -> None:
    generator = np.random.default_rng(0)
    drawn = {draw_lake(generator, 3, num_holes, 2) for _ in range(6000)}
    assert len(drawn) == count_lakes(3, num_holes, 2)


def test_small_lakes_declare_how_few_there_are() -> None:
    assert FrozenLake(3, 0.0).finite_instances == 72
    assert FrozenLake(3, 0.0, max_turns=1).finite_instances == 24  # twelve edges of the 3 x 3 grid, both ways
    assert FrozenLake().finite_instances is None


@pytest.mark.parametrize("options", [{}, {"size": 10, "hole_share": 0.3}, {"size": 3}, {"view": "coordinates"}])
def test_expert_takes_a_shortest_way_on_firm_ice(options: dict[str, Any]) -> None:
    env = FrozenLake(**options)
    for seed in range(200):
        env.reset(seed=seed)
        lake = parse_lake(env.instance)
        terminated, info = False, dict[str, Any]()
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated
        assert info["success"] == 1 and env.turn == lake.distances[lake.start]


def success_rate(lake: Lake, policy: tuple[str, ...], turns: int = 2000) -> float:
    """Probability of reaching the goal, from the exact distribution over cells."""
    cells = lake.size**2
    matrix = np.zeros((cells, cells))
    for cell in range(cells):
        if cell == lake.goal or cell in lake.holes:
            matrix[cell, cell] = 1
        else:
            for way in slips(policy[cell]):
                matrix[cell, neighbour(lake.size, cell, way)] += 1 / 3
    return float(np.linalg.matrix_power(matrix, turns)[lake.start, lake.goal])


def discounted(lake: Lake, policy: tuple[str, ...]) -> float:
    """Discounted value of a policy, by solving its linear equations."""
    cells = lake.size**2
    matrix, reward = np.eye(cells), np.zeros(cells)
    for cell in range(cells):
        if cell == lake.goal:
            reward[cell] = 1
        elif cell not in lake.holes:
            for way in slips(policy[cell]):
                matrix[cell, neighbour(lake.size, cell, way)] -= 0.99 / 3
    return float(np.linalg.solve(matrix, reward)[lake.start])


def test_slippery_policy_is_the_best_of_all_policies() -> None:
    """Five cells where a choice matters: try all 4**5 policies and compare values."""
    lake = Lake(3, 0, 8, frozenset({3, 5}))
    free = [cell for cell in range(9) if cell not in lake.holes and cell != lake.goal]
    best = 0.0
    for choice in product(MOVES, repeat=len(free)):
        moves = dict(zip(free, choice, strict=True))
        best = max(best, discounted(lake, tuple(moves.get(cell, "up") for cell in range(9))))
    assert discounted(lake, slippery_policy(lake)) == pytest.approx(best, abs=1e-6)


def test_no_single_change_improves_the_slippery_policy() -> None:
    for lake in lakes(10):
        policy = slippery_policy(lake)
        value = discounted(lake, policy)
        for cell, move in product(range(16), MOVES):
            assert discounted(lake, (*policy[:cell], move, *policy[cell + 1 :])) <= value + 1e-6


def test_shortest_way_is_worse_than_the_slippery_policy_on_slippery_ice() -> None:
    """Negative oracle: an expert that ignored the slips would be caught by this comparison."""
    gains = []
    for lake in lakes(20, num_holes=4):
        around = [{move: lake.distances.get(neighbour(4, cell, move), 99) for move in MOVES} for cell in range(16)]
        towards = tuple(min(near, key=near.__getitem__) for near in around)
        gains.append(success_rate(lake, slippery_policy(lake)) - success_rate(lake, towards))
    assert min(gains) > -0.02 and max(gains) > 0.2


def test_slips_are_equally_likely() -> None:
    """3000 moves from the middle of an open lake; each way 1000, standard deviation 26."""
    lake = Lake(3, 4, 0, frozenset())
    env = placed(FrozenLake(3, 0.0, slippery=True), lake, 4)
    start = env.snapshot()
    seen: Counter[int] = Counter()
    for _ in range(3000):
        content = json.loads(start)
        content["generator"] = env.np_random.bit_generator.state
        env.restore(json.dumps(content).encode())
        env.step("up")
        seen[env._player] += 1
    assert set(seen) == {1, 3, 5}
    assert all(abs(count - 1000) < 130 for count in seen.values())


def test_firm_ice_never_slips() -> None:
    env = placed(FrozenLake(3), Lake(3, 4, 0, frozenset()), 4)
    assert [env.step(move)[0].index("P") for move in ("up", "right", "down", "down")] == [1, 2, 6, 10]


def test_slippery_expert_reaches_the_goal_as_often_as_computed() -> None:
    env = FrozenLake(slippery=True, max_turns=300)
    expected, reached = 0.0, 0
    for seed in range(200):
        env.reset(seed=seed)
        lake = parse_lake(env.instance)
        expected += success_rate(lake, slippery_policy(lake), 300)
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            over = terminated or truncated
        reached += info["success"]
    assert abs(reached - expected) < 15  # standard deviation at most sqrt(200) / 2 = 7


def test_hole_ends_the_episode_without_success() -> None:
    env = placed(FrozenLake(3, hole_reward=-1.0, step_reward=-0.5), LAKE, 0)
    observation, reward, terminated, truncated, info = env.step("down")
    assert observation == "___\nX_O\n__G"
    assert (reward, terminated, truncated, info["success"], info["progress"]) == (-1.5, True, False, 0, 0.0)
    with pytest.raises(ValueError, match="no expert action after the episode has ended"):
        env.expert_action()


def test_goal_ends_the_episode_with_success() -> None:
    env = placed(FrozenLake(3, goal_reward=2.0), LAKE, 7)
    observation, reward, terminated, _, info = env.step("right")
    assert observation.endswith("_√") and (reward, terminated, info["success"], info["progress"]) == (2.0, True, 1, 1.0)


def test_legal_actions_stay_on_firm_ice_and_are_all_on_slippery_ice() -> None:
    env = placed(FrozenLake(3), LAKE, 0)
    assert env.legal_actions() == ("right", "down")
    assert env.step("up")[4]["action_is_valid"], "a move against the edge is understood"
    assert set(placed(FrozenLake(3, slippery=True), LAKE, 0).legal_actions()) == set(MOVES)


def test_progress_is_the_share_of_the_way() -> None:
    env = placed(FrozenLake(3), LAKE, 0)
    assert [env.step(move)[4]["progress"] for move in ("right", "down", "up", "left")] == [0.25, 0.5, 0.25, 0.0]


def test_unknown_action_is_answered_and_does_not_slip() -> None:
    env = placed(FrozenLake(3, slippery=True), LAKE, 0)
    before = env.np_random.bit_generator.state
    observation, _, _, _, info = env.step("north")
    assert observation == "Unknown action: answer with up, down, left or right.\nP__\nO_O\n__G"
    assert info["anchor"] == "P__\nO_O\n__G" and not info["action_is_valid"]
    assert env.np_random.bit_generator.state == before


def test_instructions_tell_of_the_slips() -> None:
    assert "slippery" in FrozenLake(slippery=True).instructions
    assert "slippery" not in FrozenLake().instructions


OPTION_OUT_OF_RANGE_IS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"size": 2}, r"size of .* must be a whole number in \[3, 10\], got 2"),
    ({"size": 11}, r"got 11"),
    ({"hole_share": 0.6}, r"hole_share of .* must be a number in \[0\.0, 0\.5\], got 0\.6"),
    ({"hole_share": -0.1}, r"got -0\.1"),
    ({"slippery": 1}, r"slippery of .* must be True or False, got 1"),
    ({"view": "picture"}, r"view of .* got 'picture'\."),
    ({"max_turns": 0}, r"max_turns of .* got 0"),
    ({"goal_reward": None}, r"goal_reward of .* got None"),
]


def test_option_out_of_range_is_refused() -> None:
    for options, message in OPTION_OUT_OF_RANGE_IS_REFUSED:
        with pytest.raises(ValueError, match=message):
            FrozenLake(**options)


def test_a_lake_that_cannot_exist_is_named() -> None:
    with pytest.raises(ValueError, match="no lake of size 3 with 0 holes and a goal at most 0 moves away"):
        draw_lake(np.random.default_rng(0), 3, 0, 0)
