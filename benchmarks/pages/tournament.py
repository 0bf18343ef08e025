"""The page of a tournament: ratings, who did how well against whom, sides and roles, and what went wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from turngym.benchmarks.pages.matches import (
    Numbers,
    by_rating,
    differences_section,
    matrix_section,
    parts_section,
    players_table,
)
from turngym.benchmarks.pages.shell import asset, page
from turngym.benchmarks.pages.tables import Cell, Column, Line, facts, figure, filter_box, sortable_table
from turngym.benchmarks.tournaments.submission import PlayedTournament, read_tournament
from turngym.benchmarks.tournaments.tables import remarks
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic
from turngym.trainers.core.wording import counted
from turngym.web.html import Html, details, tag

HELP = (
    "Intervals are of 95 % and resample whole blocks of games. Ratings are Bradley-Terry strengths on the Elo scale; a "
    "rank such as 2–4 is the range that overlapping intervals leave open."
)
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
            "--resume` goes on with one that is not over."
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
            "`turngym tournament ... --resume` writes it anew from the games."
        ) from error


def _page(data: PlayedTournament) -> str:
    found = data.results
    games = f"{counted(found['n_games'], 'game')} in {counted(found['n_blocks'], 'block')}"
    subtitle = f"{games}, {counted(len(found['players']), 'player')}, pairing {found['pairing']}, seed {found['seed']}."
    sides = sorted({cell["side"] for cell in found["win_matrix"]} - {""})
    told = [tag("li", sentence) for sentence in remarks(found)]
    return page(
        f"Tournament: {str(found['env']).removeprefix('turngym/')}",
        tag("p", HELP, class_="quiet"),
        filter_box("Filter: player, side, role …"),
        tag("section", tag("h2", "Players"), players_table(found), tag("ul", *told) if told else Html()),
        matrix_section(found, sides),
        parts_section(found),
        differences_section(found["differences"]),
        faults_section(found, data.games),
        settings_section(data),
        script=asset("tables.js"),
        style=asset("tables.css"),
        subtitle=subtitle,
    )


def faults_section(found: Numbers, games: Sequence[Numbers]) -> Html:
    """Return how often answers failed, and the first games that broke."""
    lines = []
    for name in by_rating(found):
        usage = found["players"][name]["usage"]
        cells = [Cell(tag("span", name, class_="who"), name.lower())]
        cells += [Cell(f"{usage[key]:,}", usage[key]) for key in _TOTALS]
        cells.append(Cell(figure(usage["latency"]), usage["latency"]))
        lines.append(Line(f"player {name}", cells))
    names = ["player", *(key.replace("_", " ") for key in _TOTALS), "seconds"]
    columns = [Column(names[0], "ascending", is_number=False), *(Column(name) for name in names[1:])]
    table = sortable_table("What was asked and answered, in games with others.", columns, lines)
    broken = [game for game in games if game["status"] != "ok"]
    sentence = (
        f"Games with a fault of a player: {found['agent_errors']:,}, of the rules: {found['env_errors']:,}. "
        "A seat that faults twice forfeits; a game whose rules fault twice counts as a draw."
    )
    shown = [
        tag("li", tag("code", game["match"]), f" {game['status']}: ", tag("code", game["fault"]))
        for game in broken[:_SHOWN_FAULTS]
    ]
    listed = tag("ul", *shown) if shown else Html()
    return tag("section", tag("h2", "Answers and faults"), tag("p", sentence), listed, table)


def settings_section(data: PlayedTournament) -> Html:
    """Return what the tournament was."""
    pairs = [
        (key.replace("_", " "), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in data.plan.items()
    ]
    return tag("section", tag("h2", "Settings"), details(counted(len(pairs), "setting"), facts(pairs)))


def write_tournament_page(folder: Path) -> Path:
    """Write ``page.html`` into the folder of a tournament and return its path.

    Raises:
        ConfigError: The folder holds no finished tournament.
    """
    target = folder / "page.html"
    write_atomic(target, tournament_page(sound_tournament(folder)))
    return target
