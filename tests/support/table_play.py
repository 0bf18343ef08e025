"""Playing games between seats at a table, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player, make_player
from turngym.envs.multiagent.table import Table
from turngym.seeding import stream, stream_seed


def started(game: Game, seed: int = 0, options: Mapping[str, Any] | None = None) -> Table:
    """Return a table at which a game has begun."""
    table = Table(game)
    table.reset(np.random.default_rng(stream_seed("game", seed)), options)
    return table


def say(table: Table, *answers: str) -> list[tuple[float, ...]]:
    """Give answers, each for the seat that is asked first, and return the rewards of each."""
    return [table.answer(table.pending[0], answer).rewards for answer in answers]


def decisions(table: Table, choose: Callable[[Table, int], str]) -> Iterator[int]:
    """Play on with chosen answers, and yield the seat before each."""
    while table.pending:
        seat = table.pending[0]
        yield seat
        table.answer(seat, choose(table, seat))


def at_random(generator: np.random.Generator) -> Callable[[Table, int], str]:
    """Return what picks any legal action, or says something."""

    def choose(table: Table, seat: int) -> str:
        legal = table.views[seat].legal_actions
        if legal:
            return legal[int(generator.integers(len(legal)))]
        return f"I say {int(generator.integers(100))}"

    return choose


def match(
    game: Game, players: Sequence[str | Player], seed: int = 0, options: Mapping[str, Any] | None = None
) -> Table:
    """Play one game between players, by name or as objects, and return its table."""
    table = started(game, seed, options)
    seated = [make_player(player, game) if isinstance(player, str) else player for player in players]
    for seat, player in enumerate(seated):
        player.begin(table.views[seat], stream("player", seed, seat))
    for seat in decisions(table, lambda table, seat: seated[seat].act(table.views[seat])):
        assert seat in table.pending
    return table


def seen_by(table: Table, seat: int) -> tuple[Any, ...]:
    """Return everything that a seat can see of the game."""
    view = table.views[seat]
    return (
        list(view.lines),
        view.observation,
        view.legal_actions,
        view.anchor,
        view.instructions,
        view.phase,
        view.role,
        table.info(seat)["progress"],
    )
