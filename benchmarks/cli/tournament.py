"""``turngym tournament``: players against one another, and their ratings."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from tyro.conf import Positional

from turngym.agents.players import AgentSettings
from turngym.benchmarks.cli import eval as evaluation
from turngym.benchmarks.cli.options.config_file import options_kept
from turngym.benchmarks.cli.options.parsing import Pairs, key_values, parse
from turngym.benchmarks.cli.options.trained_models import tell
from turngym.benchmarks.pages.tournament import write_tournament_page
from turngym.benchmarks.statistics.ratings import SMALLEST_PRIOR
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.results import PRIOR
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.benchmarks.tournaments.tables import remarks, tables_of
from turngym.envs.multiagent.registration import make_game
from turngym.envs.vector.slots.boundary import closing_quietly
from turngym.errors import ConfigError
from turngym.terminal.console import Console
from turngym.terminal.failures import resumable
from turngym.terminal.interrupted import INTERRUPTED, STOPPING, acknowledged
from turngym.terminal.output import print_json

USES_OWN_MODULES = True
_GENERIC_PLAYERS = ("random", "first_legal")
_NAMED = re.compile(r"([^=:,\s]+)=(.+)")
_MISNAMED = re.compile(r"([^=:/\\]*)=(.*)", re.DOTALL)
"""A word with a name that is none: what precedes ``=`` in a player as such has a colon or is a path."""


@dataclass(frozen=True)
class Arguments:
    """Run a tournament between players of a game and rate them, with 95 % intervals.

    Args:
        game: Id of a game, such as turngym/KuhnPoker-v0, or `module:Class`; `turngym list games` shows them.
        players: Players: those of the game or generic ones (random, first_legal), agents
            (hf:PATH_OR_NAME), custom players (path/to/file.py:Class); NAME=PLAYER renames one (default: all of the game
            and the generic ones).
        blocks: Number of blocks. All games of a block share a seed, and every player takes every seat or side.
        seed: Seed of the tournament.
        option: Game option, such as hands=10.
        pairing: sides (each player as a whole team against each other player), pairs, mixed, or auto.
        sides: apart rates each player separately per side, alike over all sides; together gives mean scores by partner
            for cooperative games; auto depends on the game.
        retries: Retries after an invalid answer, before the seat forfeits.
        tables: Number of parallel games; does not affect results.
        anchor: Player with fixed rating, as NAME or NAME=ELO (default: random at 0).
        prior: Weight of the prior of the ratings, in drawn games.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Nucleus sampling threshold.
        max_new_tokens: Maximum completion length in tokens (default: that of the model's training, else 256).
        format: Action format: tag, boxed, json or plain.
        style: Prompt style: plain, react, summary or notes, as in `turngym eval`.
        prompt: Prompt setting, such as history=3 or instructions=false.
        server: Server setting, such as concurrency=32, timeout=60 or prices=FILE.
        out: Folder for plan, games, results and page.
        resume: Resume the tournament in that folder; blocks may be added.
        config: File with options by name (YAML, TOML or JSON), or the folder of a tournament to repeat; options of the
            command line override it.
        json: Print the results as JSON.
    """

    game: Positional[str]
    players: tuple[str, ...] = ()
    blocks: int = 10
    seed: int = 0
    option: Pairs = ()
    pairing: str = "auto"
    sides: str = "auto"
    retries: int = 1
    tables: int = 64
    anchor: str = ""
    prior: float = PRIOR
    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int | None = None
    format: str | None = None
    style: str | None = None
    prompt: Pairs = ()
    server: Pairs = ()
    out: Path | None = None
    resume: bool = False
    config: Path | None = None
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Play, print the ratings, and write the folder if one was asked for."""
    arguments = parse(Arguments, argv, "tournament")
    plan = plan_of(arguments)
    anchor, elo = anchor_of(arguments.anchor)
    if not SMALLEST_PRIOR <= arguments.prior < math.inf:
        raise ConfigError(f"--prior must be finite and at least {SMALLEST_PRIOR:g}, got {arguments.prior}.")
    if arguments.tables < 1:
        raise ConfigError(f"--tables must be at least 1, got {arguments.tables}.")
    if arguments.resume and arguments.out is None:
        raise ConfigError("--resume needs the folder of the tournament: pass it as --out.")
    console = Console(highlight=False, quiet=arguments.json)
    try:
        with (
            options_kept(arguments.out, arguments),
            acknowledged(STOPPING),
            resumable(arguments.out, "games"),
            progress_bar(console) as progress,
        ):
            task = progress.add_task("games", total=None)
            found, _ = play_tournament(
                plan,
                folder=arguments.out,
                resume=arguments.resume,
                tables=arguments.tables,
                anchor=anchor,
                anchor_elo=elo,
                prior=arguments.prior,
                on_game=lambda done, total: progress.update(task, completed=done, total=total),
            )
    except KeyboardInterrupt:
        if arguments.out is None:
            raise
        console.print("interrupted: the same command with --resume continues", markup=False)
        return INTERRUPTED
    if arguments.out is not None:
        with resumable(arguments.out, "games"):
            write_tournament_page(arguments.out)
    if arguments.json:
        print_json(found, sort_keys=True)
        return 0
    show(tables_of(found), remarks(found), arguments.out, console)
    return 0


def show(tables: Iterable[tuple[str, Table]], sentences: Iterable[str], folder: Path | None, console: Console) -> None:
    """Print titled tables and sentences, and the page in the folder, if there is one."""
    for title, table in tables:
        console.print(title, style="bold", markup=False)
        console.print(table)
    for sentence in sentences:
        console.print(sentence, markup=False)
    if folder is not None:
        console.print(f"written to {folder}; {folder / 'page.html'} shows it", markup=False)


def plan_of(arguments: Arguments) -> TournamentPlan:
    """Return what is to be played.

    Raises:
        UnknownName: There is no such game, or action format.
        ConfigError: A setting is wrong.
    """
    if arguments.blocks < 1:
        raise ConfigError(f"--blocks must be at least 1, got {arguments.blocks}.")
    if arguments.retries < 0:
        raise ConfigError(f"--retries must be at least 0, got {arguments.retries}.")
    options = key_values(arguments.option, "--option")
    with closing_quietly(make_game(arguments.game, **options)) as game:
        chosen = arguments.players or tuple(dict.fromkeys([*_GENERIC_PLAYERS, *game.players]))
    players, common = players_of(chosen), evaluation.settings_of_options(arguments, "", arguments.game, arguments.seed)
    own = {
        name: evaluation.settings_of_options(arguments, player, arguments.game, arguments.seed)
        for name, player in players.items()
    }
    for name, player in players.items():
        tell(player, arguments.game, options, (), own[name])
    return TournamentPlan(
        arguments.game,
        players,
        arguments.blocks,
        arguments.seed,
        options,
        arguments.pairing,
        arguments.sides,
        arguments.retries,
        common,
        {name: changed for name, settings in own.items() if (changed := _changed(common, settings))},
    )


def _changed(common: AgentSettings, own: AgentSettings) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(common)]
    return {name: getattr(own, name) for name in names if getattr(own, name) != getattr(common, name)}


