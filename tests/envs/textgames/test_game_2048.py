"""2048: merging against a slow re-statement, a fixed stream of tiles, and a reference player that wins."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.game_2048 import rules as rules
from turngym.envs.textgames.game_2048.env import Game2048
from turngym.envs.textgames.game_2048.rules import (
    MOVES,
    Board,
    best_move,
    board_text,
    board_value,
    merged,
    push,
    random_bits,
    survey,
    with_new_tile,
)

EASY: dict[str, Any] = {"target": 128, "max_turns": 120}


def placed(env: Game2048, *board: int) -> Game2048:
    """Put the environment onto a given board, through its snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"]["board"] = list(board)
    env.restore(json.dumps(content).encode())
    return env


def slow_merge(values: list[int]) -> list[int]:
    """Move the first tile that can move until none can; a made tile is negative until the end."""
    values = list(values)
    moved = True
    while moved:
        moved = False
        for place in range(1, len(values)):
            one, other = values[place - 1], values[place]
            if other and not one:
                values[place - 1], values[place], moved = other, 0, True
                break
            if other > 0 and one == other:
                values[place - 1], values[place], moved = -2 * one, 0, True
                break
    return [abs(value) for value in values]


def value(tile: int) -> int:
    return 1 << tile if tile else 0


@given(st.lists(st.integers(0, 4), min_size=3, max_size=6))
def test_merging_agrees_with_a_slow_re_statement(line: list[int]) -> None:
    after, gain = merged(tuple(line))
    assert list(map(value, after)) == slow_merge(list(map(value, line)))
    assert sum(map(value, after)) == sum(map(value, line)) and gain >= 0


@pytest.mark.parametrize(
    ("line", "after", "gain"),
    [
        ((1, 1, 1, 1), (2, 2, 0, 0), 8),
        ((1, 1, 2, 0), (2, 2, 0, 0), 4),  # a made tile merges no further
        ((2, 1, 1, 0), (2, 2, 0, 0), 4),
        ((1, 1, 1, 0), (2, 1, 0, 0), 4),  # the two nearest the wall merge
        ((0, 3, 0, 3), (4, 0, 0, 0), 16),
        ((1, 2, 1, 2), (1, 2, 1, 2), 0),
    ],
)
def test_known_merges(line: tuple[int, ...], after: tuple[int, ...], gain: int) -> None:
    assert merged(line) == (after, gain)


def slow_push(board: Board, move: str, size: int) -> Board:
    """Push by turning the board until the move is one to the left."""
    rows = [list(board[first : first + size]) for first in range(0, size * size, size)]
    turns = {"left": 0, "up": 1, "right": 2, "down": 3}[move]
    for _ in range(turns):
        rows = [list(row) for row in zip(*rows, strict=True)][::-1]  # a quarter to the left
    rows = [list(merged(tuple(row))[0]) for row in rows]
    for _ in range(-turns % 4):
        rows = [list(row) for row in zip(*rows, strict=True)][::-1]
    return tuple(tile for row in rows for tile in row)


@settings(max_examples=200)
@given(st.integers(3, 5), st.data())
def test_pushes_agree_with_a_turned_board(size: int, data: st.DataObject) -> None:
    board = tuple(data.draw(st.lists(st.integers(0, 4), min_size=size**2, max_size=size**2)))
    seen = survey(board, size)
    for move in MOVES:
        after, gain = push(seen, move)
        assert after == slow_push(board, move, size)
        assert (move in seen.legal) == (after != board) and (gain > 0) == (after.count(0) > board.count(0))


def test_lines_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_MOST_LINES", 5)
    known = rules._Lines()
    for tile in range(20):
        assert known[tile, 0, 0].lines == ((tile, 0, 0), (0, 0, tile))
        assert len(known) <= 5


