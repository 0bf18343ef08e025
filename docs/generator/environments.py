"""Generate a page for every family of environments: ``python docs/generator/environments.py [NAME ...]``.

Sources are the classes, one episode played here, and the figures in ``benchmarks/results``. A test checks that the
pages in the repository are up to date.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gallery
import gymnasium
import numpy as np
from families import Family, Words, families, options_text, words_of
from stale import stale

import turngym  # noqa: F401  (registers the environments)
from turngym.agents.intervals import wilson
from turngym.benchmarks.cli.terminal.listing import SHELVES
from turngym.envs.multiagent.registration import game_class
from turngym.envs.png import png
from turngym.envs.seat import SeatEnv
from turngym.envs.transcript import opening_text
from turngym.storage.files import write_atomic

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "environments"
PLAYED_EXTRAS = {"", "webshop", "babyai", "search"}
"""Extras whose environments are played here: they need no system program and no user files."""
NOT_PLAYED = {"GymnasiumText": 'turngym.make needs `inner="FrozenLake-v1"` or another id of Gymnasium.'}
SEED = 1
_MOST_TURNS = 6
_SEAT_OPTIONS = (
    "Ids of one seat also take `seat`, `role`, `opponents`, `retries`, `invalid_penalty` and `max_turns`: see "
    "[options of a seat](../how-to/games.md#options-of-a-seat)."
)
_SMALLEST_PICTURE = 192


@cache
def figures() -> Mapping[str, Any]:
    """Return the measured success of experts and of random play by id."""
    found: Mapping[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "experts.json").read_text("utf8"))
    return found


def is_played(family: Family) -> bool:
    """Return whether the page shows an episode."""
    return set(family.extras) <= PLAYED_EXTRAS and family.name not in NOT_PLAYED


def page(family: Family) -> str:
    """Return the page of a family as Markdown."""
    words = words_of(family.kind())
    parts = [f"# {family.title}", words.summary, *_needs(family), *_picture(family), words.description]
    parts += ["## Ids", *_ids(family)]
    if is_played(family):
        env = _make(family)
        env.reset(seed=SEED)  # the rules of some games depend on the role that a seat has drawn
        parts += ["## Rules", "`env.instructions`, shown once per episode:", _fenced(env.instructions)]
        parts += _roles(env)
        parts += ["## Actions", *_actions(env)]
        env.close()
    if words.rewards:
        parts += ["## Reward", words.rewards]
    if family.is_game and is_played(family):
        parts += ["## Players", *_players(family)]
    parts += ["## Options", *_options(words)]
    if family.is_game:
        parts += [_SEAT_OPTIONS]
    if is_played(family):
        parts += ["## Example", *_example(family)]
    measured = list(_measured(family))
    parts += ["## Measured", *measured] if measured else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _make(family: Family, **options: Any) -> Any:
    return gymnasium.make(next(iter(family.playable())), split="test", **options).unwrapped


def _needs(family: Family) -> Iterator[str]:
    if family.extras:
        yield f'!!! note "Install"\n    `pip install "turngym[{",".join(family.extras)}]"`'
    if family.is_game:
        names = ", ".join(f"`{name}`" for name in family.ids)
        yield (
            "A multi-agent game. The ids below are of one seat, for `gymnasium.make`, `turngym train --env` and "
            f"`turngym eval`; those of the game ({names}) are for all seats: `turngym tournament`, self-play with "
            "`turngym train --game`, PettingZoo and `turngym.envs.multiagent`."
        )


def _players(family: Family) -> Iterator[str]:
    game = game_class(next(iter(family.ids)))
    lines = ["| player | description |", "| --- | --- |"]
    for name, place in game.players.items():
        module, _, attribute = place.partition(":")
        about = (inspect.getdoc(getattr(importlib.import_module(module), attribute)) or "").partition("\n\n")[0]
        lines.append(f"| `{name}` | {' '.join(about.split()).replace('``', '`').replace('|', '&#124;')} |")
    yield "\n".join(lines)
    yield "Any game also has the players `random` and `first_legal`, and [agents](../how-to/games.md)."


def has_picture(family: Family) -> bool:
    """Return whether an environment draws itself."""
    if not is_played(family):
        return False
    env = _make(family)
    env.close()
    return "rgb_array" in env.metadata["render_modes"]


def _picture(family: Family) -> Iterator[str]:
    if not has_picture(family):
        return
    env = _make(family, render_mode="rgb_array")
    env.reset(seed=SEED)
    image = env.render()
    scale = max(1, -(-_SMALLEST_PICTURE // min(image.shape[:2])))
    name = f"pictures/{family.slug}.png"
    (PAGES / "pictures").mkdir(parents=True, exist_ok=True)
    (PAGES / name).write_bytes(png(np.kron(image, np.ones((scale, scale, 1), np.uint8))))
    env.close()
    yield f"![First image of an episode]({name})"


def _ids(family: Family) -> Iterator[str]:
    lines = ["| id | preset options | description |", "| --- | --- | --- |"]
    for env_id, spec in family.playable().items():
        stands_for = f"`{options_text(spec)}`" if spec.kwargs else ""
        lines.append(f"| `{env_id}` | {stands_for} | {spec.summary} |")
    yield "\n".join(lines)


def _roles(env: Any) -> Iterator[str]:
    """Yield the names of a game's roles, and in which lines the rules of others differ from those shown."""
    if not isinstance(env, SeatEnv):
        return
    views = {view.role: view for view in env.table.views if view.role}
    if len(views) < 2:
        return
    yield f"Roles, for `--option role=NAME`: {', '.join(f'`{role}`' for role in views)}."
    shown = env.instructions.splitlines()
    for role, view in views.items():
        if lines := [line for line in view.instructions.splitlines() if line not in (*shown, f"Your role: {role}.")]:
            yield f"Lines that differ for `{role}`:"
            yield _fenced("\n".join(lines))


