# ruff: noqa: E501
"""Two games of Werewolf, worked out by hand: who answers what, and who reads what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.table import Table
from turngym.envs.werewolf.game import Werewolf

W, S, D, V = "werewolf", "seer", "doctor", "villager"
A_ROLES = [W, S, V, W, D, V, V]
B_ROLES = [V, W, D, S, V]
A_ACTIONS: list[tuple[int, str]] = [
    (0, "kill player_5"),
    (3, "kill player_4"),
    (1, "see player_0"),
    (4, "save player_4"),
    (0, "say Quiet night, I have no read."),
    (1, "say I am the seer and player_0 is a wolf."),
    (2, "say I lean to believe player_1."),
    (3, "say player_1 is lying, look at player_5."),
    (4, "say I will wait a day."),
    (5, "say I am a plain villager."),
    (6, "say player_5 sounds nervous."),
    (0, "vote player_5"),
    (1, "vote player_0"),
    (2, "vote player_0"),
    (3, "vote player_5"),
    (4, "abstain"),
    (5, "vote player_0"),
    (6, "vote player_5"),
    (0, "kill player_1"),
    (3, "kill player_1"),
    (1, "see player_3"),
    (4, "save player_4"),
    (0, "say I did not kill player_1."),
    (2, "say They killed the player who accused player_0."),
    (3, "say Fine, I vote with you today."),
    (4, "say player_0 it is."),
    (5, "say Agreed."),
    (6, "say I was wrong yesterday."),
    (0, "vote player_2"),
    (2, "vote player_0"),
    (3, "vote player_0"),
    (4, "vote player_0"),
    (5, "vote player_0"),
    (6, "vote player_0"),
    (3, "kill player_5"),
    (4, "save player_5"),
    (2, "say player_3 defended player_0 on day 1."),
    (3, "say I voted player_0 out, remember."),
    (4, "say That vote was cheap."),
    (5, "say player_3 pushed me on day 1."),
    (6, "say player_4 is too calm."),
    (2, "vote player_3"),
    (3, "vote player_6"),
    (4, "vote player_3"),
    (5, "vote player_3"),
    (6, "vote player_4"),
]
A_LINES: list[tuple[str, str]] = [
    ("p0", "You are player_0. Role: werewolf. Teammates: player_3."),
    ("p1", "You are player_1. Role: seer."),
    ("p2", "You are player_2. Role: villager."),
    ("p3", "You are player_3. Role: werewolf. Teammates: player_0."),
    ("p4", "You are player_4. Role: doctor."),
    ("p5", "You are player_5. Role: villager."),
    ("p6", "You are player_6. Role: villager."),
    ("all", "Night 1. Alive: player_0, player_1, player_2, player_3, player_4, player_5, player_6."),
    ("p0,p3", "[wolves] player_0 proposes player_5."),
    ("p0,p3", "[wolves] player_3 proposes player_4."),
    ("p0,p3", "[wolves] Target: player_4."),
    ("p1", "[seer] player_0 is a werewolf."),
    ("p4", "[doctor] You protect player_4."),
    ("all", "Day 1. Nobody was killed in the night."),
    ("all", "[Day 1] player_0: Quiet night, I have no read."),
    ("all", "[Day 1] player_1: I am the seer and player_0 is a wolf."),
    ("all", "[Day 1] player_2: I lean to believe player_1."),
    ("all", "[Day 1] player_3: player_1 is lying, look at player_5."),
    ("all", "[Day 1] player_4: I will wait a day."),
    ("all", "[Day 1] player_5: I am a plain villager."),
    ("all", "[Day 1] player_6: player_5 sounds nervous."),
    (
        "all",
        "Votes: player_0 -> player_5; player_1 -> player_0; player_2 -> player_0; player_3 -> player_5; player_4 -> abstain; player_5 -> player_0; player_6 -> player_5.",
    ),
    ("all", "Tally: player_0 3, player_5 3. Nobody was eliminated."),
    ("all", "Night 2. Alive: player_0, player_1, player_2, player_3, player_4, player_5, player_6."),
    ("p0,p3", "[wolves] player_0 proposes player_1."),
    ("p0,p3", "[wolves] player_3 proposes player_1."),
    ("p0,p3", "[wolves] Target: player_1."),
    ("p1", "[seer] player_3 is a werewolf."),
    ("p4", "[doctor] You protect player_4."),
    ("all", "Day 2. player_1 was killed in the night."),
    ("all", "[Day 2] player_0: I did not kill player_1."),
    ("all", "[Day 2] player_2: They killed the player who accused player_0."),
    ("all", "[Day 2] player_3: Fine, I vote with you today."),
    ("all", "[Day 2] player_4: player_0 it is."),
    ("all", "[Day 2] player_5: Agreed."),
    ("all", "[Day 2] player_6: I was wrong yesterday."),
    (
        "all",
        "Votes: player_0 -> player_2; player_2 -> player_0; player_3 -> player_0; player_4 -> player_0; player_5 -> player_0; player_6 -> player_0.",
    ),
    ("all", "Tally: player_0 5, player_2 1. player_0 was eliminated."),
    ("all", "Night 3. Alive: player_2, player_3, player_4, player_5, player_6."),
    ("p3", "[wolves] player_3 proposes player_5."),
    ("p3", "[wolves] Target: player_5."),
    ("p4", "[doctor] You protect player_5."),
    ("all", "Day 3. Nobody was killed in the night."),
    ("all", "[Day 3] player_2: player_3 defended player_0 on day 1."),
    ("all", "[Day 3] player_3: I voted player_0 out, remember."),
    ("all", "[Day 3] player_4: That vote was cheap."),
    ("all", "[Day 3] player_5: player_3 pushed me on day 1."),
    ("all", "[Day 3] player_6: player_4 is too calm."),
    (
        "all",
        "Votes: player_2 -> player_3; player_3 -> player_6; player_4 -> player_3; player_5 -> player_3; player_6 -> player_4.",
    ),
    ("all", "Tally: player_3 3, player_4 1, player_6 1. player_3 was eliminated."),
    (
        "all",
        "Game over. Winner: village. Roles: player_0 werewolf, player_1 seer, player_2 villager, player_3 werewolf, player_4 doctor, player_5 villager, player_6 villager.",
    ),
]
B_ACTIONS: list[tuple[int, str]] = [
    (1, "kill player_3"),
    (3, "see player_1"),
    (2, "save player_0"),
    (0, "say player_4 is silent."),
    (1, "say I agree, player_4."),
    (2, "say No idea yet."),
    (4, "say It is player_1."),
    (0, "vote player_4"),
    (1, "vote player_4"),
    (2, "abstain"),
    (4, "vote player_1"),
    (1, "kill player_0"),
    (2, "save player_2"),
]
B_LINES: list[tuple[str, str]] = [
    ("p0", "You are player_0. Role: villager."),
    ("p1", "You are player_1. Role: werewolf. Teammates: none."),
    ("p2", "You are player_2. Role: doctor."),
    ("p3", "You are player_3. Role: seer."),
    ("p4", "You are player_4. Role: villager."),
    ("all", "Night 1. Alive: player_0, player_1, player_2, player_3, player_4."),
    ("p1", "[wolves] player_1 proposes player_3."),
    ("p1", "[wolves] Target: player_3."),
    ("p3", "[seer] player_1 is a werewolf."),
    ("p2", "[doctor] You protect player_0."),
    ("all", "Day 1. player_3 was killed in the night."),
    ("all", "[Day 1] player_0: player_4 is silent."),
    ("all", "[Day 1] player_1: I agree, player_4."),
    ("all", "[Day 1] player_2: No idea yet."),
    ("all", "[Day 1] player_4: It is player_1."),
    ("all", "Votes: player_0 -> player_4; player_1 -> player_4; player_2 -> abstain; player_4 -> player_1."),
    ("all", "Tally: player_1 1, player_4 2. player_4 was eliminated."),
    ("all", "Night 2. Alive: player_0, player_1, player_2."),
    ("p1", "[wolves] player_1 proposes player_0."),
    ("p1", "[wolves] Target: player_0."),
    ("p2", "[doctor] You protect player_2."),
    ("all", "Day 2. player_0 was killed in the night."),
    (
        "all",
        "Game over. Winner: werewolves. Roles: player_0 villager, player_1 werewolf, player_2 doctor, player_3 seer, player_4 villager.",
    ),
]


def recipients(to: str, num_seats: int) -> tuple[int, ...]:
    """Return the seats of a column such as "p0,p3" or "all"."""
    return tuple(range(num_seats)) if to == "all" else tuple(int(name[1:]) for name in to.split(","))


def started(roles: Sequence[str], seed: int = 0, **options: Any) -> Table:
    """Return a table at which a game with these roles has begun."""
    of_table = {key: options.pop(key) for key in ("retries", "invalid_penalty") if key in options}
    table = Table(Werewolf(len(roles), roles, **options), **of_table)
    begin_game(table, seed, {"roles": roles})
    return table


def play(table: Table, actions: Sequence[tuple[int, str]]) -> Table:
    """Answer in order; each seat must be the one that is asked."""
    for seat, text in actions:
        assert table.pending[0] == seat, (table.pending, seat, text)
        table.answer(seat, text)
    return table


def deeds(actions: Sequence[tuple[int, str]], **replaced: str) -> list[tuple[int, str]]:
    """Return a script with some actions replaced, such as ``a4="save player_1"``; numbers begin at 1."""
    numbers = {int(key[1:]): text for key, text in replaced.items()}
    return [(seat, numbers.get(number, text)) for number, (seat, text) in enumerate(actions, 1)]


def log_of(table: Table) -> list[tuple[tuple[int, ...], str]]:
    """Return every line with its readers."""
    return [(line.to, line.text) for line in table.log]


def texts(table: Table, contains: str = "") -> list[str]:
    """Return the lines that contain a text."""
    return [line.text for line in table.log if contains in line.text]


def returns(table: Table) -> list[float]:
    """Return what each seat has earned, to nine digits."""
    return [round(total, 9) for total in table.returns]


def finished(roles: Sequence[str], actions: Sequence[tuple[int, str]], **options: Any) -> Table:
    """Return a table at which a script was played."""
    return play(started(roles, **options), actions)


def rules(table: Table) -> Werewolf:
    """Return the game of a table."""
    assert isinstance(table.game, Werewolf)
    return table.game
