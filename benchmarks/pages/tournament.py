"""The page of a tournament: ratings, who did how well against whom, sides and roles, and what went wrong."""

from __future__ import annotations

import json
from pathlib import Path

from turngym.benchmarks.pages.matches import (
    Numbers,
    by_rating,
    differences_table,
    field_table,
    part_table,
    partners_table,
    players_table,
    win_matrix,
)
from turngym.benchmarks.pages.tables import Cell, Column, Line, Table, figure, page
from turngym.benchmarks.tournaments.field import field_ratings
from turngym.benchmarks.tournaments.submission import PlayedTournament, read_tournament
from turngym.benchmarks.tournaments.tables import remarks
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic
from turngym.trainers.core.wording import counted

_SHOWN_FAULTS = 10
_TOTALS = ("calls", "answers", "parse_failures", "illegal", "forfeits", "faults", "tokens_in", "tokens_out")


def sound_tournament(path: Path) -> PlayedTournament:
    """Return what the folder of a finished tournament holds.

    Raises:
        ConfigError: It holds none, it is not over, or a file is damaged.
    """
    tournament, problems = read_tournament(path)
    if tournament is None:
        first = problems[0]
        raise ConfigError(
            f"{path} holds no sound tournament ({first.place}: {first.message}). `turngym tournament ... --out {path} "
            "--resume` continues with one that is not over."
        )
    return tournament


def tournament_page(data: PlayedTournament) -> str:
    """Return the page.

    Raises:
        ConfigError: The results have not the shape of a tournament's.
    """
    try:
        return _page(data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
        raise ConfigError(
            f"{data.path / 'results.json'} has not the shape of a tournament's results ({error!r}): "
            "`turngym tournament ... --resume` rewrites it from the games."
        ) from error


def _page(data: PlayedTournament) -> str:
    found = data.results
    games = f"{counted(found['n_games'], 'game')} in {counted(found['n_blocks'], 'block')}"
    subtitle = f"{games}, {counted(len(found['players']), 'player')}, pairing {found['pairing']}, seed {found['seed']}."
    broken = [game for game in data.games if game["status"] != "ok"]
    sides = sorted({cell["side"] for cell in found["win_matrix"]} - {""})
    return page(
        f"Tournament: {str(found['env']).removeprefix('turngym/')}",
        "tournament.html",
        subtitle,
        players=partners_table(found) if found["partners"] else players_table(found),
        remarks=list(remarks(found)),
        matrix=win_matrix(found, sides),
        field=field_table([each._asdict() for each in field_ratings(found)]),
        sides=part_table(found, "by_side", "side"),
        roles=part_table(found, "by_role", "role"),
        differences=differences_table(found["differences"]),
        agent_errors=found["agent_errors"],
        env_errors=found["env_errors"],
        broken=[(game["match"], game["status"], game["fault"]) for game in broken[:_SHOWN_FAULTS]],
        answers=_answers_table(found),
        settings=[
            (key.replace("_", " "), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            for key, value in data.plan.items()
        ],
    )


def _answers_table(found: Numbers) -> Table:
    """Return how often answers of each player failed."""
    lines = []
    for name in by_rating(found):
        usage = found["players"][name]["usage"]
        cells = [Cell(name, name.lower(), "who"), *(Cell(f"{usage[key]:,}", usage[key]) for key in _TOTALS)]
        cells.append(Cell(figure(usage["latency"]), usage["latency"]))
        lines.append(Line(f"player {name}", cells))
    names = ["player", *(key.replace("_", " ") for key in _TOTALS), "seconds"]
    columns = [Column(names[0], "ascending", is_number=False), *(Column(name) for name in names[1:])]
    return Table("What was asked and answered, in games with others.", columns, lines)


def write_tournament_page(folder: Path) -> Path:
    """Write ``page.html`` into the folder of a tournament and return its path.

    Raises:
        ConfigError: The folder holds no finished tournament.
    """
    target = folder / "page.html"
    write_atomic(target, tournament_page(sound_tournament(folder)))
    return target
