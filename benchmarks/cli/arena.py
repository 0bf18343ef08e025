"""``turngym arena``: a standing population of players over several games, and their ratings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tyro.conf import Positional

from turngym.agents.players import AgentSettings
from turngym.benchmarks.arena.folder import COSTS, as_stored, require_name
from turngym.benchmarks.arena.plan import ArenaPlayer, Change
from turngym.benchmarks.arena.run import SECONDS, play_arena
from turngym.benchmarks.arena.shown import remarks, tables_of
from turngym.benchmarks.cli import eval as evaluation
from turngym.benchmarks.cli.options.parsing import Pairs, key_values, parse
from turngym.benchmarks.cli.options.trained_models import tell
from turngym.benchmarks.cli.tournament import players_of, progress_bar, show
from turngym.benchmarks.pages.arena import write_arena_page
from turngym.envs.multiagent.registration import make_game
from turngym.envs.vector.slots.boundary import close_quietly
from turngym.terminal.console import Console
from turngym.terminal.failures import resumable
from turngym.terminal.interrupted import INTERRUPTED, STOPPING, acknowledged
from turngym.terminal.output import print_json

USES_OWN_MODULES = True


@dataclass(frozen=True)
class Arguments:
    """Maintain an arena: a population of players over several games, matched to reduce the uncertainty of ratings.

    The first call starts it; later calls continue it and add games, players and matches. A call that was interrupted or
    killed continues with the same command, or with the folder alone.

    Args:
        folder: Folder of population, games, results and page.
        games: Games to add, such as turngym/KuhnPoker-v0, or `module:Class`; NAME=GAME renames one.
        players: Players to add: those of a game or generic ones (random, first_legal), agents (hf:PATH_OR_NAME), custom
            players (path/to/file.py:Class); NAME=PLAYER renames one. Each plays the games that it supports.
        retire: Players that stop playing but stay in the ratings.
        matches: Total number of matches, including those of earlier calls (default: as before, or 100).
        option: Option of the added games, such as hands=10.
        seed: Seed of the arena (default: 0); fixed by the first call, like --retries and --round.
        retries: Retries after an invalid answer, before the seat forfeits (default: 1).
        round: Matches chosen at a time, from the results so far (default: 16).
        tables: Number of parallel games; does not affect results.
        answer_seconds: Time for an answer; a player that takes longer is interrupted and forfeits the match.
        temperature: Sampling temperature of the added players; 0 is greedy.
        top_p: Nucleus sampling threshold.
        max_new_tokens: Maximum completion length in tokens (default: that of the model's training, else 256).
        format: Action format: tag, boxed, json or plain.
        style: Prompt style: plain, react, summary or notes, as in `turngym eval`.
        prompt: Prompt setting, such as history=3 or instructions=false.
        server: Server setting, such as concurrency=32, timeout=60 or prices=FILE.
        json: Print the results as JSON.
    """

    folder: Positional[Path]
    games: tuple[str, ...] = ()
    players: tuple[str, ...] = ()
    retire: tuple[str, ...] = ()
    matches: int | None = None
    option: Pairs = ()
    seed: int | None = None
    retries: int | None = None
    round: int | None = None
    tables: int = 16
    answer_seconds: float = SECONDS
    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int | None = None
    format: str | None = None
    style: str | None = None
    prompt: Pairs = ()
    server: Pairs = ()
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Play what is left and print the ratings."""
    arguments = parse(Arguments, argv, "arena")
    change = change_of(arguments)
    console = Console(highlight=False, quiet=arguments.json)
    fixed = {name: getattr(arguments, name) for name in ("seed", "retries", "round")}
    try:
        with acknowledged(STOPPING), resumable(arguments.folder, "matches"), progress_bar(console) as progress:
            task = progress.add_task("matches", total=None)
            found = play_arena(
                arguments.folder,
                change,
                fixed=fixed,
                tables=arguments.tables,
                seconds=arguments.answer_seconds,
                on_match=lambda done, total: progress.update(task, completed=done, total=total),
            )
            write_arena_page(arguments.folder)
    except KeyboardInterrupt:
        console.print(f"interrupted: `turngym arena {arguments.folder}` continues", markup=False)
        return INTERRUPTED
    if arguments.json:
        print_json(found, sort_keys=True)
        return 0
    costs = json.loads((arguments.folder / COSTS).read_text("utf8"))
    show(tables_of(found, costs), remarks(found), arguments.folder, console)
    return 0


def change_of(arguments: Arguments) -> Change:
    """Return what a command changes.

    Raises:
        ConfigError: A word or a setting is wrong.
        UnknownName: There is no such game or action format.
    """
    options = as_stored(key_values(arguments.option, "--option"))
    games = {
        require_name(name.removeprefix("turngym/")): (game, options)
        for name, game in players_of(arguments.games, "--games").items()
    }
    for game, given in games.values():
        close_quietly(make_game(game, **given))
    players = players_of(arguments.players)
    env = next((game for game, _ in games.values()), "")
    return Change(
        games,
        {name: _player(arguments, player, env) for name, player in players.items()},
        arguments.retire,
        arguments.matches,
    )


def _player(arguments: Arguments, player: str, env: str) -> ArenaPlayer:
    """Return a player with its settings, as far as they are not the usual ones; those without a model have none."""
    settings = evaluation.settings_of_options(arguments, player, env, arguments.seed or 0)
    if ":" not in player:
        return ArenaPlayer(player)
    tell(player, env, None, (), settings)
    usual = asdict(AgentSettings())
    return ArenaPlayer(player, as_stored({k: v for k, v in asdict(settings).items() if k != "seed" and v != usual[k]}))