def players_of(words: Sequence[str], option: str = "--players") -> dict[str, str]:
    """Return name -> player from the words of ``--players``.

    Args:
        words: Players, some with a name.
        option: The option, for messages.

    Raises:
        ConfigError: A name occurs twice or cannot be one, or a word holds several players.

    >>> players_of(["random", "mine=hf:runs/mine"])
    {'random': 'random', 'mine': 'hf:runs/mine'}
    """
    found: dict[str, str] = {}
    for word in words:
        named = _NAMED.fullmatch(word)
        name, player = named.groups() if named else (word, word)
        if not named and (given := _MISNAMED.match(word)):
            raise ConfigError(
                f"a name in {option} has no spaces, commas or colons, got {given[1]!r}: write "
                f"{_name_like(given[1])}={given[2]}."
            )
        if "," in player and ":" not in player:
            raise ConfigError(f"{option} takes one word for each, such as random first_legal, got {player!r}.")
        if name in found:
            raise ConfigError(f"{option} has {name!r} twice: give one another name, such as other={player}.")
        found[name] = player
    return found


def _name_like(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("_") or "mine"


def anchor_of(text: str) -> tuple[str, float]:
    """Return the name and the Elo of ``--anchor``.

    Raises:
        ConfigError: The Elo is not a number.

    >>> anchor_of("first_legal=1000")
    ('first_legal', 1000.0)
    """
    name, _, value = text.rpartition("=") if "=" in text else (text, "", "0")
    try:
        elo = float(value)
    except ValueError:
        raise ConfigError(f"--anchor takes NAME or NAME=ELO, such as random=1000, got {text!r}.") from None
    return name, elo


def progress_bar(console: Console) -> Progress:
    """Return a bar for games, which disappears at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=console.quiet)
