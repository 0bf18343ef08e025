"""Sokoban as an environment: solvable rooms, rewards, answers to any text, splits and snapshots."""

import json
from typing import Any

import pytest

from turngym.envs.textgames.sokoban.env import Sokoban
from turngym.envs.textgames.sokoban.rules import parse_board
from turngym.envs.textgames.sokoban.solver import solve

CORRIDOR = "#######\n#P_X_O#\n#######\n#######\n#######\n#######\n#######"


def placed(env: Sokoban, board: str) -> Sokoban:
    """Put the environment into a given room, through its snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"] = board
    env.restore(json.dumps(content).encode())
    return env


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"view": "coordinates"},
        {"size": 5},
        {"size": 5, "boxes": 3},
        {"size": 6, "boxes": 2, "max_moves": 30},
        {"size": 8, "boxes": 2, "max_turns": 60},
    ],
)
def test_expert_solves_every_room_within_the_turn_limit(options: dict[str, Any]) -> None:
    env = Sokoban(**options)
    for seed in range(200 if options.get("size", 6) < 8 else 40):
        _, info = env.reset(seed=seed)
        assert info["success"] == -1 and info["progress"] < 1
        terminated = truncated = False
        while not (terminated or truncated):
            _, _, terminated, truncated, info = env.step(env.expert_action())
        assert terminated and info["success"] == 1 and info["progress"] == 1 and info["legal_actions"] == ()


@pytest.mark.parametrize(("size", "boxes"), [(10, 4), (12, 5)])
def test_large_rooms_are_solved_too(size: int, boxes: int) -> None:
    env = Sokoban(size, boxes, max_turns=40)
    env.reset(seed=2)
    terminated = False
    while not terminated:
        _, _, terminated, truncated, _ = env.step(env.expert_action())
        assert not truncated


def test_solution_lengths_keep_to_the_wanted_range_and_fill_it() -> None:
    env = Sokoban(min_moves=4, max_moves=9, max_turns=20)
    lengths = []
    for seed in range(150):
        env.reset(seed=seed)
        path = solve(*parse_board(env.instance))
        assert path is not None
        lengths.append(len(path))
    assert set(lengths) == set(range(4, 10))


def test_expert_refuses_a_dead_end() -> None:
    env = placed(Sokoban(), "#####\n#X__#\n#_P_#\n#__O#\n#####")
    with pytest.raises(ValueError, match="can no longer be solved"):
        env.expert_action()


def test_rewards_follow_the_classical_scheme() -> None:
    env = placed(Sokoban(), "######\n#PXO_#\n#_XO_#\n#____#\n######\n######")
    rewards = [env.step(move)[1] for move in ("right", "right", "left", "left")]
    assert rewards == pytest.approx([0.9, -1.1, -0.1, -0.1])
    env = placed(Sokoban(step_reward=-2, box_reward=3, solve_reward=5), CORRIDOR)
    steps = [env.step("right") for _ in range(3)]
    assert [step[1] for step in steps] == [-2, -2, -2 + 3 + 5]
    assert [step[2] for step in steps] == [False, False, True]


def test_blocked_move_is_valid_and_changes_nothing() -> None:
    env = placed(Sokoban(), CORRIDOR)
    observation, reward, terminated, truncated, info = env.step("up")
    assert (observation, reward, terminated, truncated) == (CORRIDOR, -0.1, False, False)
    assert info["action_is_valid"] and info["legal_actions"] == ("right",)


@pytest.mark.parametrize("action", [" RIGHT\n", "Right", "right"])
def test_case_and_blanks_do_not_matter(action: str) -> None:
    env = placed(Sokoban(), CORRIDOR)
    observation, *_, info = env.step(action)
    assert observation.split("\n")[1] == "#_PX_O#" and info["action_is_valid"]


def test_unknown_action_is_answered_with_the_board() -> None:
    env = placed(Sokoban(), CORRIDOR)
    observation, reward, _, _, info = env.step("go right")
    assert observation == "Unknown action: answer with up, down, left or right.\n" + CORRIDOR
    assert reward == -0.1 and not info["action_is_valid"]
    assert info["anchor"] == CORRIDOR
    env = placed(Sokoban(view="coordinates"), CORRIDOR)
    assert "\n" not in env.step("go right")[0]


def test_turn_limit_truncates_and_does_not_succeed() -> None:
    env = placed(Sokoban(max_turns=2), CORRIDOR)
    assert env.step("right")[2:4] == (False, False)
    *_, terminated, truncated, info = env.step("left")
    assert (terminated, truncated, info["success"], info["score"]) == (False, True, 0, 0.0)


def test_progress_counts_boxes_on_goals() -> None:
    env = placed(Sokoban(), "######\n#PXO_#\n#_XO_#\n#____#\n######\n######")
    assert [env.step(move)[4]["progress"] for move in ("right", "right")] == [0.5, 0.0]


def test_a_seed_gives_the_same_room_whatever_came_before() -> None:
    """The source keeps a room for several draws; a kept room must not leak into the next episode."""
    first, second = Sokoban(split="test"), Sokoban(split="test")
    for seed in range(10):
        first.reset(seed=seed)
    assert first.reset(seed=3)[0] == second.reset(seed=3)[0]
    assert first.instance == second.instance


def test_observation_format_does_not_change_the_instance() -> None:
    grid, words = Sokoban(), Sokoban(view="coordinates")
    grid.reset(seed=4)
    words.reset(seed=4)
    assert grid.instance_hash == words.instance_hash


def test_render_shows_the_grid_whatever_the_observation() -> None:
    env = Sokoban(view="coordinates", render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == env.instance


OPTION_OUT_OF_RANGE_IS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"size": 4}, r"size of .* must be a whole number in \[5, 12\], got 4"),
    ({"size": 13}, r"\[5, 12\], got 13"),
    ({"size": 6.0}, r"whole number in \[5, 12\], got 6\.0"),
    ({"boxes": 0}, r"boxes of .* \[1, 5\], got 0"),
    ({"boxes": 6}, r"\[1, 5\], got 6"),
    ({"size": 5, "boxes": 4}, r"\[1, 3\], got 4"),
    ({"max_turns": 0}, r"max_turns of .* got 0"),
    ({"max_moves": 31}, r"max_moves of .* \[1, 30\], got 31"),
    ({"min_moves": 16}, r"min_moves of .* \[1, 15\], got 16"),
    ({"view": "grit"}, r"view of .* got 'grit'\. Did you mean 'grid'\?"),
    ({"split": "tset"}, r"no split 'tset'\. Did you mean 'test'\?"),
    ({"step_reward": float("nan")}, r"step_reward of .* got nan"),
    ({"box_reward": "1"}, r"box_reward of .* got '1'"),
    ({"solve_reward": True}, r"solve_reward of .* got True"),
]


def test_option_out_of_range_is_refused() -> None:
    for options, message in OPTION_OUT_OF_RANGE_IS_REFUSED:
        with pytest.raises(ValueError, match=message):
            Sokoban(**options)


def test_impossible_solution_length_is_named() -> None:
    env = Sokoban(5, 1, min_moves=60, max_moves=60, max_turns=60)
    with pytest.raises(ValueError, match="solution of 60 to 60 moves was found in 1000 tries: pass a larger size"):
        env.reset(seed=0)


def test_instructions_match_the_observation() -> None:
    assert "√" in Sokoban().instructions and "√" not in Sokoban(view="coordinates").instructions
