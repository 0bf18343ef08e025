"""What self-play studies found, as rows of the page of what was learnt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

Found: TypeAlias = Mapping[str, Any]
"""A result file."""

COLUMNS = ("game", "what learns", "measured", "seeds", "before", "after [95 %]", "command")


class SelfPlay(NamedTuple):
    """One figure of a study.

    Args:
        game: What is played.
        learner: What learns, and how.
        measured: What the figure is.
        seeds: Number of runs.
        before: Its value before training; empty where it was not measured.
        after: Its value after training with the interval over seeds.
    """

    game: str
    learner: str
    measured: str
    seeds: int
    before: str
    after: str


def _percent(found: Mapping[str, float]) -> str:
    """Return a share in percent with its interval, which cannot leave 0 to 100.

    >>> _percent({"mean": 0.922, "low": 0.763, "high": 1.08})
    '92.2 [76.3, 100.0]'
    """
    low, high = max(found["low"], 0.0), min(found["high"], 1.0)
    return f"{100 * found['mean']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def werewolf(found: Found) -> Iterator[SelfPlay]:
    """Yield the figures of Werewolf in a population."""
    for arm, result in found["arms"].items():
        both = result["held_out"]["both"]
        measured = "games won against opponents never met, both sides, %"
        before = f"{100 * both['before']['mean']:.1f}"
        yield SelfPlay(
            "Werewolf", f"small policy, {arm}", measured, len(result["runs"]), before, _percent(both["after"])
        )


def kuhn(found: Found) -> Iterator[SelfPlay]:
    """Yield the figures of Kuhn poker with and without a magnet."""
    for learner, arms in found["runs"].items():
        for arm, result in arms.items():
            last = result["last"]
            after = f"{last['mean']:.3f} [{max(last['low'], 0):.3f}, {last['high']:.3f}]"
            measured = "exploitability of the last policy"
            yield SelfPlay("Kuhn poker", f"{learner}, {arm}", measured, len(result["seeds"]), "", after)


def _boards(game: str, learner: str, seeds: int, before: Found, after: Found) -> Iterator[SelfPlay]:
    for seat, name in (("0", "first"), ("1", "second")):
        start, end = before[seat]["drawn_against_perfect"], after[seat]["drawn_against_perfect"]
        start = start["mean"] if isinstance(start, Mapping) else start
        measured = f"drawn against the perfect player, {name} seat, %"
        yield SelfPlay(game, learner, measured, seeds, f"{100 * start:.1f}", _percent(end))


def tic_tac_toe(found: Found) -> Iterator[SelfPlay]:
    """Yield the figures of Tic-Tac-Toe with a table."""
    first = next(iter(found["runs"].values()))[0]["seats"]
    yield from _boards("Tic-Tac-Toe", "table", len(found["runs"]), first, found["final"])


def boards(found: Found) -> Iterator[SelfPlay]:
    """Yield the figures of board games with a small policy."""
    for game, stages in found["games"].items():
        seeds = len(stages["after"]["0"]["drawn_against_perfect"]["seeds"])
        yield from _boards(game.title(), "small policy", seeds, stages["before"], stages["after"])


STUDIES: Mapping[str, Callable[[Found], Iterator[SelfPlay]]] = {
    "werewolf_self_play": werewolf,
    "kuhn_magnet": kuhn,
    "tic_tac_toe_self_play": tic_tac_toe,
    "board_population": boards,
}
"""Result file -> its figures."""
