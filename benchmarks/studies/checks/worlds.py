"""Figures of the worlds of work: experts, random play, distinct instances, speed, and snapshots.

    python benchmarks/studies/checks/worlds.py [ID ...] [--episodes 500] [--random 500] [--restored 200]
    python benchmarks/studies/checks/worlds.py [ID ...] --only expert,training
    python benchmarks/studies/checks/worlds.py --games
    python benchmarks/studies/checks/worlds.py --table

An id may be followed by options in JSON, as in ``'turngym/MiniHack-v0 {"task": "MazeWalk-9x9"}'``. Each call writes
``benchmarks/results/worlds.json`` and the table of all worlds, ``worlds_of_work.md``; ``--table`` only the table,
``--games`` plays NetHack, MiniHack and Crafter, with the Python of ``.venvs/games``, and ``--only`` measures some parts
again and leaves all other figures.

Episodes are those of the test split from seed 0. An instance is drawn until it is of the split, so that a reset draws
ten in the test split, which has a tenth of them, and 1.25 in the one for training, where the speed is measured too.
Random play draws from the legal actions, or, where they cannot be listed, from forty commands of a shell, from calls
and statements made of names of tables and columns, or from calls of functions with numbers and texts that have been
shown, after signing in to every account. An episode in which the expert knows no way is not solved. The least number of
instances is what the equal pairs among so many draws leave at 95 %. Snapshots are taken at every turn of the expert's
episodes, and each is continued in another environment. Equal runs show the same, byte by byte, to experts and, outside
of sandboxes, random players. Seconds of the processor are those of this process, which does everything in the worlds
without a sandbox; they say what a second on a machine without other work would give.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import gymnasium

import turngym  # noqa: F401  (registers the environments)
from turngym.agents.intervals import wilson
from turngym.benchmarks.studies.checks.world_page import page
from turngym.benchmarks.studies.harness import RESULTS, arguments, write_result
from turngym.errors import ExpertLost
from turngym.seeding import stream
from turngym.storage.bounded import read_json
from turngym.storage.files import write_atomic

IDS = (
    *("turngym/Service-v0", "turngym/ServiceClinic-v0", "turngym/Terminal-v0", "turngym/TerminalHard-v0"),
    *("turngym/Sql-v0", "turngym/SqlHard-v0", "turngym/Ask-v0", "turngym/AskHard-v0", "turngym/AskIntent-v0"),
    *("turngym/Repo-v0", "turngym/RepoEasy-v0", "turngym/RepoHard-v0"),
    *("turngym/Rules-v0", "turngym/RulesEasy-v0", "turngym/RulesHard-v0"),
    *("turngym/Apps-v0", "turngym/AppsEasy-v0", "turngym/AppsHard-v0"),
)
_TASKS = ("MazeWalk-9x9", "Room-Random-15x15", "Room-Ultimate-15x15", "Corridor-R3")
GAMES = (
    "turngym/MiniHack-v0",  # MazeWalk-15x15
    *(f'turngym/MiniHack-v0 {{"task": "{task}"}}' for task in _TASKS),
    *("turngym/NetHack-v0", 'turngym/Crafter-v0 {"goal": 12}'),
)
"""Games of packages, with the options that they are played with."""
COMMANDS = (
    *("ls", "ls -lR /app", "pwd", "cd /app/*", "cd ..", "cat *", "head *", "tail -n 3 *", "wc *", "find . -type f"),
    *("sort * | uniq -c", "grep -r . . | head", "git status", "git log", "git branch", "git commit -qam x", "make"),
    *("make clean", "make -B", "touch x.txt", "rm -f x.txt", "mkdir -p out", "mkdir sorted", "rmdir inbox", "date"),
    *("tar -xzf *.tar.gz", "tar -czf site.tar.gz *", "gzip -dk log/*.gz", "chmod -R 644 .", "chmod -R 755 share"),
    *("for job in jobs/*; do bash $job; done", "sha256sum * > sums", "echo 0 > results.txt", "ls > removed.txt"),
    *("cp * /tmp", "mv inbox/* .", "sed -i s/a/b/ *", "cut -d, -f1 *.csv > report.csv", "git checkout -q main"),
    "git branch --list -a",
)
"""Commands of random play in a shell, which starts in the folder of the first task."""
_PLACES = (
    ("C", "UTC"),
    ("C.UTF-8", "Asia/Tokyo"),
    ("POSIX", "America/New_York"),
    ("C", "Pacific/Apia"),
    ("C.UTF-8", "UTC"),
)
"""Locale and time zone of each of several equal runs."""
_SANDBOXED = ("turngym/Terminal", "turngym/Repo")
"""Worlds that do their work in other processes, whose seconds are not known here."""
_PARTS = ("expert", "training", "random", "instances", "restored", "repeated")
_TURNS = 10
_FEWEST = 2000
_RARE = 0.05


def _made(name: str, split: str = "test") -> Any:
    env_id, _, options = name.partition(" ")
    return gymnasium.make(env_id, split=split, **json.loads(options or "{}")).unwrapped


def played(name: str, player: str, episodes: int, split: str = "test") -> dict[str, Any]:
    """Return the success of a player, and how fast it went."""
    generator, won, steps = stream("worlds", name), 0, 0
    start, spent = time.monotonic(), time.process_time()
    with closing(_made(name, split)) as env:
        for seed in range(episodes):
            _, info = env.reset(seed=seed)
            while info["success"] < 0:
                try:
                    action = env.expert_action() if player == "expert" else _random(env, info, generator)
                except ExpertLost:
                    break
                info = env.step(action)[4]
                steps += 1
            won += info["success"] == 1
    low, high = wilson(won, episodes)
    speed = {"steps_per_second": steps / (time.monotonic() - start), "load": os.getloadavg()[0]}
    if not name.startswith(_SANDBOXED):
        speed["steps_per_cpu_second"] = steps / (time.process_time() - spent)
    figures = {"episodes": episodes, "success": won / episodes, "low": low, "high": high}
    return {**figures, "turns": steps / episodes, **speed}


def _random(env: Any, info: Any, generator: Any) -> str:
    legal = info["legal_actions"]
    if legal:
        return str(legal[int(generator.integers(len(legal)))])
    if hasattr(env, "work_folder"):
        return _in_shell(env, generator)
    return _in_apps(env, info, generator) if hasattr(env, "names") else _in_database(env, generator)


def _in_shell(env: Any, generator: Any) -> str:
    if env.turn == 0:
        return f"<bash>cd {env.work_folder}</bash>"
    if env.turn > _TURNS:
        return "<submit></submit>"
    return f"<bash>{COMMANDS[int(generator.integers(len(COMMANDS)))]}</bash>"


def _in_apps(env: Any, info: Any, generator: Any) -> str:
    """Return a call of any function with arguments among what has been shown."""

    def one(items: Any) -> Any:
        return items[int(generator.integers(len(items)))]

    accounts = list(env.task.keys)
    if env.turn < len(accounts):
        return f'call accounts_sign_in {{"account": {accounts[env.turn]}}}'
    if env.turn > len(accounts) + _TURNS:
        return "submit"
    tool = one(list(env.names.tools.values()))
    app, key = tool.name.partition("_")[0], next(iter(tool.parameters["properties"]), "")
    shown = {"integer": re.findall(r"\b\d+\b", info["anchor"]), "string": re.findall(r'"(.+?)"', info["anchor"])}
    texts = [*shown["string"], *info["anchor"].split()]
    arguments: dict[str, Any] = {}
    for name, schema in tool.parameters["properties"].items():
        arguments[name] = int(one(shown["integer"])) if schema["type"] == "integer" else one(texts)
    if app != "accounts":
        arguments[key] = one([each for each in env.task.keys.values() if each.startswith(app)])
    return f"call {tool.name} {json.dumps(arguments)}"


def _in_database(env: Any, generator: Any) -> str:
    def one(items: Any) -> Any:
        return items[int(generator.integers(len(items)))]

    schema = env.task.schema
    role = one(list(schema.tables))
    table, column, other = schema.tables[role], *(one(list(schema.columns[role].values())) for _ in range(2))
    query = one(
        (
            f"SELECT {column} FROM {table}",
            f"SELECT {column}, {other} FROM {table}",
            f"SELECT COUNT(*) FROM {table} WHERE {column} > 3",
            f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}",
        )
    )
    change = one((f"DELETE FROM {table} WHERE {column} > 3", f"UPDATE {table} SET {column} = {other}"))
    is_done = "" if env.task.is_update else query
    return str(
        one(
            (
                "<tables></tables>",
                f"<describe>{table}</describe>",
                f"<sql>{query}</sql>",
                f"<sql>{change}</sql>",
                f"<submit>{is_done}</submit>",
            )
        )
    )


def instances(env_id: str, draws: int = _FEWEST) -> dict[str, Any]:
    """Return how many of some draws are different, and how many instances there are at least."""
    with closing(_made(env_id)) as env:
        found = set[str]()
        for seed in range(draws):
            env.reset(seed=seed)
            found.add(env.instance_hash)
    least = int(draws * (draws - 1) / 2 / _most_expected(draws - len(found)))
    return {"draws": draws, "different": len(found), "least_at_95_percent": least}


def digest(name: str, episodes: int) -> str:
    """Return a hash of everything that an expert sees, and, where no programs write at once, a random player."""
    is_random_too = not name.startswith(_SANDBOXED)
    generator, found = stream("worlds", "digest", name), hashlib.sha256()
    with closing(_made(name)) as env:
        for seed in range(episodes):
            seen = env.reset(seed=seed)
            while seen[-1]["success"] < 0:
                found.update(repr((env.snapshot(), seen)).encode())
                try:
                    action = _random(env, seen[-1], generator) if seed % 2 and is_random_too else env.expert_action()
                except ExpertLost:
                    break
                seen = env.step(action)
            found.update(repr(seen).encode())
    return found.hexdigest()


def repeated(name: str, episodes: int) -> dict[str, int]:
    """Return how many runs in processes with other locales, time zones and seeds of hashes are equal to the byte."""
    code, runs = (
        f"from turngym.benchmarks.studies.checks.worlds import digest; print(digest({name!r}, {episodes}))",
        list[str](),
    )
    for number, (locale, zone) in enumerate(_PLACES):
        places = {"LC_ALL": locale, "LANG": locale, "TZ": zone, "PYTHONHASHSEED": str(number)}
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **places}, capture_output=True, check=True
        )
        runs.append(done.stdout.decode())
    return {"episodes": episodes, "runs": len(runs), "equal": runs.count(runs[0])}


def _most_expected(pairs: int) -> float:
    """Return the highest expected number of equal pairs that leaves a chance of 5 % for no more than those found.

    >>> round(_most_expected(0), 3), round(_most_expected(5), 2)
    (2.996, 10.51)
    """
    low, high = 0.0, 10.0 * (pairs + 1)
    for _ in range(60):
        mean = (low + high) / 2
        chance = math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(pairs + 1))
        low, high = (mean, high) if chance > _RARE else (low, mean)
    return high


def restored(env_id: str, episodes: int) -> dict[str, int]:
    """Return at how many turns a restored copy continued equally to its end, and at how many not."""
    equal, unequal = 0, 0
    with closing(_made(env_id)) as env, closing(_made(env_id)) as twin:
        for seed in range(episodes):
            _, info = env.reset(seed=seed)
            snapshots, actions, seen = list[bytes](), list[str](), list[Any]()
            while info["success"] < 0:
                try:
                    actions.append(env.expert_action())
                except ExpertLost:
                    break
                snapshots.append(env.snapshot())
                seen.append(env.step(actions[-1]))
                info = seen[-1][4]
            for turn, snapshot in enumerate(snapshots):
                twin.restore(snapshot)
                is_equal = [twin.step(action) for action in actions[turn:]] == seen[turn:]
                equal, unequal = equal + is_equal, unequal + (not is_equal)
    return {"episodes": episodes, "equal": equal, "unequal": unequal}


def main() -> int:
    """Play, and write figures and table; those of other ids stay. Return 1 if a restored copy continued otherwise."""
    parser = arguments(__doc__, "worlds.json")
    parser.add_argument("ids", nargs="*", help="ids to play, with options; the worlds of work unless given")
    parser.add_argument("--episodes", type=int, default=500, help="episodes of the expert")
    parser.add_argument("--training", type=int, default=500, help="those in the split for training")
    parser.add_argument("--random", type=int, default=500, help="episodes of random play")
    parser.add_argument("--restored", type=int, default=200, help="episodes whose every turn is restored")
    parser.add_argument("--repeated", type=int, default=100, help="episodes of each of five equal runs")
    parser.add_argument("--draws", type=int, default=_FEWEST, help="instances that are compared")
    parser.add_argument("--only", type=lambda text: text.split(","), help=f"some of {', '.join(_PARTS)}, with commas")
    parser.add_argument("--games", action="store_true", help="play NetHack, MiniHack and Crafter")
    parser.add_argument("--table", action="store_true", help="only write the table of what is known")
    given = parser.parse_args()
    if unknown := [each for each in given.only or () if each not in _PARTS]:
        parser.error(f"--only knows {', '.join(_PARTS)}, got {', '.join(unknown)}")
    found: dict[str, Any] = read_json(given.out)["worlds"] if given.out.exists() else {}
    names = () if given.table else given.ids or (GAMES if given.games else IDS)
    for name in names:
        measures: dict[str, Callable[[], dict[str, Any]]] = {
            "expert": partial(played, name, "expert", given.episodes),
            "training": partial(played, name, "expert", given.training, "train"),
            "random": partial(played, name, "random", given.random),
            "instances": partial(instances, name, given.draws),
            "restored": partial(restored, name, given.restored),
            "repeated": partial(repeated, name, given.repeated),
        }
        found[name] = {**found.get(name, {}), **{part: measures[part]() for part in given.only or _PARTS}}
        print(name, found[name], flush=True)
        write_result(given.out, {"worlds": found}, "numpy")
    players = json.loads((RESULTS / "no_skill.json").read_text("utf8"))["environments"]
    text = page(found, players)
    write_atomic(given.out.with_name("worlds_of_work.md"), text)
    print(text)
    return int(any(found[name]["restored"]["unequal"] for name in names if "restored" in found[name]))


if __name__ == "__main__":
    sys.exit(main())