def test_stream_is_splitmix64() -> None:
    """The first three outputs for seed 1234567, as published with the generator's reference code."""
    assert [random_bits(1234567, index) for index in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_new_tiles_are_fair() -> None:
    """10,000 tiles on five empty cells: 2000 each (standard deviation 40), 1000 of them fours (30)."""
    board = (0, 1, 0, 1, 0, 1, 0, 1, 0)
    cells, tiles = Counter[int](), Counter[int]()
    for index in range(10_000):
        after = with_new_tile(board, random_bits(7, index))
        (cell,) = [place for place in range(9) if after[place] != board[place]]
        cells[cell] += 1
        tiles[after[cell]] += 1
    assert set(cells) == {0, 2, 4, 6, 8} and all(abs(count - 2000) < 200 for count in cells.values())
    assert set(tiles) == {1, 2} and abs(tiles[2] - 1000) < 150


def test_text_is_aligned() -> None:
    assert board_text((0, 1, 2, 7, 0, 0, 3, 0, 4), 3, 3) == "  .   2   4\n128   .   .\n  8   .  16"


def test_order_is_worth_more_than_disorder() -> None:
    assert board_value((4, 3, 2, 4, 3, 2, 4, 3, 2), 3) > board_value((4, 2, 3, 2, 4, 3, 4, 3, 2), 3)
    assert best_move((1, 2, 1, 2, 1, 2, 1, 2, 1), 3) is None


def test_reference_player_takes_the_move_with_the_best_mean() -> None:
    """The slow way: for every move the mean over new tiles of the best value after one more move."""
    board = (1, 2, 1, 0, 3, 1, 0, 0, 4, 2, 2, 0, 5, 4, 3, 1)
    means = {}
    for move in survey(board, 4).legal:
        after, _ = push(survey(board, 4), move)
        values = []
        for cell in [cell for cell in range(16) if not after[cell]]:
            filled = survey((*after[:cell], 1, *after[cell + 1 :]), 4)
            values.append(max(board_value(push(filled, then)[0], 4) for then in filled.legal))
        means[move] = sum(values) / len(values)
    assert best_move(board, 4) == max(means, key=means.__getitem__)
    assert len({round(mean, 6) for mean in means.values()}) > 1


def test_expert_reaches_the_target_and_random_moves_seldom_do() -> None:
    env = Game2048()
    expert = [play(env, seed, by_expert=True) for seed in range(10)]
    blind = [play(env, seed, by_expert=False) for seed in range(20)]
    assert all(expert) and sum(blind) <= 6


def play(env: Game2048, seed: int, *, by_expert: bool) -> bool:
    _, info = env.reset(seed=seed)
    over, turn = False, 0
    while not over:
        legal = info["legal_actions"]
        action = env.expert_action() if by_expert else legal[random_bits(seed, turn) % len(legal)]
        _, _, terminated, truncated, info = env.step(action)
        over, turn = terminated or truncated, turn + 1
    return bool(info["success"] == 1)


def test_same_moves_meet_the_same_tiles_whatever_else_was_asked() -> None:
    env, other = Game2048(**EASY), Game2048(**EASY)
    assert env.reset(seed=5)[0] == other.reset(seed=5)[0]
    for turn in range(40):
        legal = env.legal_actions()
        other.step("nonsense")
        other.expert_action()
        assert env.step(legal[turn % len(legal)])[0] == other.step(legal[turn % len(legal)])[0]


def test_an_episode_begins_with_two_tiles() -> None:
    env = Game2048()
    for seed in range(50):
        _, info = env.reset(seed=seed)
        assert env._board.count(0) == 14 and set(env._board) <= {0, 1, 2}
        assert info["score"] == 0.0 and info["progress"] in (1 / 8, 2 / 8)


def test_a_made_target_ends_the_episode_with_success() -> None:
    env = placed(Game2048(3, 16, max_turns=20, merge_reward=0.5, step_reward=-0.1), 3, 3, 0, 1, 1, 0, 0, 0, 0)
    observation, reward, terminated, _, info = env.step("left")
    assert observation == "16  .  .\n 4  .  .\n .  .  ."
    assert reward == pytest.approx(1.0 - 0.1 + 0.5 * 20 / 16) and terminated
    assert (info["success"], info["progress"], info["score"]) == (1, 1.0, 20.0)


def test_a_full_board_without_a_move_ends_it_without_success() -> None:
    env = placed(Game2048(3, 256, stuck_reward=-1.0), 1, 2, 1, 2, 1, 2, 3, 4, 0)
    for seed in range(20):  # the new tile is a 2 or a 4: both leave no move beside 16 and 4
        env.reset(seed=seed)
        placed(env, 3, 4, 3, 4, 3, 4, 5, 6, 0)
        observation, reward, terminated, _, info = env.step("right")
        assert (reward, terminated, info["success"], info["legal_actions"]) == (-1.0, True, 0, ())
        assert "." not in observation
    with pytest.raises(ValueError, match="no expert action after the episode has ended"):
        env.expert_action()


def test_a_move_that_changes_nothing_brings_no_tile() -> None:
    env = placed(Game2048(3, 256, step_reward=-0.5), 1, 0, 0, 2, 0, 0, 0, 0, 0)
    before = env._text
    assert env.legal_actions() == ("down", "right")
    observation, reward, _, _, info = env.step("left")
    assert (observation, reward) == (before, -0.5) and info["action_is_valid"]
    assert env.step("down")[0].count(".") == 6


def test_unknown_action_is_answered_with_the_board() -> None:
    env = placed(Game2048(3, 16, max_turns=20), 1, 0, 0, 2, 0, 0, 0, 0, 0)
    observation, _, _, _, info = env.step("swipe")
    assert observation == "Unknown action: answer with up, down, left or right.\n 2  .  .\n 4  .  .\n .  .  ."
    assert not info["action_is_valid"]


def test_score_is_the_sum_of_all_made_tiles() -> None:
    env = Game2048(**EASY)
    env.reset(seed=2)
    fours = sum(2 for tile in env._board if tile == 2)
    while env._running:
        board = env._board
        after, _ = push(survey(board, 4), env.legal_actions()[0])
        env.step(env.legal_actions()[0])
        fours += sum(2 for one, other in zip(after, env._board, strict=True) if other - one == 2)
    # A tile 2 ** e made of twos scored (e - 1) * 2 ** e on the way; a four that came as one saved 4.
    expected = sum((tile - 1) << tile for tile in env._board if tile) - 2 * fours
    assert env._info()["score"] == expected


def test_hidden_tiles_change_and_the_past_stays() -> None:
    env, twin = Game2048(**EASY), Game2048(**EASY)
    changed = 0
    for seed in range(10):
        env.reset(seed=seed)
        twin.reset(seed=seed)
        before, instance = env._info(), env.instance
        assert env.resample_hidden() and env._info() == before and env.instance != instance
        move = env.legal_actions()[0]
        changed += env.step(move)[0] != twin.step(move)[0]
    assert changed > 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 2}, r"size of .* must be a whole number in \[3, 6\], got 2"),
        ({"target": 8}, r"target of .* \[16, 32768\], got 8"),
        ({"size": 3, "target": 512}, r"\[16, 256\], got 512"),
        ({"target": 100}, "target of .* must be a power of two, got 100"),
        ({"target": 1024}, r"max_turns of .* is 250, but a tile of 1024 can take 512 turns: pass max_turns=512"),
        ({"merge_reward": "x"}, "merge_reward of .* got 'x'"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Game2048(**options)
