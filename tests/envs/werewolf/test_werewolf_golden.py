"""Two worked games, replayed line by line in every view: who reads what, what is legal, what everybody earns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from werewolf_games import (
    A_ACTIONS,
    A_LINES,
    A_ROLES,
    B_ACTIONS,
    B_LINES,
    B_ROLES,
    finished,
    log_of,
    play,
    recipients,
    returns,
    started,
)

from turngym.envs.multiagent import TableVector
from turngym.envs.multiagent.registration import make_game
from turngym.envs.werewolf import env, parallel_env

Script = Sequence[tuple[int, str]]
GAMES: dict[str, tuple[list[str], Script, list[tuple[str, str]]]] = {
    "A": (A_ROLES, A_ACTIONS, A_LINES),
    "B": (B_ROLES, B_ACTIONS, B_LINES),
}
REWARDS: dict[tuple[str, str], list[float]] = {
    ("A", "team"): [-1, 1, 1, -1, 1, 1, 1],
    ("A", "shaped"): [-1.0, 1.1, 1.3, -1.0, 1.2, 1.3, 0.9],
    ("A", "lspo"): [-305, 325, 385, -305, 365, 385, 305],
    ("A", "zero_sum"): [-0.5, 0.2, 0.2, -0.5, 0.2, 0.2, 0.2],
    ("B", "team"): [-1, 1, -1, -1, -1],
    ("B", "shaped"): [-1.1, 1.0, -1.0, -1.0, -0.9],
    ("B", "lspo"): [-320, 315, -295, -300, -290],
    ("B", "zero_sum"): [-0.25, 1, -0.25, -0.25, -0.25],
}
PRIVATE = {
    "A": [[1, 9, 10, 11, 25, 26, 27], [2, 12, 28], [3], [4, 9, 10, 11, 25, 26, 27, 40, 41], [5, 13, 29, 42], [6], [7]],
    "B": [[1], [2, 7, 8, 19, 20], [3, 10, 21], [4, 9], [5]],
}
PUBLIC = {"A": [8, *range(14, 25), *range(30, 40), *range(43, 52)], "B": [6, *range(11, 19), 22, 23]}


def expected(game: str, seat: int | None = None) -> list[Any]:
    """Return the log, or the lines of one seat, from the table of the game."""
    roles, _, lines = GAMES[game]
    log = [(recipients(to, len(roles)), text) for to, text in lines]
    return log if seat is None else [text for to, text in log if seat in to]


@pytest.mark.parametrize("game", GAMES)
def test_a_table_writes_every_line_to_the_right_seats(game: str) -> None:
    roles, actions, _ = GAMES[game]
    table = finished(roles, actions)
    assert log_of(table) == expected(game)
    assert table.is_over
    assert table.actions == list(actions)
    for seat, view in enumerate(table.views):
        ids = sorted(PRIVATE[game][seat] + PUBLIC[game])
        assert view.lines == [GAMES[game][2][number - 1][1] for number in ids] == expected(game, seat)


@pytest.mark.parametrize(("game", "rewards"), REWARDS)
def test_rewards_of_every_variant(game: str, rewards: str) -> None:
    roles, actions, _ = GAMES[game]
    assert returns(finished(roles, actions, rewards=rewards)) == REWARDS[game, rewards]


@pytest.mark.parametrize(("game", "rewards"), REWARDS)
def test_rewards_kept_to_the_end_add_up_to_the_same(game: str, rewards: str) -> None:
    roles, actions, _ = GAMES[game]
    table = started(roles, rewards=rewards, rewards_at="end")
    play(table, actions[:-1])
    assert not any(table.returns), "something was paid before the end, which tells seats who is what"
    play(table, actions[-1:])
    assert returns(table) == REWARDS[game, rewards]


@pytest.mark.parametrize("game", GAMES)
def test_the_turn_based_view_shows_the_same_game(game: str) -> None:
    roles, actions, _ = GAMES[game]
    zoo = env(num_seats=len(roles), rewards="shaped")
    zoo.reset(seed=3, options={"roles": roles})
    heard: dict[str, list[str]] = {agent: [] for agent in zoo.agents}
    earned = dict.fromkeys(zoo.agents, 0.0)
    script = iter(actions)
    for agent in zoo.agent_iter():
        observation, reward, terminated, truncated, info = zoo.last()
        earned[agent] += reward
        assert not truncated
        if terminated:
            heard[agent] += observation["text"].splitlines()
            assert info["success"] == int(REWARDS[game, "team"][zoo.possible_agents.index(agent)] == 1)
            zoo.step(None)
            continue
        *new, question = observation["text"].splitlines()
        heard[agent] += new
        assert "Answer [" in question
        seat, text = next(script)
        assert agent == f"player_{seat}"
        zoo.step(text)
    assert log_of(zoo.table) == expected(game)
    for seat, agent in enumerate(zoo.possible_agents):
        assert heard[agent] == expected(game, seat)
        assert earned[agent] == pytest.approx(REWARDS[game, "shaped"][seat])


@pytest.mark.parametrize("game", GAMES)
def test_the_parallel_view_shows_the_same_game(game: str) -> None:
    roles, actions, _ = GAMES[game]
    zoo = parallel_env(num_seats=len(roles), rewards="lspo")
    observations, _ = zoo.reset(seed=3, options={"roles": roles})
    earned = dict.fromkeys(zoo.agents, 0.0)
    script = list(actions)
    while zoo.agents:
        active = zoo.active_agents
        now, script = script[: len(active)], script[len(active) :]
        assert [f"player_{seat}" for seat, _ in now] == list(active)
        observations, rewards, terminations, _, _ = zoo.step({f"player_{seat}": text for seat, text in now})
        for agent, reward in rewards.items():
            earned[agent] += reward
    assert all(terminations.values())
    assert log_of(zoo.table) == expected(game)
    assert list(earned.values()) == pytest.approx(REWARDS[game, "lspo"])
    assert all(text["text"].endswith(expected(game)[-1][1]) for text in observations.values())


@pytest.mark.parametrize("game", GAMES)
def test_many_tables_show_the_same_game_answered_backwards(game: str) -> None:
    roles, actions, _ = GAMES[game]
    vector = TableVector(lambda: make_game("turngym/Werewolf-v0", num_seats=len(roles)), 3, auto_reset=False)
    vector.reset(seed=1, options={"roles": roles})
    scripts = {
        table: {seat: [text for who, text in actions if who == seat] for seat, _ in actions} for table in (0, 1, 2)
    }
    while requests := vector.pending():
        answers = [(request.request_id, scripts[request.table][request.seat].pop(0)) for request in requests]
        vector.submit(answers[::-1])
    for table in vector.tables:
        assert log_of(table) == expected(game)
        assert table.actions == list(actions)


@pytest.mark.parametrize("game", GAMES)
def test_a_game_goes_on_from_every_snapshot(game: str) -> None:
    roles, actions, _ = GAMES[game]
    table, other = started(roles, rewards="lspo"), started(roles, 9, rewards="lspo")
    for number, action in enumerate(actions):
        play(table, [action])
        other.restore(table.snapshot())
        play(other, actions[number + 1 :])
        assert log_of(other) == expected(game)
        assert returns(other) == REWARDS[game, "lspo"]
        assert other.game.anchor(1) == "\n".join(expected(game, 1))


SEEN = [  # actions taken before, seat, lines that it has read, lines that it must not have read, what it may do
    (0, 0, [1, 8], [2, 3, 4, 5, 6, 7], "kill 1 2 4 5 6"),
    (1, 3, [4, 8, 9], [1, 2, 5], "kill 1 2 4 5 6"),
    (1, 1, [2, 8], [1, 9], "see 0 2 3 4 5 6"),
    (2, 1, [2, 8], [9, 10, 11], "see 0 2 3 4 5 6"),
    (2, 4, [5, 8], [9, 10, 11, 12], "save 0 1 2 3 4 5 6"),
    (3, 4, [5, 8], [9, 10, 11, 12], "save 0 1 2 3 4 5 6"),
    (11, 0, [1, 8, 9, 10, 11, *range(14, 22)], [2, 12, 13], "vote 1 2 3 4 5 6"),
    (17, 6, [7, 8, *range(14, 22)], [9, 12, 13], "vote 0 1 2 3 4 5"),
    (20, 1, [2, 8, 12, *range(14, 25)], [25, 26, 27], "see 0 2 3 4 5 6"),
    (34, 3, [4, 39], [12, 13, 28, 29], "kill 2 4 5 6"),
    (36, 0, [38, 39], [40, 41, 42], ""),
    (46, 5, [6, 51], [40, 41, 42], ""),
]


@pytest.mark.parametrize(("taken", "seat", "must", "must_not", "legal"), SEEN)
def test_what_a_seat_sees_and_may_do_in_game_a(
    taken: int, seat: int, must: list[int], must_not: list[int], legal: str
) -> None:
    table = play(started(A_ROLES), A_ACTIONS[:taken])
    view = table.views[seat]
    lines = [text for _, text in A_LINES]
    for number in must:
        assert lines[number - 1] in view.lines
        assert lines[number - 1] in view.anchor
    for number in must_not:
        assert lines[number - 1] not in "\n".join([*view.lines, view.anchor, view.observation])
    verb, _, seats = legal.partition(" ")
    moves = [f"{verb} player_{other}" for other in seats.split()]
    assert sorted(view.legal_actions) == sorted(moves + ["abstain"] * (verb == "vote"))


def test_the_dead_werewolf_never_reads_of_later_nights() -> None:
    view = finished(A_ROLES, A_ACTIONS).views[0]
    lines = [text for _, text in A_LINES]
    assert lines[37] in view.lines
    assert lines[39] not in view.lines
    assert lines[40] not in view.lines


def test_game_a_in_numbers() -> None:
    table = finished(A_ROLES, A_ACTIONS)
    game: Any = table.game
    assert game.winner == "village"
    assert game.winners() == (1, 2, 4, 5, 6)
    assert (game.day, game.living, len(table.actions), len(table.log)) == (3, (2, 4, 5, 6), 46, 51)
    assert game.metrics() == {
        "village_wins": 1.0,
        "is_draw": 0.0,
        "days": 3.0,
        "village_ballots": 12.0,
        "village_ballots_on_werewolves": 10.0,
    }
    assert game.progress(0) == 1.0
    assert all(counts.forfeits == counts.illegal == counts.unreadable == 0 for counts in table.counts)


def test_game_b_in_numbers() -> None:
    table = finished(B_ROLES, B_ACTIONS)
    game: Any = table.game
    assert game.winner == "werewolves"
    assert game.winners() == (1,)
    assert (game.day, game.living, len(table.actions), len(table.log)) == (2, (1, 2), 13, 23)
    assert [line for line in table.views[3].lines if line.startswith("[seer]")] == ["[seer] player_1 is a werewolf."]
