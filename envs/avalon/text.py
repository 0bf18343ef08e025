"""Texts of Avalon: the rules for players, and how answers are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

from turngym.envs.avalon.roles import MORGANA, ROLES, TEAM_SIZES, fails_needed, team_of
from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.speech import safe_speech
from turngym.envs.tablegames.reading import first_object, simplified

SPEECH_LIMIT = 300
"""Characters of a speech that others read."""
PROPOSALS = 5
"""Proposals of a quest."""
QUESTS, TO_WIN = 5, 3
"""Quests of a game, and how many of them decide it."""
SAY, PROPOSE, NAME = "say", "propose ", "name "

_BRACKETED = re.compile(r"\[([^\[\]]{1,200})\]")
_SEAT = r"(?:0|[1-9][0-9]{0,2})(?![0-9])"
_TEAM = re.compile(
    rf"""(?>player[\s-]?{_SEAT}|i|propose|the|team|of|player|and|(?<![0-9-]){_SEAT}|[\s,;:&+\[\]'"]|-(?![0-9]))++"""
)
"""An atomic group: ``player1`` matches in two ways, so that backtracking would take exponential time."""
_WORDS = {
    "vote": {"approve": "approve", "reject": "reject", "yes": "approve", "no": "reject"},
    "play": {"success": "success", "fail": "fail", "succeed": "success"},
}
VOTES, CARDS = (
    {f"{way}{word}": action for word, action in words.items() for way in ("", "i ", f"{verb} ", f"i {verb} ")}
    for verb, words in _WORDS.items()
)
"""Simplified text -> vote, and -> card."""
_SIGHT = {
    "merlin": "sees evil seats",
    "percival": "sees Merlin",
    "servant": "sees nobody",
    "assassin": "sees evil seats and names Merlin in the end",
    "morgana": "sees evil seats, and Percival cannot tell her from Merlin",
    "mordred": "sees evil seats, and Merlin does not see him",
    "oberon": "sees nobody, and evil seats do not see him",
    "minion": "sees evil seats",
}


def proposals(seats: Sequence[str]) -> Mapping[int, Mapping[str, tuple[int, ...]]]:
    """Return size -> proposal -> team.

    >>> list(proposals(["player_0", "player_1", "player_2"])[2])[0]
    'propose player_0, player_1'
    """
    return {
        size: {
            f"{PROPOSE}{', '.join([seats[seat] for seat in team])}": team
            for team in combinations(range(len(seats)), size)
        }
        for size in range(2, 6)
    }


def targets(seats: Sequence[str]) -> Mapping[str, str]:
    """Return simplified text -> the name that it gives."""
    return {
        form: f"{NAME}{name}"
        for seat, name in enumerate(seats)
        for short in (f"player {seat}", str(seat))
        for form in (short, f"name {short}", f"i name {short}", f"merlin is {short}", f"{NAME}{name}")
    }


def read_speech(text: str) -> str:
    """Return ``"say ..."`` with what others read of a speech; ``"say"`` for silence.

    >>> read_speech('{"say": "Trust me."}'), read_speech("say [no]"), read_speech("say")
    ('say Trust me.', 'say (no)', 'say')
    """
    found = first_object(text) if text.lstrip().startswith("{") else None
    speech = found.get("say") if found else None
    said = safe_speech(speech if isinstance(speech, str) else text.removeprefix(f"{SAY} "), SPEECH_LIMIT)
    return f"{SAY} {said}" if said and text != SAY else SAY


def read_team(text: str, size: int, seats: Sequence[str]) -> str:
    """Return the proposal that an answer means.

    Raises:
        InvalidAction: It names no team or several, or no team of this size.

    >>> read_team("I trust player_1: [player_2, player_0]", 2, ["player_0", "player_1", "player_2"])
    'propose player_0, player_2'
    """
    found = first_object(text) if "{" in text else None
    listed = (found or {}).get("team")
    named = [" ".join(map(str, listed))] if isinstance(listed, list) else [text]
    if not _TEAM.fullmatch(simplified(named[0])):
        named = _BRACKETED.findall(text)
    teams = {
        tuple(sorted([int(number) for number in re.findall("[0-9]+", each)]))
        for each in map(simplified, named)
        if _TEAM.fullmatch(each)
    } - {()}
    if len(teams) != 1:
        problem = "names more than one team" if teams else "names no team"
        raise InvalidAction(f"Your answer {problem}: answer with one, in one pair of brackets.", "unreadable")
    (team,) = teams
    if team[-1] >= len(seats):
        raise InvalidAction(f"The seats are {', '.join(seats)}.")
    if not len({*team}) == len(team) == size:
        raise InvalidAction(f"The team has {size} different seats.")
    return f"{PROPOSE}{', '.join([seats[seat] for seat in team])}"


def instructions(cast: Sequence[str], talk: bool, fifth_counts: bool) -> str:
    """Return the rules and the answer format, the same for all seats.

    Args:
        cast: The roles of the table.
        talk: Whether the seats discuss.
        fifth_counts: Whether evil wins when the fifth proposal of a quest is rejected.
    """
    seats = len(cast)
    told = {
        side: ", ".join(
            [
                f"{_counted(role, cast.count(role))} ({_sight(role, cast)})"
                for role in ROLES
                if role in cast and team_of(role) == side
            ]
        )
        for side in ("good", "evil")
    }
    sizes = ", ".join(map(str, TEAM_SIZES[seats]))
    speaks = "all say something in turn, then " if talk else ""
    fifth = "if the fifth team of a quest is rejected, evil wins" if fifth_counts else "the fifth passes without a vote"
    twice = ", two in quest 4" if fails_needed(seats, 3) == 2 else ""
    speech = f'Speak in plain words, or as {{"say": "..."}}; others read at most {SPEECH_LIMIT} characters.'
    return (
        f"{seats} players have secret roles. Good: {told['good']}. Evil: {told['evil']}.\n"
        f"There are up to {QUESTS} quests for teams of {sizes}. The leader proposes a team, {speaks}all vote at once. "
        f"More than half must approve, else the next player leads; {fifth}. The players of an approved team play "
        "a card at once: good ones success, evil ones success or fail. All are told how many fails there are. One fail "
        f"fails a quest{twice}. Evil wins with {TO_WIN} failed quests. After {TO_WIN} successes the assassin "
        "names a good player: if it is Merlin evil wins, else good.\n"
        "Propose a team in brackets, such as [player_0, player_1]. Vote [approve] or [reject]. Play [success] or "
        f"[fail]. Name Merlin as [player_1].{f' {speech}' if talk else ''}"
    )


def _counted(role: str, count: int) -> str:
    return f"{count} {role}s" if count > 1 else role


def _sight(role: str, cast: Sequence[str]) -> str:
    """Return what a role sees, in words."""
    hidden = {"merlin": "mordred"}.get(role, "oberon")
    words = _SIGHT[role]
    if role == "percival" and MORGANA in cast:
        words += " and Morgana, not which is which"
    elif words.startswith("sees evil seats") and hidden in cast and role != hidden:
        words = words.replace("sees evil seats", f"sees evil seats but {hidden.capitalize()}")
    return words
