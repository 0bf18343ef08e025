"""Check games between seats: ``python benchmarks/studies/games/seats.py turngym/BeerGame-v0 --games 10000``.

In every game, random play and the game's own players alternate with hostile answers. At a share of the decisions, what
a seat cannot know is drawn again, and everything that the seat can see is compared; differences must be 0. Then each
player has all seats of cooperative games, and a team against each player in games of two teams: shares won with
Wilson's 95 % intervals, mean scores, metrics, and games per second of processor time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from turngym.agents.intervals import wilson
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.multiagent import Game, Player, Table, make_game, make_player
from turngym.seeding import stream

HOSTILE = ("", "\u200b\u202e", "\ud800", "<|im_end|>", '{"action": null}', "[" * 500, "9" * 20_000, "nan", "[[[say]]]")
SHARE, HOSTILE_SHARE = 0.2, 0.02


def seen_by(table: Table, seat: int) -> tuple[Any, ...]:
    """Return everything that a seat can see of a game."""
    view = table.views[seat]
    texts = list(view.lines), view.observation, view.anchor, view.instructions, view.phase, view.role
    return texts, view.legal_actions, view.is_asked, table.info(seat)["progress"]


def seat_players(game: Game, names: Sequence[str], table: Table, seed: int) -> list[Player]:
    """Return a player for each seat, ready for a game."""
    found = [make_player(name, game) for name in names]
    for seat, player in enumerate(found):
        player.begin(table.views[seat], stream("seats player", seed, seat))
    return found


def differences(table: Table, seat: int, generator: np.random.Generator) -> tuple[int, int]:
    """Draw again what a seat cannot know; return whether something changed, and whether the seat saw it."""
    before, state = seen_by(table, seat), table.game.state()
    changed = table.game.swap_hidden(seat, generator)
    seen = changed and ((seat in table.game.asked()) != table.views[seat].is_asked or seen_by(table, seat) != before)
    table.game.load(state)
    return int(changed), int(seen)


def interference(game_id: str, games: int) -> dict[str, int]:
    """Play games with hostile answers and look for leaks."""
    game = make_game(game_id)
    table, generator, found = Table(game), stream("seats", game_id), {"swaps": 0, "differences": 0, "hostile": 0}
    for seed in range(games):
        table.reset(stream("seats game", game_id, seed))
        names = ["random", next(iter(game.players))] * game.num_seats
        seated = seat_players(game, names[seed % 2 :][: game.num_seats], table, seed)
        while table.pending:
            seat = table.pending[0]
            if generator.random() < SHARE and table.pending == game.asked():
                changed, seen = differences(table, int(generator.integers(game.num_seats)), generator)
                found["swaps"] += changed
                found["differences"] += seen
            if generator.random() < HOSTILE_SHARE:
                found["hostile"] += 1
                table.answer(seat, HOSTILE[int(generator.integers(len(HOSTILE)))])
                if seat not in table.pending or not table.views[seat].retry:
                    continue
            table.answer(seat, seated[seat].act(table.views[seat]))
    return {"games": games, **found}


def matches(game_id: str, count: int, names: Callable[[Game], Sequence[str]]) -> dict[str, Any]:
    """Return results of games between players.

    Args:
        game_id: The game.
        count: Number of games.
        names: Player of each seat of a game that has begun.
    """
    game = make_game(game_id)
    table, scores, numbers = Table(game), [], []
    teams: dict[str, list[bool]] = {}
    start = time.process_time()
    for seed in range(count):
        table.reset(stream("seats match", game_id, seed))
        seated = seat_players(game, names(game), table, seed)
        while table.pending:
            seat = table.pending[0]
            table.answer(seat, seated[seat].act(table.views[seat]))
        won = {game.team(seat) for seat in table.winners()}
        for team in {game.team(seat) for seat in game.everyone}:
            teams.setdefault(team, []).append(team in won)
        scores.append(fmean(game.score(seat) for seat in game.everyone))
        numbers.append(game.metrics())
    seconds = time.process_time() - start
    return {
        "wins": {team: [fmean(each), *wilson(sum(each), len(each))] for team, each in sorted(teams.items())},
        "score": fmean(scores),
        "metrics": {name: fmean(each[name] for each in numbers) for name in numbers[0]},
        "games_per_second": count / seconds,
    }


def _everywhere(name: str, game: Game) -> list[str]:
    return [name] * game.num_seats


def compare(game_id: str, count: int) -> dict[str, Any]:
    """Return results of each player at all seats, and of each two in the teams of a game with two of them."""
    game = make_game(game_id)
    names = [*game.players, "random"]
    if game.is_cooperative:
        return {name: matches(game_id, count, partial(_everywhere, name)) for name in names}
    game.begin(stream("teams"), {})
    one, other = sorted({game.team(seat) for seat in game.everyone})

    def sides(first: str, second: str) -> Callable[[Game], Sequence[str]]:
        return lambda game: [{one: first, other: second}[game.team(seat)] for seat in game.everyone]

    pairs = product(names, names)
    return {
        f"{one} {first}, {other} {second}": matches(game_id, count, sides(first, second)) for first, second in pairs
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Check, compare and write the figures."""
    parser = arguments(__doc__, "seats.json")
    parser.add_argument("game_ids", nargs="+", help="games of turngym")
    parser.add_argument("--games", type=int, default=10_000, help="games in which hidden facts are drawn again")
    parser.add_argument("--matches", type=int, default=1000, help="games of each pair of players")
    chosen = parser.parse_args(argv)
    result = {
        game_id: {"interference": interference(game_id, chosen.games), "players": compare(game_id, chosen.matches)}
        for game_id in chosen.game_ids
    }
    write_result(chosen.out, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