def _actions(env: Any) -> Iterator[str]:
    _, info = env.reset(seed=SEED)
    legal = info["legal_actions"]
    if legal:
        shown = ", ".join(f"`{action}`" for action in legal[:12])
        more = f" and {len(legal) - 12} more" if len(legal) > 12 else ""
        if tuple(legal) == ("say",):
            more = ": any text, which all hear"
        yield f'`info["legal_actions"]` lists the legal actions. In the first turn of the example: {shown}{more}.'
    else:
        yield 'The legal actions cannot be enumerated, so `info["legal_actions"]` is empty.'
    yield (
        "Any text is accepted. An action that cannot be parsed or is illegal uses up a turn and clears "
        '`info["action_is_valid"]`.'
    )
    if isinstance(env.unwrapped, SeatEnv):
        yield (
            "After a second illegal answer in a turn the seat [forfeits the game](../how-to/games.md#illegal-actions). "
            "The list of legal actions is rotated at random."
        )
    reasons: dict[str, list[str]] = {}
    for player, why in env.unwrapped.beaten_by.items():
        reasons.setdefault(why, []).append(f"*{player}*")
    for why, players in reasons.items():
        yield f"Players without skill that beat random legal play: {', '.join(players)}. Reason: {why}"


def _options(words: Words) -> Iterator[str]:
    yield 'In addition to `split="train" | "dev" | "test"` and `render_mode`:'
    lines = ["| option | value | default | meaning |", "| --- | --- | --- | --- |"]
    for each in words.options:
        cells = f"`{each.name}`", each.value, f"`{each.default}`", each.description.replace("\n", " ")
        lines.append(f"| {' | '.join(cells)} |")
    yield "\n".join(lines)


def _example(family: Family) -> Iterator[str]:
    env_id = next(iter(family.playable()))
    player, text = _opening(env_id)
    yield f"Start of an episode of `{env_id}` (split `test`, seed {SEED}), played by {player}."
    yield _fenced(text)


