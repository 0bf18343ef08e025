"""The page of an arena: ratings over all games and in each, against the field, costs, changes of the population."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turngym.benchmarks.arena.folder import COSTS, GAMES, PAGE, RESULTS, read_arena
from turngym.benchmarks.arena.plan import Arena
from turngym.benchmarks.arena.shown import by_rating, remarks
from turngym.benchmarks.leaderboard.table import ends_of, rank_ranges
from turngym.benchmarks.pages.matches import elo_axis, elo_cell, field_table
from turngym.benchmarks.pages.tables import Cell, Column, Line, Table, figure, page, rank_cell
from turngym.benchmarks.pages.tournament import write_tournament_page
from turngym.benchmarks.statistics.estimates import read_estimate
from turngym.errors import ConfigError
from turngym.storage.bounded import read_json
from turngym.storage.files import write_atomic
from turngym.trainers.core.wording import UNKNOWN, counted

Numbers = Mapping[str, Any]


def arena_page(folder: Path) -> str:
    """Return the page.

    Raises:
        ConfigError: The folder holds no arena with results.
    """
    arena, problems = read_arena(folder)
    if arena is None:
        raise ConfigError(f"{folder} holds no sound arena ({problems[0].place}: {problems[0].message}).")
    try:
        return _page(arena, read_json(folder / RESULTS), read_json(folder / COSTS))
    except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
        raise ConfigError(
            f"the results in {folder} are missing or damaged ({error!r}): `turngym arena {folder}` writes them."
        ) from error


def _page(arena: Arena, found: Numbers, costs: Numbers) -> str:
    names = by_rating(found)
    counts = [counted(len(names), "player"), counted(len(found["games"]), "game")]
    counts.append(counted(found["n_matches"], "match", "matches"))
    return page(
        "Arena",
        "arena.html",
        f"{', '.join(counts)}, seed {arena.seed}.",
        players=_players_table(found, names),
        remarks=list(remarks(found)),
        games=_games_table(found, names),
        links=[(name, f"{GAMES}/{name}/page.html", each["n_games"]) for name, each in found["games"].items()],
        field=field_table(found["field"]),
        costs=_costs_table(costs, names),
        stages=[_stage(arena, number) for number in range(len(arena.stages))],
        settings=[(key, json.dumps(value, ensure_ascii=False)) for key, value in arena.content().items()],
    )


def _players_table(found: Numbers, names: list[str]) -> Table:
    ratings = found["ratings"] or {"players": {}, "anchor": None}
    elo = {name: read_estimate(each["elo"]) for name, each in ratings["players"].items()}
    rated = [name for name in names if name in elo]
    ends = [(0.0, 0.0) if name == ratings["anchor"] else ends_of(elo[name]) for name in rated]
    ranks = dict(zip(rated, rank_ranges(ends), strict=True))
    axis = elo_axis(elo.values(), 0.0)
    lines = []
    for name in names:
        player = found["players"][name]
        total = sum(player["games"].values())
        cells = [
            rank_cell(*ranks[name]) if name in ranks else Cell(UNKNOWN),
            Cell(name, name.lower(), "who", note="retired" if player["retired"] else ""),
            elo_cell(elo.get(name), axis, name == ratings["anchor"]),
            *(Cell(f"{number:,}", number) for number in (total, player["forfeits"], player["faults"])),
        ]
        lines.append(Line(f"player {name}", cells, name))
    columns = [
        Column("rank", "ascending", is_number=False),
        Column("player", "ascending", is_number=False),
        Column("Elo", is_number=False, title="Over all games, each with the same weight"),
        Column("matches"),
        Column("forfeits", "ascending"),
        Column("faults", "ascending", title="Failures of the player: errors, crashes, answers that never came"),
    ]
    fixed = f" Elo of {ratings['anchor']} is fixed at 0." if ratings["anchor"] else ""
    return Table(f"{counted(len(lines), 'player')}.{fixed}", columns, lines, sorted_by=0)


def _games_table(found: Numbers, names: list[str]) -> Table:
    games = found["games"]
    elo = {
        game: {name: read_estimate(each) for name, each in numbers["elo"].items()} for game, numbers in games.items()
    }
    axis = elo_axis([each for ratings in elo.values() for each in ratings.values()], 0.0)
    lines = [
        Line(
            f"games {name}",
            [
                Cell(name, name.lower(), "who"),
                *(elo_cell(elo[game].get(name), axis, name == games[game]["anchor"]) for game in games),
            ],
            name,
        )
        for name in names
    ]
    columns = [Column("player", "ascending", is_number=False), *(Column(game, is_number=False) for game in games)]
    return Table("Elo in each game.", columns, lines)


def _costs_table(costs: Numbers, names: list[str]) -> Table:
    lines = []
    for name in names:
        for game, each in costs.get(name, {}).items():
            count = max(each["matches"], 1)
            shown = [each["tokens_in"] / count, each["tokens_out"] / count]
            cells = [
                Cell(name, name.lower(), "who"),
                Cell(game, game.lower(), "ranks"),
                Cell(f"{each['matches']:,}", each["matches"]),
                *(Cell(figure(value, 0), value) for value in shown),
                Cell(figure(each["seconds"] / count, 2), each["seconds"] / count),
                Cell(UNKNOWN) if each["usd"] is None else Cell(figure(each["usd"] / count, 4), each["usd"] / count),
            ]
            lines.append(Line(f"cost {name} {game}", cells))
    texts = [Column(name, "ascending", is_number=False) for name in ("player", "game")]
    numbers = [Column(name) for name in ("matches", "tokens in", "tokens out", "seconds", "USD")]
    return Table("Means of a match.", [*texts, *numbers], lines)


def _stage(arena: Arena, number: int) -> str:
    """Return how the population changed, as a sentence."""
    stage = arena.stages[number]
    before = arena.stages[number - 1] if number else None
    parts = []
    for now, then in ((stage.games, before.games if before else ()), (stage.players, before.players if before else ())):
        parts += [f"{name} came" for name in now if name not in then]
        parts += [f"{name} left" for name in then if name not in now]
    return f"Before match {stage.start + 1:,}: {', '.join(parts)}."


def write_arena_page(folder: Path) -> Path:
    """Write ``page.html`` into the folder of an arena, and one for each of its games, and return its path.

    Raises:
        ConfigError: The folder holds no arena with results.
    """
    target = folder / PAGE
    arena, _ = read_arena(folder)
    for name in arena.games if arena else ():
        if (folder / GAMES / name / RESULTS).is_file():
            write_tournament_page(folder / GAMES / name)
    write_atomic(target, arena_page(folder))
    return target
