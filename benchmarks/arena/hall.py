"""Games of an arena, played in a process of their own that is watched: a player that hangs or crashes costs one game.

The process says, before code of a player or of rules runs, whose it is. If it stays silent for too long, or dies, it is
ended and started again, and its unfinished games are played again from their seeds. In them the seat that was silent
forfeits; rules that were silent get a second chance, and their game then counts as broken.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import IO, Any

from turngym.agents.core import Agent
from turngym.agents.episodes.seat_player import PlayerFault
from turngym.benchmarks.arena.plan import Arena
from turngym.benchmarks.tournaments.pairings import Match
from turngym.benchmarks.tournaments.run import broken, play_matches, record_of
from turngym.benchmarks.tournaments.seats import RULES, Roster
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player
from turngym.envs.vector.slots.boundary import close_quietly
from turngym.errors import ConfigError, TurngymError
from turngym.system.limited import end_process

_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from turngym.benchmarks.arena.hall import serve; serve()"
)
_CHUNK, _TRIES = 1 << 16, 2
Record = dict[str, Any]
Out = Mapping[str, Mapping[int, str]]
"""Match key -> seat -> why its player does not play there."""


class Silence(TurngymError):
    """The process of the tables died or said nothing for too long."""


class WatchedTables:
    """Plays the games of an arena in a process that is ended when a player or the rules hang.

    Args:
        arena: The arena.
        tables: Number of parallel games.
        seconds: Time for an answer, or for the rules between two answers.

    Raises:
        ConfigError: A player cannot be made.
    """

    def __init__(self, arena: Arena, tables: int, seconds: float) -> None:
        self._question = {"arena": arena.content(), "tables": tables}
        self._arena, self._seconds = arena, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = bytearray()
        self._asked: list[tuple[str, int]] = []
        self._start()

    def _start(self) -> None:
        path = [os.getcwd() if entry == "" else entry for entry in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, json.dumps(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": "0"},  # games repeat
            start_new_session=True,
        )
        self._at_exit = weakref.finalize(self, end_process, self._process, os.getpid())
        self._pending.clear()
        self._tell(self._question)
        try:
            for _ in self._heard(None):  # loading a model may take long
                pass
        except Silence as silence:
            self.close()
            raise ConfigError(f"the players cannot be made: {silence}.") from silence

    def play(self, game: str, matches: Sequence[Match]) -> Iterator[Record]:
        """Yield the record of each match of a game as it ends."""
        left = {match.key: match for match in matches}
        out: dict[str, dict[int, str]] = {}
        failures: Counter[str] = Counter()
        while left:
            if self._process is None:
                self._start()
            self._tell({"game": game, "out": out, "matches": [asdict(match) for match in left.values()]})
            try:
                for record in self._heard(self._seconds):
                    if left.pop(record["match"], None) is not None:
                        yield record
            except Silence as silence:
                self.close()
                for key, seat in self._asked:
                    failures[key] += seat == RULES
                    if seat != RULES:
                        out.setdefault(key, {})[seat] = str(silence)
                    elif failures[key] == _TRIES and key in left:
                        yield self._given_up(game, left.pop(key), str(silence))
                if not self._asked:
                    raise

    def _given_up(self, game: str, match: Match, why: str) -> Record:
        times = {"started": datetime.now(UTC).isoformat(timespec="seconds"), "restarts": _TRIES - 1}
        content = {**times, **broken(match, {}, f"the rules: {why}")}
        return record_of(self._arena.plan_of(game), match, self._arena.games[game].ruleset_hash, content)

    def _tell(self, question: Mapping[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._asked = []
        with contextlib.suppress(BrokenPipeError):  # its death is heard
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()

    def _heard(self, seconds: float | None) -> Iterator[Record]:
        """Yield the records of the process until all requested matches are over."""
        while True:
            told = json.loads(self._line(seconds))
            if "asked" in told:
                self._asked = [(key, seat) for key, seat in told["asked"]]
            elif "record" in told:
                yield told["record"]
            elif "done" in told:
                return
            else:
                self.close()
                raise ConfigError(told["refused"])

    def _line(self, seconds: float | None) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        end = None if seconds is None else time.monotonic() + seconds
        while (stop := self._pending.find(b"\n")) < 0:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise Silence(f"no answer in {seconds:g} seconds")
            if select.select([self._process.stdout], [], [], left)[0]:
                chunk = os.read(self._process.stdout.fileno(), _CHUNK)
                self._pending += chunk
                if not chunk:
                    raise Silence(_death(self._process))
        line = bytes(self._pending[:stop])
        del self._pending[: stop + 1]
        return line

    def close(self) -> None:
        """End the process; a later game starts another one."""
        if self._process is not None:
            self._process = None
            self._at_exit()


def _death(process: subprocess.Popen[bytes]) -> str:
    try:
        return f"its process died (exit status {process.wait(10)})"
    except subprocess.TimeoutExpired:
        return "its process closed its output"


class Tables:
    """Plays the games of an arena in this process.

    Args:
        arena: The arena.
        tables: Number of parallel games.
        told: Receives what is about to be asked, as lines of JSON; None for nobody.

    Raises:
        UnknownName: There is no such player.
        ConfigError: A player cannot be made.
    """

    def __init__(self, arena: Arena, tables: int, told: IO[bytes] | None = None) -> None:
        self._arena, self._tables = arena, tables
        self._rosters: dict[str, _WatchedRoster] = {}
        self._rules: list[Game] = []
        agents: dict[str, Agent] = {}
        stage = arena.stages[-1]
        for name in stage.games:
            plan = arena.plan_of(name)
            active = {player: what for player, what in plan.players.items() if player in stage.players}
            self._rules.append(plan.make_game())
            self._rosters[name] = _WatchedRoster(active, self._rules[-1], plan.settings_of, agents)
            self._rosters[name].told = told

    def play(self, game: str, matches: Sequence[Match], out: Out | None = None) -> Iterator[Record]:
        """Yield the record of each match of a game as it ends."""
        roster = self._rosters[game]
        roster.out = out or {}
        ruleset = self._arena.games[game].ruleset_hash
        yield from play_matches(self._arena.plan_of(game), roster, matches, self._tables, ruleset)

    def close(self) -> None:
        """Close the games from which players were made."""
        close_quietly(*self._rules)


class _WatchedRoster(Roster):
    """Tells who is about to be asked, and has no player for seats that were silent."""

    told: IO[bytes] | None = None
    out: Out = {}  # noqa: RUF012  # replaced, never changed

    def seated(self, match: Match, seat: int) -> Player:
        if why := self.out.get(match.key, {}).get(seat):
            raise PlayerFault(why)
        return super().seated(match, seat)

    def asking(self, seats: Sequence[tuple[Match, int]]) -> None:
        if self.told is not None:
            _say(self.told, {"asked": [(match.key, seat) for match, seat in seats]})


def _say(told: IO[bytes], line: Mapping[str, Any]) -> None:
    told.write(json.dumps(line).encode() + b"\n")
    told.flush()


def serve() -> None:
    """Play what the standard input asks for until it ends: the program of the process."""
    told, questions = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # what a player prints is not a record
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    asked: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(questions, asked), daemon=True).start()
    try:
        first = json.loads(asked.get())
        tables = Tables(Arena.from_content(first["arena"]), first["tables"], told)
        _say(told, {"done": True})
        while True:
            question = json.loads(asked.get())
            out = {key: {int(seat): why for seat, why in seats.items()} for key, seats in question["out"].items()}
            matches = [Match(one["block"], one["seed"], tuple(one["players"])) for one in question["matches"]]
            for record in tables.play(question["game"], matches, out):
                _say(told, {"record": record})
            _say(told, {"done": True})
    except TurngymError as error:
        _say(told, {"refused": str(error)})


def _listen(questions: IO[bytes], asked: SimpleQueue[bytes]) -> None:
    """Pass questions on; end the process with the one that asks, whatever a player is doing."""
    while line := questions.readline():
        asked.put(line)
    os._exit(1)
