"""Saved states of Avalon: which ones a game can be in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turngym.envs.avalon.course import NOBODY, Course
from turngym.envs.avalon.redeal import Quest
from turngym.envs.avalon.roles import ASSASSIN, EVIL, GOOD, MERLIN, dealt, fails_needed, team_of
from turngym.envs.avalon.text import PROPOSALS, TO_WIN

_PHASES = ("propose", "discuss", "vote", "quest", "assassinate")


def _require(fits: bool, what: str, got: object) -> None:
    if not fits:
        raise ValueError(f"the {what} {got!r:.200}")


def _are_seats(value: object, among: Sequence[int]) -> bool:
    """Return whether a value is a list of different seats."""
    return (
        isinstance(value, list)
        and all(type(seat) is int and seat in among for seat in value)
        and len({*value}) == len(value)
    )


def _is_team(value: Any, size: int, game: Course) -> bool:
    return _are_seats(value, game.everyone) and len(value) == size and value == sorted(value)


def _quests(game: Course, roles: Sequence[str], saved: Any) -> list[Quest]:
    """Return the quests that are over."""
    _require(isinstance(saved, list) and len(saved) <= len(game.sizes), "quests", saved)
    found: list[Quest] = []
    for number, each in enumerate(saved):
        undecided = max(sum(quest.succeeded is wanted for quest in found) for wanted in (True, False)) < TO_WIN
        _require(undecided and isinstance(each, list) and len(each) == 3, "quests", saved)
        team, fails, succeeded = each
        _require(_is_team(team, game.sizes[number], game), "team", team)
        evil = [seat for seat in team if team_of(roles[seat]) == EVIL]
        _require(_are_seats(fails, evil) and fails == sorted(fails), "quest", each)
        _require(succeeded is (len(fails) < fails_needed(game.num_seats, number)), "quest", each)
        found.append(Quest(tuple(team), tuple(fails), succeeded))
    return found


def checked_quests(game: Course, state: Any) -> list[Quest]:
    """Return the quests of a saved state.

    Args:
        game: The game that is to be in it, with its forfeited seats.
        state: Value of :meth:`turngym.envs.avalon.game.Avalon.state`.

    Raises:
        ValueError: No game can be in this state.
    """
    roles, leader, phase, winner = state["roles"], state["leader"], state["phase"], state["winner"]
    is_cast = isinstance(roles, list) and all(isinstance(role, str) for role in roles)
    _require(is_cast and sorted(roles) == sorted(game.cast), "roles", roles)
    _require(_are_seats([leader], game.everyone), "leader", leader)
    _require(phase in _PHASES and (phase != "discuss" or game.options.talk), "phase", phase)
    _require(winner in ("", GOOD, EVIL, NOBODY), "winner", winner)
    quests = _quests(game, roles, state["quests"])
    won = sum(quest.succeeded for quest in quests)
    is_decided = TO_WIN in (won, len(quests) - won)
    _require(
        (won == TO_WIN) if phase == "assassinate" else (not is_decided or bool(winner and phase == "quest")),
        "phase",
        phase,
    )
    proposal, rejected = state["proposal"], state["rejected"]
    is_last = phase == "vote" and winner == EVIL and game.options.fifth == "counts"
    _require(type(proposal) is int and 0 <= proposal < PROPOSALS + is_last, "proposal", proposal)
    most = proposal + (PROPOSALS - 1) * len(quests)
    _require(type(rejected) is int and proposal <= rejected <= most, "rejected proposals", rejected)
    party, queue, named = state["party"], state["queue"], state["named"]
    if phase == "propose":
        _require(party == [], "party", party)
    elif is_decided:
        _require(_is_team(party, len(quests[-1].team), game) and party == list(quests[-1].team), "party", party)
    else:
        _require(_is_team(party, game.sizes[len(quests)], game), "party", party)
    is_spoken = phase == "vote" and game.options.talk
    _require(_are_seats(queue, game.everyone) and not (is_spoken and queue), "queue", queue)
    if phase == "discuss":
        turns = [(leader + step) % game.num_seats for step in game.everyone]
        _require(bool(queue) and queue == turns[-len(queue) :], "queue", queue)
    good = [seat for seat in game.everyone if team_of(roles[seat]) == GOOD]
    is_named = phase == "assassinate" and bool(winner) and _are_seats([named], good)
    _require(is_named or (type(named) is int and named == -1), "named seat", named)
    if winner:
        _require(winner in _winners(game, roles, quests, proposal, named), "winner", winner)
    _require_lines(game, roles, state["told"])
    return quests


def _winners(game: Course, roles: Sequence[str], quests: Sequence[Quest], proposal: int, named: int) -> set[str]:
    """Return the sides that may have won."""
    if named >= 0:
        return {EVIL if roles[named] == MERLIN else GOOD}
    won = sum(quest.succeeded for quest in quests)
    if proposal == PROPOSALS or len(quests) - won == TO_WIN:
        return {EVIL}
    left = {team_of(roles[seat]) for seat in game.everyone if seat not in game.forfeited}
    found = {GOOD} if won == TO_WIN and roles.index(ASSASSIN) in game.forfeited else set()
    return found | ({NOBODY} if not left else left if len(left) == 1 else set())


def _require_lines(game: Course, roles: Sequence[str], told: Any) -> None:
    """Raise unless lines have readers and text, and begin with what the seats were dealt."""
    fits = isinstance(told, list) and all(
        isinstance(line, list) and len(line) == 2 and _are_seats(line[0], game.everyone) and isinstance(line[1], str)
        for line in told
    )
    _require(fits and told[: game.num_seats] == [[[s], dealt(s, roles)] for s in game.everyone], "lines", told)