@cache
def _opening(env_id: str) -> tuple[str, str]:
    env = gymnasium.make(env_id, split="test").unwrapped
    found = opening_text(env, SEED, _MOST_TURNS)
    env.close()
    return found


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _measured(family: Family) -> Iterator[str]:
    rows = {each: figures()["games"][each] for each in family.playable() if each in figures()["games"]}
    if not rows:
        yield from _measured_by_suites(family)
        return
    lines = [
        "| id | expert | random | expert turns | turn limit | random turns per second |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for env_id, row in rows.items():
        expert, random = row["expert"], row["random"]
        cells = [f"{each['success']:.1%} [{each['low']:.1%}, {each['high']:.1%}]" for each in (expert, random)]
        speed = random["mean_turns"] / random["cpu_seconds_per_episode"]
        lines.append(
            f"| `{env_id}` | {cells[0]} | {cells[1]} | {expert['mean_turns']:.1f} | {expert['max_turns']} "
            f"| {speed:,.0f} |"
        )
    yield "\n".join(lines)
    yield (
        f"Success rates on {figures()['episodes']} episodes of the `test` split with 95 % Wilson intervals; turns per "
        "second on one core, resets included."
    )


SUITES = ("turngym-core", "textworld", "textworld-express", "scienceworld", "alfworld-rows")
"""Result files with the success of the expert and of random play by environment."""


@cache
def suite_figures() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return success with its interval by environment label and player."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for suite in SUITES:
        content = json.loads((ROOT / "benchmarks" / "results" / f"{suite}.json").read_text("utf8"))
        for player, row in content["rows"].items():
            for label, environment in row["environments"].items():
                found.setdefault(label, {})[player] = environment["success"]
    shortcuts = json.loads((ROOT / "benchmarks" / "results" / "judge_shortcuts.json").read_text("utf8"))
    names = {"expert": "expert", "at_random": "random"}
    for row in shortcuts["rows"]:
        if row["policy"] in names and "success" in row:
            of_env = found.setdefault(row["env"], {})
            of_env.setdefault(names[row["policy"]], {"value": row["success"], "n_games": shortcuts["episodes"]})
    return found


def _measured_by_suites(family: Family) -> Iterator[str]:
    rows = {
        label: players
        for label, players in suite_figures().items()
        if label.partition(" ")[0] in family.playable() and {"expert", "random"} <= set(players)
    }
    if not rows:
        yield from _measured_random(family)
        return
    lines = ["| environment and options | expert | random | tasks |", "| --- | --- | --- | --- |"]
    for label, players in rows.items():
        cells = [_share(players[player]) for player in ("expert", "random")]
        lines.append(f"| `{label}` | {cells[0]} | {cells[1]} | {players['expert']['n_games']} |")
    yield "\n".join(lines)
    yield "Success rates on the `test` split with 95 % Wilson intervals."


def _measured_random(family: Family) -> Iterator[str]:
    """Yield success of random legal play, where nothing else is recorded."""
    rows = {each: gallery.random_play()[each] for each in family.playable() if each in gallery.random_play()}
    if rows:
        lines = ["| id | random | episodes |", "| --- | --- | --- |"]
        for env_id, row in rows.items():
            share = _share({"value": row["random"], "n_games": row["episodes"]})
            lines.append(f"| `{env_id}` | {share} | {row['episodes']} |")
        yield "\n".join(lines)
        yield "Success of random legal play with 95 % Wilson intervals (`benchmarks/studies/checks/no_skill.py`)."


def _share(success: Mapping[str, Any]) -> str:
    if "ci_low" not in success:
        solved = round(success["value"] * success["n_games"])
        low, high = wilson(solved, success["n_games"])
        low = max(low, 0.0)  # rounding leaves less than none
    else:
        low, high = success["ci_low"], success["ci_high"]
    return f"{success['value']:.1%} [{low:.1%}, {high:.1%}]"


def text_picture(family: Family) -> str:
    """Return the picture of a game of text: what a player sees first, or how to make it where it is not played here."""
    if not is_played(family):
        return gallery.text_picture(f'>>> env = turngym.make(\n...     "{next(iter(family.playable()))}")')
    turns = "".join(_example(family)).partition("```text\n")[2]
    marks = {"[observation]\n": "", "[action]\n": "> "}
    for mark, shown in marks.items():
        turns = turns.replace(mark, shown)
    return gallery.text_picture(
        re.sub(r"^\[reward .*\]\n|^\[terminated.*|^\[\d+ turns.*|^`+$", "", turns, flags=re.MULTILINE)
    )


def _facts(family: Family) -> Iterator[str]:
    """Yield the lines of a card: turn limit, and measured success of random play and the expert."""
    first = next(iter(family.playable()))
    if is_played(family):
        env = _make(family)
        yield f"at most {env.max_turns} turns"
        env.close()
    if first in figures()["games"]:
        row = figures()["games"][first]
        rates = {player: row[player]["success"] for player in ("random", "expert")}
    else:
        labels = {label.partition(" ")[0]: players for label, players in reversed(list(suite_figures().items()))}
        rates = {player: row["value"] for player, row in labels.get(first, {}).items()}
        if "random" not in rates and first in gallery.random_play():
            rates["random"] = gallery.random_play()[first]["random"]
    names = {"random": "random play", "expert": "expert"}
    for player in names:
        if player in rates:
            yield f"{names[player]} {rates[player]:.0%}"


def gallery_pages(found: list[Family]) -> dict[Path, str]:
    """Return the gallery with the pictures that it draws."""
    texts: dict[Path, str] = {}
    cards: dict[str, list[str]] = {shelf: [] for shelf in SHELVES}
    for family in found:
        picture = f"{family.slug}.png"
        if not has_picture(family):
            picture = f"{family.slug}.svg"
            texts[PAGES / "pictures" / picture] = text_picture(family)
        cards[family.shelf].append(gallery.card(family, picture, _facts(family)))
    return {PAGES / "index.md": gallery.page(cards), **texts}


def main(words: list[str]) -> int:
    """Write the pages of the named families, or all; with ``--check``, compare instead."""
    names = [word for word in words if word != "--check"]
    found = families()
    known = {family.name for family in found}
    if unknown := sorted(set(names) - known):
        print(f"no family named {unknown[0]}; there are: {', '.join(sorted(known))}")
        return 2
    wanted = {PAGES / f"{family.slug}.md": family for family in found if not names or family.name in names}
    texts = {path: page(family) for path, family in wanted.items()} | gallery_pages(found)
    if "--check" in words:
        return stale(texts, "docs/generator/environments.py", PAGES)
    PAGES.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        write_atomic(path, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
