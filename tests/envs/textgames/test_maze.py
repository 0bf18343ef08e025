"""Maze: solvable within the turn limit, and an expert that knows no more than it has seen."""

import json
from typing import Any

import pytest

from turngym.envs.textgames.maze.env import Maze
from turngym.envs.textgames.maze.rules import MOVES, distances, doors, offsets, rooms

NEAR: dict[str, Any] = {"size": 13, "loops": 0.1, "view": "near", "radius": 2, "max_turns": 200}
# A corridor along the top, a way down on the right.
MAZE = """\
#######
#P____#
#_###_#
#_#___#
#_###_#
#___#G#
#######"""


def placed(env: Maze, text: str = MAZE, known: str | None = None) -> Maze:
    """Put the environment into a given maze, through its snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"] = {"maze": text, "player": text.index("P"), "known": known or "".join(unknown(text))}
    env.restore(json.dumps(content).encode())
    return env


def unknown(text: str) -> list[str]:
    return ["\n" if symbol == "\n" else "?" for symbol in text]


def solve(env: Maze) -> dict[str, Any]:
    over, info = False, dict[str, Any]()
    while not over:
        _, _, terminated, truncated, info = env.step(env.expert_action())
        over = terminated or truncated
    return info


@pytest.mark.parametrize("options", [{}, {"size": 7, "max_turns": 30}, {"size": 15, "loops": 0.3, "max_turns": 90}])
def test_expert_with_a_map_takes_a_shortest_way(options: dict[str, Any]) -> None:
    env = Maze(**options)
    for seed in range(200):
        env.reset(seed=seed)
        first = env.instance
        maze = first.replace("P", "_").replace("G", "_")
        away = distances(maze, first.index("G"), env.size)[first.index("P")]
        assert env.min_moves <= away <= env.max_turns
        assert solve(env)["success"] == 1 and env.turn == away


@pytest.mark.parametrize("options", [NEAR, {**NEAR, "view": "seen", "radius": 1, "loops": 0.0}])
def test_expert_that_explores_finds_every_goal_in_time(options: dict[str, Any]) -> None:
    env = Maze(**options)
    for seed in range(200):
        env.reset(seed=seed)
        assert solve(env)["success"] == 1


@pytest.mark.parametrize("view", ["seen", "near"])
def test_expert_decides_by_what_it_has_seen_alone(view: str) -> None:
    """Replace all that is unseen before each turn: the same advice must come out."""
    env = Maze(**{**NEAR, "view": view, "radius": 1})
    for seed in range(10):
        env.reset(seed=seed)
        over, swapped = False, 0
        while not over:
            advice = env.expert_action()
            for _ in range(2):
                swapped += env.resample_hidden()
                assert env.expert_action() == advice
            _, _, terminated, truncated, _ = env.step(advice)
            over = terminated or truncated
        assert swapped > 0 and terminated


def test_map_shows_walls_goal_and_player() -> None:
    env = placed(Maze(7))
    assert env._observed == MAZE
    observation, reward, terminated, _, info = env.step("right")
    assert observation.split("\n")[1] == "#_P___#" and (reward, terminated) == (0.0, False)
    assert info["anchor"] == observation and info["legal_actions"] == ("left", "right")


def test_window_shows_what_is_near_and_where_it_is() -> None:
    env = placed(Maze(7, view="near", radius=2, max_turns=60))
    assert env._observed == "You are at row 1, column 1.\n#####\n#####\n##P__\n##_##\n##_#_"
    assert env.step("right")[0] == "You are at row 1, column 2.\n#####\n#####\n#_P__\n#_###\n#_#__"


def test_map_of_the_seen_grows_and_never_forgets() -> None:
    env = placed(Maze(7, view="seen", max_turns=60))
    assert env._observed.split("\n")[:4] == ["###????", "#P_????", "#_#????", "???????"]
    env.step("right")
    assert env._observed.split("\n")[:4] == ["####???", "#_P_???", "#_##???", "???????"]
    assert env.step("right")[4]["anchor"].split("\n")[1] == "#__P_??"


def test_goal_is_hidden_until_it_comes_into_view() -> None:
    env = placed(Maze(7, view="seen", max_turns=60))
    way = ["right"] * 4 + ["down"] * 4
    shown = ["G" in env._observed] + [("G" in env.step(move)[0]) for move in way[:-1]]
    assert shown == [False] * 7 + [True]
    observation, reward, terminated, _, info = env.step(way[-1])
    assert observation.split("\n")[5][5] == "√" and reward == 1.0 and terminated and info["success"] == 1


@pytest.mark.parametrize("view", ["map", "seen", "near"])
def test_walls_stop_the_player_and_cost_a_turn(view: str) -> None:
    env = placed(Maze(7, view=view, step_reward=-0.1, max_turns=60))
    before = env._observed
    observation, reward, terminated, truncated, info = env.step("up")
    assert (observation, reward, terminated, truncated) == (before, -0.1, False, False)
    assert info["action_is_valid"] and info["legal_actions"] == ("down", "right")


@pytest.mark.parametrize("view", ["map", "near"])
def test_unknown_action_is_answered(view: str) -> None:
    env = placed(Maze(7, view=view, max_turns=60))
    before = env._observed
    observation, _, _, _, info = env.step("north")
    assert observation == f"Unknown action: answer with up, down, left or right.\n{before}"
    assert not info["action_is_valid"]


def test_progress_with_a_map_is_the_share_of_the_way() -> None:
    env = placed(Maze(7))
    seen = [env.step(move)[4]["progress"] for move in ("right", "right", "left", "left", "down")]
    assert seen == [0.125, 0.25, 0.125, 0.0, 0.0]


def test_progress_without_a_map_is_what_was_seen_and_then_the_way_to_the_goal() -> None:
    env = placed(Maze(7, view="seen", max_turns=60))
    assert env._info()["progress"] == pytest.approx(0.5 * 1 / 9)
    assert env.step("right")[4]["progress"] == pytest.approx(0.5 * 2 / 9)
    progress = [env.step(move)[4]["progress"] for move in ["right"] * 3 + ["down"] * 4]
    assert progress[:-2] == sorted(progress[:-2]) and max(progress[:-2]) <= 0.5
    assert progress[-2:] == [pytest.approx(1 - 0.5 / 18), 1.0]


def test_legal_actions_are_the_moves_that_go_somewhere() -> None:
    env = Maze(**NEAR)
    for seed in range(20):
        _, info = env.reset(seed=seed)
        for move in MOVES:
            before = env._player
            env.step(move)
            assert (env._player != before) == (move in info["legal_actions"])
            if env._player != before:
                break


def test_loops_open_more_doors() -> None:
    counts = []
    for loops in (0.0, 0.5, 1.0):
        env = Maze(11, loops=loops)
        env.reset(seed=0)
        counts.append(sum(env._maze[door] == "_" for door in doors(11)))
    assert counts == [24, 32, 40]


def test_hidden_part_changes_and_the_instance_with_it() -> None:
    env = Maze(**NEAR)
    env.reset(seed=3)
    known, instance = list(env._known), env.instance
    changed = 0
    for _ in range(10):
        changed += env.resample_hidden()
        assert env._known == known
        assert env._goal in rooms(13) and known[env._goal] == "?"
        assert all(symbol in ("?", new) for symbol, new in zip(known, env._with_goal, strict=True))
    assert changed == 10 and env.instance != instance
    assert not Maze().resample_hidden()


def test_seen_goal_stays_where_it_is() -> None:
    env = placed(Maze(7, view="seen", max_turns=60))
    for move in ["right"] * 4 + ["down"] * 3:
        env.step(move)
    for _ in range(5):
        env.resample_hidden()
        assert env._goal == MAZE.index("G")


@pytest.mark.parametrize(
    "state",
    [
        {"maze": MAZE.replace("P", "_"), "player": 9, "known": None},
        {"maze": MAZE[:-8], "player": 9, "known": None},
        {"maze": MAZE, "player": 0, "known": None},
        {"maze": MAZE, "player": 999, "known": None},
        {"maze": MAZE, "player": 13 - len(MAZE), "known": None},
        {"maze": 5, "player": 9, "known": None},
    ],
)
def test_damaged_snapshot_is_refused_and_nothing_changes(state: dict[str, Any]) -> None:
    env = placed(Maze(7))
    content = json.loads(env.snapshot())
    with pytest.raises(ValueError, match="damaged snapshot"):
        env.restore(json.dumps({**content, "state": state}).encode())
    assert env.step("right")[0].split("\n")[1] == "#_P___#"


@pytest.mark.parametrize("known", ["?", None, MAZE + "?"])
def test_damaged_map_is_refused(known: object) -> None:
    env = placed(Maze(7, view="seen", max_turns=60))
    content = json.loads(env.snapshot())
    content["state"]["known"] = known
    with pytest.raises(ValueError, match="damaged snapshot"):
        env.restore(json.dumps(content).encode())


def test_instructions_fit_the_view() -> None:
    assert "5 x 5 cells" in Maze(**NEAR).instructions and "13 x 13" in Maze(**NEAR).instructions
    assert "? not seen yet" in Maze(view="seen").instructions
    assert "window" not in Maze().instructions and "{" not in Maze().instructions


def test_the_player_stands_in_the_middle_of_the_window_wherever_it_is() -> None:
    env = Maze(7, view="near", radius=3, max_turns=60)
    env.reset(seed=2)
    for _ in range(30):
        lines = env._observed.split("\n")[-7:]
        assert all(len(line) == 7 for line in lines) and lines[3][3] == "P"
        env.step(next(move for move in MOVES if env._maze[env._player + offsets(7)[move]] == "_"))


OPTION_OUT_OF_RANGE_IS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"size": 5}, r"size of .* must be a whole number in \[7, 41\], got 5"),
    ({"size": 12}, "must be odd, got 12"),
    ({"loops": 1.5}, r"loops of .* must be a number in \[0\.0, 1\.0\], got 1\.5"),
    ({"view": "bird"}, r"view of .* got 'bird'"),
    ({"radius": 0}, "radius of .* got 0"),
    ({"min_moves": 12}, r"min_moves of .* \[1, 11\], got 12"),
    ({"goal_reward": "1"}, "goal_reward of .* got '1'"),
    ({"sise": 7}, "Did you mean 'size'"),
]


def test_option_out_of_range_is_refused() -> None:
    for options, message in OPTION_OUT_OF_RANGE_IS_REFUSED:
        with pytest.raises(ValueError, match=message):
            Maze(**options)


def test_a_named_task_and_an_ended_episode_are_refused() -> None:
    with pytest.raises(ValueError, match="pick an instance by seed"):
        Maze().reset(options={"task": 3})
    env = Maze()
    env.reset(seed=0)
    solve(env)
    with pytest.raises(ValueError, match="no expert action after the episode has ended"):
        env.expert_action()
