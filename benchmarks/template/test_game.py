"""Treasure Hunt keeps the contract, its rules are right, and every task can be solved."""

from turngym import check
from turngym.benchmarks.template.game import TreasureHunt, candidates, cells, distance


def test_it_keeps_every_promise_of_an_environment() -> None:
    """Check every promise of the contract; a failure says what is broken, why it matters and how to fix it."""
    assert not check(TreasureHunt).failed


def test_distance_is_the_number_of_steps_of_a_walk() -> None:
    """Compare with a search that spreads out from one cell step by step."""
    start = 3, 6
    reached, steps = {start}, 0
    while len(reached) < len(cells(8)):
        assert all(distance(start, cell) <= steps for cell in reached)
        neighbours = {(x + dx, y + dy) for x, y in reached for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}
        new, steps = (neighbours & set(cells(8))) - reached, steps + 1
        assert all(distance(start, cell) == steps for cell in new)
        reached |= new


def test_the_treasure_is_always_among_the_candidates() -> None:
    """Nothing that a hole tells may rule the true cell out."""
    for treasure in cells(8):
        holes = {hole: distance(hole, treasure) for hole in ((1, 1), (4, 7), (8, 2))}
        assert treasure in candidates(8, holes)


def test_the_expert_finds_every_treasure_in_three_turns() -> None:
    """Two holes are enough to know the place, whatever the size and the split."""
    for split in ("train", "dev", "test"):
        for size in (8, 13, 20):
            env = TreasureHunt(size, split=split, max_turns=3)
            for seed in range(40):
                env.reset(seed=seed)
                is_over, info = False, {"success": -1}
                while not is_over:
                    _, _, terminated, truncated, info = env.step(env.expert_action())
                    is_over = terminated or truncated
                assert info["success"] == 1


def test_what_is_no_action_is_answered_and_costs_a_turn() -> None:
    """A model may write anything: it gets a sentence, never an exception."""
    env = TreasureHunt()
    env.reset(seed=0)
    for action in ("", "dig", "dig 0 1", "dig 1 9", "dig 1 2 3", "fly to the moon"):
        observation, reward, _, _, info = env.step(action)
        assert observation.startswith("Unknown action") and reward == 0 and not info["action_is_valid"]


def test_the_anchor_does_not_tell_the_order_of_the_holes() -> None:
    """Two ways to the same knowledge are one state, so that step groups find each other."""
    anchors = set()
    for actions in (("dig 1 1", "dig 2 2"), ("dig 2 2", "nothing", "dig 1 1")):
        env = TreasureHunt()
        env.reset(seed=1)
        for action in actions:
            info = env.step(action)[-1]
        anchors.add(info["anchor"])
    assert len(anchors) == 1
