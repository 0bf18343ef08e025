"""Tournaments: a schedule of games between players, played many tables at once, stored game by game.

The result depends on the plan alone, not on how many tables are played at once or on how often the tournament was
killed. No game is dropped: a player that raises twice in a row forfeits, a game whose rules raise is played once more
and then counts as a draw, and both are counted.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from turngym.agents.core import Decision, Request
from turngym.agents.episodes.seat_player import PlayerFault, SeatPlayer, act_together
from turngym.arithmetic import as_float, is_finite
from turngym.benchmarks.tournaments.folder import TournamentFolder
from turngym.benchmarks.tournaments.pairings import Match, teams_of
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.results import ANCHOR_ELO, PRIOR, comparisons, results, usual_anchor
from turngym.benchmarks.tournaments.seats import RULES, LiveGame, Roster
from turngym.envs.multiagent.table import Table
from turngym.envs.vector.slots.boundary import close_quietly, closing_quietly
from turngym.errors import ConfigError, PromptTooLong, ServerDown, UnknownName, nearest
from turngym.loading import raised_text
from turngym.types import StrPath

_TRIES = 2


def play_tournament(
    plan: TournamentPlan,
    *,
    folder: StrPath | None = None,
    resume: bool = False,
    tables: int = 64,
    anchor: str = "",
    anchor_elo: float = ANCHOR_ELO,
    prior: float = PRIOR,
    on_game: Callable[[int, int], None] | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Play a tournament, or what is left of it, and rate its players.

    Args:
        plan: Game to play.
        folder: Folder for games and results, one line per finished game; nothing is stored by default.
        resume: Continue with the tournament in that folder. It may have fewer blocks than the plan, or not have
            started.
        tables: Number of parallel games.
        anchor: Player whose strength is fixed: ``random`` if it meets others, unless given.
        anchor_elo: Its Elo.
        prior: Weight of the prior of the ratings; see :func:`turngym.benchmarks.statistics.bradley_terry.strengths`.
        on_game: Called after every game with the number of games that are over, and that of all.

    Returns:
        The content of ``results.json``, and a record of every game in the order of the schedule.

    Raises:
        RunFolderExists: The folder is not empty, and ``resume`` was not given.
        ConfigError: A setting is wrong, or the folder holds another tournament.
        UnknownName: There is no such game, player, pairing or anchor.
    """
    if tables < 1:
        raise ConfigError(f"a tournament needs one table at least, got {tables}.")
    plan = plan.settled()
    if anchor and anchor not in plan.players:
        raise UnknownName(f"no player named {anchor!r} to anchor the ratings at. {nearest(anchor, plan.players)}")
    if not is_finite(anchor_elo):
        raise ConfigError(f"the Elo of the anchor must be a finite number, got {as_float(anchor_elo)}.")
    content = plan.content()
    with closing_quietly(plan.make_game()) as rules:
        roster = Roster(plan.players, rules, plan.settings_of)
        matches = plan.matches()
        store = TournamentFolder(None if folder is None else Path(folder), content, resume)
        try:
            done = store.records
            left = [match for match in matches if match.key not in done]
            for record in play_matches(plan, roster, left, tables, content["ruleset_hash"]):
                store.add(record)
                if on_game is not None:
                    on_game(len(done), len(matches))
            records = [done[match.key] for match in matches]
            compared = [one for record in records for one in comparisons(record, plan.sides == "alike")]
            anchor = anchor or usual_anchor(compared)
            found = results(content, records, anchor=anchor, anchor_elo=anchor_elo, prior=prior)
            store.finish(records, found)
        finally:
            store.close()
    return found, records


def play_matches(
    plan: TournamentPlan, roster: Roster, matches: Iterable[Match], tables: int, ruleset: str = ""
) -> Iterator[dict[str, Any]]:
    """Play games side by side and yield the record of each as it ends.

    Every agent is asked once a cycle for all its seats at all tables. A call for several seats that raises without one
    of them failing alone is of no seat: such calls depend on the number of tables, so no record holds them, and a
    warning at the end counts them.

    Args:
        plan: Game to play.
        roster: Makes the players.
        matches: The games.
        tables: Number of parallel games.
        ruleset: Hash of the rules, for the records.
    """
    with closing(_Hall(plan, roster, iter(matches), tables, ruleset)) as hall:
        while True:
            over = hall.advance()
            yield from over
            if not over and not hall.is_busy:
                break
    for message, count in hall.problems.items():
        warnings.warn(
            f"calls for several seats at once that raised and succeeded when repeated or divided: {count}; {message}",
            RuntimeWarning,
            stacklevel=2,
        )


