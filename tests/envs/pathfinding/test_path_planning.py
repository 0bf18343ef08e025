"""Planners on grids: known optima, joint-state search, plans without collisions; and the rules of collisions."""

from itertools import pairwise

import numpy as np
import pytest
from joint_states import optimum

from turngym.envs.pathfinding.grid import Collision, Grid, advance
from turngym.envs.pathfinding.layouts import LAYOUTS, draw_problem, largest_part
from turngym.envs.pathfinding.planning import (
    Plan,
    Problem,
    conflict_based_search,
    conflicts,
    costs,
    find_path,
    lower_bound,
    prioritized,
)

RING = Problem(Grid(("....", ".##.", ".##.", "....")), (0, 3), (3, 0))
BAY = Problem(Grid(("#.#", "...", "###")), (3, 5), (5, 3))


def small(seed: int, *, agents: int = 3, vanish: bool = False) -> Problem:
    generator = np.random.default_rng(seed)
    while True:
        grid = LAYOUTS["random"](generator, 3, 0.2)
        part = largest_part(grid)
        if len(part) > agents:
            starts, goals = [tuple(generator.permutation(part)[:agents].tolist()) for _ in range(2)]
            return Problem(grid, starts, goals, vanish)


def require_plan(problem: Problem, plan: Plan) -> None:
    """Check that a plan leads every agent to its goal without a collision."""
    assert not conflicts(plan, problem.vanish)
    for path, start, goal in zip(plan, problem.starts, problem.goals, strict=True):
        assert path[0] == start and path[-1] == goal
        assert all(problem.grid.move(one, other) for one, other in pairwise(path) if one != other)
    now, rules = list(problem.starts), problem.vanish
    for time in range(1, costs(plan)[1] + 1):
        there = [agent for agent, path in enumerate(plan) if not (rules and time >= len(path))]
        wanted = [plan[agent][min(time, len(plan[agent]) - 1)] for agent in there]
        assert advance([now[agent] for agent in there], wanted) == wanted
        for agent, cell in zip(there, wanted, strict=True):
            now[agent] = cell


def test_a_ring_and_a_bay_have_their_known_optima() -> None:
    for plan in (conflict_based_search(RING), prioritized(RING)):
        assert plan is not None and costs(plan) == (12, 9)
        require_plan(RING, plan)
    assert optimum(RING) == 12
    circle = Problem(Grid(("..", "..")), (0, 1, 3, 2), (1, 3, 2, 0))
    assert optimum(circle) == 4 and costs(conflict_based_search(circle) or ()) == (4, 1)
    plan = conflict_based_search(BAY)
    assert plan is not None and costs(plan) == (7, 4) and optimum(BAY) == 7
    assert prioritized(BAY) is None


def test_agents_that_cannot_pass_each_other_have_no_plan() -> None:
    corridor = Problem(Grid((".....",)), (0, 4), (4, 0))
    assert [optimum(corridor), conflict_based_search(corridor), prioritized(corridor)] == [None] * 3
    same_goal = Problem(Grid(("...",)), (0, 2), (1, 1))
    assert [optimum(same_goal), conflict_based_search(same_goal), prioritized(same_goal)] == [None] * 3
    apart = Problem(Grid((".#.",)), (0,), (2,))
    assert [find_path(apart, 0), conflict_based_search(apart), prioritized(apart)] == [None] * 3


@pytest.mark.parametrize("vanish", [False, True])
def test_conflict_based_search_finds_the_optimum_of_joint_states(vanish: bool) -> None:
    for seed in range(20):
        problem = small(seed, vanish=vanish)
        best, plan = optimum(problem), conflict_based_search(problem)
        assert best == (None if plan is None else costs(plan)[0])
        assert best is None or best >= lower_bound(problem)
        for each in (plan, prioritized(problem)):
            if each is not None:
                require_plan(problem, each)
                assert best is not None and costs(each)[0] >= best


@pytest.mark.parametrize(("layout", "size"), [("random", 8), ("maze", 9), ("rooms", 11)])
def test_drawn_problems_are_solved_in_time(layout: str, size: int) -> None:
    generator = np.random.default_rng(3)
    for _ in range(5):
        problem = draw_problem(generator, layout, size, 0.2, 3, most_steps=40)  # type: ignore[arg-type]
        assert problem is not None and len({*problem.starts}) == len({*problem.goals}) == 3
        plan = prioritized(problem)
        assert plan is not None and costs(plan)[1] <= 40
        require_plan(problem, plan)


def test_draws_that_are_too_far_apart_are_not_planned() -> None:
    prioritized.cache_clear()
    assert draw_problem(np.random.default_rng(3), "random", 16, 0.3, 10, most_steps=1) is None
    assert prioritized.cache_info().misses == 0


@pytest.mark.parametrize(
    ("rule", "here", "wanted", "after"),
    [
        ("soft", [0, 2], [1, 1], [1, 2]),  # one cell for two: the first gets it
        ("soft", [0, 1], [1, 0], [0, 1]),  # no swap
        ("soft", [0, 1, 2], [1, 2, 3], [1, 2, 3]),  # one after the other
        ("soft", [1, 0, 2], [2, 1, 2], [1, 0, 2]),  # behind one that is blocked
        ("soft", [0, 1, 4, 3], [1, 4, 3, 0], [1, 4, 3, 0]),  # in a circle
        ("priority", [0, 1], [1, 2], [0, 2]),
        ("priority", [1, 0], [2, 1], [2, 1]),
        ("block_both", [0, 2], [1, 1], [0, 2]),
        ("block_both", [1, 0], [2, 1], [2, 0]),
    ],
)
def test_rules_of_collisions(rule: Collision, here: list[int], wanted: list[int], after: list[int]) -> None:
    """Each case is what POGEMA 1.4.0 does."""
    assert advance(here, wanted, rule) == after
