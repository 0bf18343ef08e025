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


def werewolf_model(found: Found) -> Iterator[SelfPlay]:
    """Yield the figures of Werewolf with a language model."""
    for opponent, result in found["against"].items():
        both, measured = result["both"], f"games won against {opponent}, both sides, %"
        before = f"{100 * both['before']['mean']:.1f}"
        yield SelfPlay("Werewolf", "embedded model", measured, len(both["seeds"]), before, _percent(both["after"]))


def kuhn(found: Found) -> Iterator[SelfPlay]:
    """Yield the figures of Kuhn poker with and without a magnet."""
    for learner, arms in found["runs"].items():
        for arm, result in arms.items():
            last = result["last"]
            after = f"{last['mean']:.3f} [{max(last['low'], 0):.3f}, {last['high']:.3f}]"
            measured = "exploitability of the last policy"
            yield SelfPlay("Kuhn poker", f"{learner}, {arm}", measured, len(result["seeds"]), "", after)


def _boards(game: str, learner: str, seeds: int, before: Found, after: Found) -> Iterator[SelfPlay]:
    """Yield the games drawn against the perfect player from either seat, given those before and after by seat."""
    for seat, name in (("0", "first"), ("1", "second")):
        measured = f"drawn against the perfect player, {name} seat, %"
        yield SelfPlay(game, learner, measured, seeds, f"{100 * before[seat]:.1f}", _percent(after[seat]))


def tic_tac_toe(found: Found) -> Iterator[SelfPlay]:
    """Yield the figures of Tic-Tac-Toe with a table."""
    first = next(iter(found["runs"].values()))[0]["seats"]
    before = {seat: figures["drawn_against_perfect"] for seat, figures in first.items()}
    after = {seat: figures["drawn_against_perfect"] for seat, figures in found["final"].items()}
    yield from _boards("Tic-Tac-Toe", "table", len(found["runs"]), before, after)


def boards(found: Found) -> Iterator[SelfPlay]:
    """Yield the figures of board games with a small policy: exact in Tic-Tac-Toe, of games played in Connect Four."""
    for game, figures in found["games"].items():
        if "perfect" in figures:
            of_seat = figures["perfect"]
        else:
            of_seat = {
                seat: {stage: figures[stage][seat]["drawn_against_perfect"] for stage in ("before", "after")}
                for seat in ("0", "1")
            }
            of_seat = {seat: {**stages, "seeds": stages["after"]["seeds"]} for seat, stages in of_seat.items()}
        before = {seat: stages["before"]["mean"] for seat, stages in of_seat.items()}
        after = {seat: stages["after"] for seat, stages in of_seat.items()}
        yield from _boards(game.title(), "small policy", len(of_seat["0"]["seeds"]), before, after)


STUDIES: Mapping[str, Callable[[Found], Iterator[SelfPlay]]] = {
    "werewolf_self_play": werewolf,
    "werewolf_model": werewolf_model,
    "kuhn_magnet": kuhn,
    "tic_tac_toe_self_play": tic_tac_toe,
    "board_population": boards,
}
"""Result file -> its figures."""