class _Hall:
    """The tables of a tournament.

    A game whose rules raise starts again once at a fresh table; if they raise again, it is over.
    """

    def __init__(
        self, plan: TournamentPlan, roster: Roster, matches: Iterator[Match], tables: int, ruleset: str
    ) -> None:
        self._plan, self._roster, self._matches, self._ruleset = plan, roster, matches, ruleset
        self._free = tables
        self._spare: list[Table] = []
        self._live: list[LiveGame] = []
        self._tries: dict[str, int] = {}
        self._started: dict[str, str] = {}
        self._over: list[dict[str, Any]] = []
        self.problems: Counter[str] = Counter()
        """Message of an agent -> how many of its calls for several seats raised, without a seat to blame."""

    @property
    def is_busy(self) -> bool:
        """True if games are being played."""
        return bool(self._live)

    def close(self) -> None:
        """Release what the games at all tables hold."""
        close_quietly(*self._spare, *[game.table for game in self._live])

    def advance(self) -> list[dict[str, Any]]:
        """Start games where tables are free, let every seat that is asked answer, and return what has ended."""
        self._over = []
        while self._free and (match := next(self._matches, None)):
            self._free -= 1
            self._begin(match)
        asked: list[tuple[LiveGame, int, SeatPlayer, Request]] = []
        for game in list(self._live):
            with_agents = self._guarded(game, _asked_agents, game)
            if with_agents:
                asked += [(game, *entry) for entry in with_agents]
            elif with_agents is not None:
                self._finish(game)
        self._ask(asked)
        return self._over

    def _begin(self, match: Match) -> None:
        self._started.setdefault(match.key, datetime.now(UTC).isoformat(timespec="seconds"))
        self._roster.asking([(match, RULES)])
        table = self._spare.pop() if self._spare else Table(self._plan.make_game(), retries=self._plan.retries)
        try:
            self._live.append(LiveGame(match, table, self._roster))
        except Exception as error:  # game code: a tournament continues without the game
            self._break(match, error, table)

    def _guarded(self, game: LiveGame, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a call gives; None if the rules raised, after which the game is no longer live."""
        self._roster.asking([(game.match, RULES)])
        try:
            return call(*arguments)
        except Exception as error:  # game code: a tournament continues without the game
            self._live.remove(game)
            game.end()
            self._break(game.match, error, game.table)
            return None

    def _break(self, match: Match, error: Exception, table: Table) -> None:
        """Start a game again, or give it up. Its table is not used again."""
        close_quietly(table)
        tries = self._tries.get(match.key, 1)
        if tries < _TRIES:
            self._tries[match.key] = tries + 1
            self._begin(match)
            return
        self._record(match, broken(match, _teams(match, self._plan), raised_text(error)))

    def _finish(self, game: LiveGame) -> None:
        game.end()
        content = self._guarded(game, game.content)
        if content is None:
            return
        self._live.remove(game)
        self._spare.append(game.table)
        self._record(game.match, content)

    def _record(self, match: Match, content: Mapping[str, Any]) -> None:
        self._free += 1
        times = {"started": self._started.pop(match.key), "restarts": self._tries.pop(match.key, 1) - 1}
        self._over.append(record_of(self._plan, match, self._ruleset, {**times, **content}))

    def _ask(self, asked: Sequence[tuple[LiveGame, int, SeatPlayer, Request]]) -> None:
        """Ask each agent once for all its seats, and hand out the answers."""
        by_agent: dict[int, list[tuple[LiveGame, int, SeatPlayer, Request]]] = {}
        for entry in asked:
            by_agent.setdefault(id(entry[2].agent), []).append(entry)
        for entries in by_agent.values():
            self._roster.asking([(game.match, seat) for game, seat, _, _ in entries])
            began = time.perf_counter()
            answers, problem = _answers([(player, request) for _, _, player, request in entries])
            seconds = time.perf_counter() - began
            if problem is not None:
                self.problems[f"{entries[0][0].match.players[entries[0][1]]}: {raised_text(problem)}"] += 1
            for (game, seat, _, request), (answer, raised) in zip(entries, answers, strict=True):
                game.retried(seat, raised)
                if game not in self._live:  # its rules raised at an earlier answer of this batch
                    continue
                if isinstance(answer, Exception):
                    self._guarded(game, game.give_up, seat, answer)
                else:
                    self._guarded(game, game.answer, seat, request, answer, seconds)


def _asked_agents(game: LiveGame) -> list[tuple[int, SeatPlayer, Request]]:
    return list(game.asked_agents())


class _Answer(NamedTuple):
    """A decision, or why there is none, and what the agent raised first when asked for this one alone."""

    given: Decision | Exception
    raised: Exception | None = None


def _answers(asked: Sequence[tuple[SeatPlayer, Request]]) -> tuple[list[_Answer], Exception | None]:
    """Return an agent's decisions; where it raises twice, each request is tried alone and may fail alone.

    The second value is what it raised for several requests, if it then raised for none of them alone.
    """
    problem: Exception | None = None
    is_single = len(asked) == 1
    for _ in range(_TRIES):
        try:
            found = [_answer(each) for each in act_together(asked)]
        except ServerDown:
            raise
        except Exception as error:  # user code: a tournament continues without the agent
            problem = error
        else:
            return [_Answer(each, problem if is_single else None) for each in found], None if is_single else problem
    assert problem is not None
    if is_single:
        return [_Answer(problem)], None
    answers = [_answers([entry])[0][0] for entry in asked]
    is_of_a_seat = any(isinstance(answer.given, Exception) or answer.raised for answer in answers)
    return answers, None if is_of_a_seat else problem


def _answer(decision: Decision) -> Decision | Exception:
    if decision.too_long:
        return PromptTooLong(decision.too_long)
    return PlayerFault(decision.fault) if decision.fault else decision


def record_of(plan: TournamentPlan, match: Match, ruleset: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a game that is over.

    Args:
        plan: Its tournament.
        match: Its seats.
        ruleset: Hash of the rules.
        content: How it went.
    """
    return {
        "match": match.key,
        "env": plan.game,
        "env_version": plan.game.rpartition("-v")[2] if "-v" in plan.game else "",
        "ruleset_hash": ruleset,
        "seed": match.seed,
        "block_id": match.block,
        "seat_map": {f"player_{seat}": name for seat, name in enumerate(match.players)},
        **content,
    }


def _teams(match: Match, plan: TournamentPlan) -> dict[str, str]:
    """Return the team of each seat of a game whose rules raised; nothing if they raise here too."""
    try:
        with closing_quietly(plan.make_game()) as game:
            return {f"player_{seat}": team for seat, team in enumerate(teams_of(game, match.seed))}
    except Exception:  # game code, whose fault is recorded already
        return {}


def broken(match: Match, teams: Mapping[str, str], fault: str) -> dict[str, Any]:
    """Return the content of a game whose rules failed, in which nobody has won.

    Args:
        match: Its seats.
        teams: Team of each seat; empty if unknown.
        fault: Reason.
    """
    names = [f"player_{seat}" for seat in range(len(match.players))]
    zeros = dict.fromkeys(names, 0.0)
    counts = ("calls", "answers", "parse_failures", "illegal", "forfeits", "faults", "tokens_in", "tokens_out")
    return {
        "roles": dict.fromkeys(names, ""),
        "teams": dict(teams),
        "returns": zeros,
        "scores": zeros,
        "winners": [],
        "winner": None,
        "length": 0,
        "metrics": {},
        "seats": {name: {**dict.fromkeys(counts, 0), "latency": 0.0} for name in names},
        "actions": [],
        "transcript_sha256": "",
        "status": "env_error",
        "fault": fault[:500],
    }
