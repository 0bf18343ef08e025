"""Clues of Codenames, and the rules in words."""

from __future__ import annotations

import re
from typing import NamedTuple

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.parsing.thinking import THINKING
from turngym.envs.tablegames.reading import first_object

MOST = 9
"""Largest number of a clue."""
_READ, _LONGEST = 10_000, 200
_BRACKETED = re.compile(r"\[\s{0,5}(?:clue[\s:]{1,5})?([a-z]{1,30})[\s,:]{1,5}([0-9])\s{0,5}\]")
_ALONE = re.compile(r"(?:clue[\s:]{1,5})?([a-z]{1,30})[\s,:]{1,5}([0-9])")


class Clue(NamedTuple):
    """A clue.

    Args:
        word: Association of the intended words.
        number: How many are meant; 0 for any number.
    """

    word: str
    number: int


def instructions(team: str, role: str, words: int, own: int, assassins: int) -> str:
    """Return the rules for a role.

    Args:
        team: Team of the seat.
        role: Its role.
        words: Words on the board.
        own: Words of the team that begins.
        assassins: Words that lose the game.
    """
    assassin = {0: "", 1: "1 is the assassin, "}.get(assassins, f"{assassins} are assassins, ")
    answer = (
        "Answer with a word and a number in brackets, such as [colour 2]."
        if role == "spymaster"
        else "Answer with a word of the board in brackets, or with [pass]."
    )
    return (
        f"Codenames for two teams, red and blue, of a spymaster and a guesser each. You are the {team} {role}. Of "
        f"{words} words on the board {own} are red, {own - 1} are blue, {assassin}the others are neutral; only the "
        "spymasters know which. Red begins. In a turn the spymaster gives a clue: one word, which the team's words "
        "that are meant have to do with, and how many are meant. Then the guesser names words one after the other, "
        "and each is revealed: at least one, and at most the number of the clue and one more, or any number after a "
        "clue with 0. A word that is not the team's ends the turn; an assassin loses the game. The first team whose "
        "words are all revealed wins, no matter who named them.\nA clue is one word of the letters a to z and a number "
        f"from 0 to {MOST}. It must not equal, contain or be contained in a word on the board that is not revealed. "
        f"{answer}"
    )


def clue_of(text: str) -> Clue:
    """Return the clue that an answer names: in brackets, in JSON, or alone.

    Raises:
        InvalidAction: There is none, or several.

    >>> clue_of("I think [Fruit 2]"), clue_of('{"clue": "fruit", "number": 2}'), clue_of("clue: fruit, 2")
    (Clue(word='fruit', number=2), Clue(word='fruit', number=2), Clue(word='fruit', number=2))
    """
    text = THINKING.without(text)[:_READ].lower()
    values = (first_object(text) or {}) if "{" in text else {}
    if isinstance(values.get("clue"), str) and isinstance(values.get("number"), int | str):
        text = f"{values['clue'][:40]} {str(values['number'])[:40]}".replace("[", "(")  # one clue, as it stands
    alone = _ALONE.fullmatch(text.strip(" \t\r\n.")) if len(text) <= _LONGEST else None
    found = {(alone[1], alone[2])} if alone else set(_BRACKETED.findall(text))
    if len(found) != 1:
        reason = "names more than one clue" if found else "has no clue"
        wanted = f"give one word of the letters a to z and a number from 0 to {MOST}, such as [colour 2]"
        raise InvalidAction(f"Your answer {reason}: {wanted}.", "unreadable")
    word, number = found.pop()
    return Clue(word, int(number))
