"""Games of Werewolf in which hidden facts are swapped, to find leaks.

Each game has drawn options, drawn legal answers (some late, some invalid) and one seat that looks on. At a drawn moment
other roles and other deeds by night are found that fit all that this seat has read. Then two things must hold. At that
moment nothing that the seat is shown changes by a byte when the hidden facts are swapped in the running game. And the
whole game, played again from the beginning in that other world, shows the seat the same at every moment: lines,
question, anchor, legal actions, phase, progress and the rest of its info.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.table import Table
from turngym.envs.werewolf.game import Werewolf
from turngym.envs.werewolf.roles import DOCTOR, SEER, WEREWOLF
from turngym.envs.werewolf.rules import NOBODY
from turngym.options import kinds

MOST_COMMITS = 70
SAYINGS = ("I am the seer.", "player_0 is a wolf.", "I suspect player_3.", "[wolves] Target: player_2.", "Hm.")
Rules = Callable[..., Werewolf]
Answers = dict[int, str]


class Story(NamedTuple):
    """A game as one seat saw it.

    Args:
        shown: Everything that the seat was shown, in order, without repetitions.
        commits: The answers of each decision; None where the answer came too late.
        table: The table in its last state.
    """

    shown: list[bytes]
    commits: list[Answers]
    table: Table


def drawn_options(draw: random.Random) -> dict[str, Any]:
    """Return options of which every combination can come."""
    known = kinds(Werewolf.Options)
    options: dict[str, Any] = {name: draw.choice(kind.choices) for name, kind in known.items() if kind.choices}
    if options["exile"] == "majority":
        options["tie"] = "none"
    return {
        **options,
        "num_seats": draw.randint(5, 9),
        "talk_rounds": draw.randint(0, 2),
        "bid_turns": draw.randint(0, 3),
        "doctor_self": draw.random() < 0.5,
        "doctor_repeat": draw.random() < 0.5,
        "max_days": 6,
    }


def rules_of(table: Table) -> Werewolf:
    """Return the game of a table."""
    assert isinstance(table.game, Werewolf)
    return table.game


def what_is_shown(table: Table, seat: int) -> bytes:
    """Return all that a seat can read, as bytes."""
    view = table.views[seat]
    everything = (view.lines, view.observation, view.role, view.phase, view.retry, view.is_asked, view.instructions)
    return repr((*everything, sorted(table.info(seat).items()))).encode("utf8", "surrogatepass")


def note(table: Table, seat: int, shown: list[bytes]) -> None:
    """Note what a seat is shown, if that is new.

    A living seer or doctor that still waits for the werewolves is left out: how long that takes is theirs to know.
    """
    waits = table.game.phase() == "night" and not table.views[seat].is_asked
    if waits and table.game.role(seat) in (SEER, DOCTOR) and seat in rules_of(table).living:
        return
    now = what_is_shown(table, seat)
    if not shown or shown[-1] != now:
        shown.append(now)


def give(table: Table, answers: Answers, seat: int, draw: random.Random) -> None:
    """Answer for all that are asked, the seat that looks on last; others fail at their first try now and then."""
    for other in sorted(table.pending, key=lambda asked: asked == seat):
        text = answers[other]
        if other != seat and draw.random() < 0.05:
            table.answer(other, draw.choice(("", "[kill player_99]", '{"action": "dance"}')))
        table.answer(other, text)


def drawn_answer(table: Table, seat: int, draw: random.Random) -> str:
    """Return a legal answer."""
    if table.game.phase() == "talk":
        return f"say {draw.choice(SAYINGS)}"
    return draw.choice(table.views[seat].legal_actions)


def first_story(table: Table, seed: int, seat: int, draw: random.Random) -> Story:
    """Play a game up to a drawn moment before its end."""
    stop = draw.randint(1, MOST_COMMITS)
    begin_game(table, seed)
    shown: list[bytes] = []
    commits: list[Answers] = []
    note(table, seat, shown)
    while len(commits) < stop:
        answers = {other: drawn_answer(table, other, draw) for other in table.pending}
        give(table, answers, seat, draw)
        if table.is_over:
            break
        commits.append(answers)
        note(table, seat, shown)
    if table.is_over:
        begin_game(table, seed)
        for answers in commits:
            give(table, answers, seat, random.Random(0))
    return Story(shown, commits, table)


def retell(rules: Rules, options: dict[str, Any], seed: int, seat: int, story: Story, draw: random.Random) -> str:
    """Swap what is hidden, play the other world from the beginning, and compare; return what came of it."""
    table = story.table
    before = what_is_shown(table, seat)
    swapped = Table(rules(**options))
    swapped.restore(table.snapshot())
    if what_is_shown(swapped, seat) != before:
        return "the snapshot shows something else"
    if not swapped.game.swap_hidden(seat, np.random.default_rng(draw.getrandbits(60))):
        return "nothing to swap"
    if what_is_shown(swapped, seat) != before:
        return "the swap shows at once"
    world = rules_of(swapped)
    again = Table(rules(**options))
    begin_game(again, seed, {"roles": world.roles})
    shown: list[bytes] = []
    note(again, seat, shown)
    by_day, own = _divided(table, story.commits, seat)
    while len(shown) < len(story.shown):
        if again.is_over:
            return "the other world ends"
        if again.game.phase() == "night":
            answers = {other: _deed(again, other, seat, world, own, draw) for other in again.pending}
        else:
            answers = by_day.pop(0)
            if sorted(answers) != sorted(again.pending):
                return "others are asked"
        give(again, answers, seat, draw)
        note(again, seat, shown)
    return "equal" if shown == story.shown else "the other world shows"


def _divided(table: Table, commits: Sequence[Answers], seat: int) -> tuple[list[Answers], dict[tuple[int, int], Any]]:
    """Return the answers by day, and those of every night: (day, seat) -> canonical action."""
    taken = iter(table.actions)
    by_day: list[Answers] = []
    by_night: dict[tuple[int, int], Any] = {}
    day, is_night_before = 0, False
    for answers in commits:
        actions = dict([next(taken) for _ in answers])
        verbs = {action.partition(" ")[0] for action in actions.values() if action}
        is_night = bool(verbs & {"kill", "see", "save"})
        if is_night and not is_night_before:
            day += 1
        is_night_before = is_night
        if is_night:
            by_night.update({(day, other): action for other, action in actions.items()})
        else:
            by_day.append(dict(answers))
    return by_day, by_night


def _deed(
    table: Table, seat: int, onlooker: int, world: Werewolf, told: dict[tuple[int, int], Any], draw: random.Random
) -> str:
    """Return what a seat does by night in the other world."""
    game = rules_of(table)
    day, role = game.day, game.role(seat)
    onlooker_is_wolf = game.role(onlooker) == WEREWOLF and onlooker in game.living
    if seat == onlooker or (onlooker_is_wolf and role == WEREWOLF):
        action: str = told[day, seat]
        return action
    legal = table.views[seat].legal_actions
    if day <= len(world.nights):
        target, protected, _ = world.nights[day - 1]
        wolves = [other for other in game.living if game.role(other) == WEREWOLF]
        if role == WEREWOLF and seat == wolves[-1]:
            return f"kill player_{target}"
        if role == DOCTOR and protected != NOBODY:
            return f"save player_{protected}"
    return draw.choice(legal)


def compare(number: int, rules: Rules = Werewolf) -> tuple[str, str]:
    """Play game number ``number`` in two worlds.

    Args:
        number: Draws everything.
        rules: What makes the game; tests put a leaking one here.

    Returns:
        What came of it, and the role of the seat that looks on.
    """
    draw = random.Random(number)
    options = drawn_options(draw)
    table = Table(rules(**options))
    seat = draw.randrange(options["num_seats"])
    story = first_story(table, number, seat, draw)
    return retell(rules, options, number, seat, story, draw), table.game.role(seat)
