"""The texts of Hanabi: rules, what a seat sees, and names of actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from turngym.envs.hanabi.rules import COLOURS, Card, Held, Round
from turngym.envs.tablegames.reading import simplified


def card_name(card: Card) -> str:
    """Return the name of a card.

    >>> card_name(Card(0, 3))
    'red 3'
    """
    return f"{COLOURS[card.colour]} {card.rank}"


def instructions(options: Any, hand: int, target: int) -> str:
    """Return the rules of a game with some options."""
    colours, ranks = COLOURS[: options.colours], options.ranks
    middle = {2: "", 3: ", two 2s"}.get(ranks, f", two of each from 2 to {ranks - 1}")
    last = "counts nothing" if options.strict else "counts as it is"
    hints, lives = _many(options.hints, "hint"), _many(options.lives, "life", "lives")
    return (
        f"Hanabi for {options.num_seats} players, who win or lose together. There are cards of the colours "
        f"{', '.join(colours)}; each colour has three 1s{middle} and one {ranks}. Each player holds "
        f"{_many(hand, 'card')} and sees the cards of the others, but not its own. Together you build one firework of "
        f"each colour, with the cards from 1 to {ranks} in order. Each card in a firework is worth 1 point to "
        "everybody.\n"
        "In turn, each player does one thing.\n"
        "play N: put your card N on its firework. A card that does not fit is lost and costs a life.\n"
        "discard N: give up your card N for one more hint, unless there are all of them.\n"
        "hint PLAYER COLOUR or hint PLAYER RANK: point at all cards of that colour or rank in another hand, which must "
        "have one. It costs a hint.\n"
        f"Card 1 is the oldest; a new card goes to the end. There are {hints} and {lives}. A complete firework gives a "
        f"hint back. Without lives the game is lost and {last}. After the last card is drawn, everybody has one more "
        f"turn. With lives and {target} points or more you have won.\n"
        "Answer with one action in brackets, such as [play 1], [discard 2], [hint player_1 red] or [hint player_1 3]."
    )


def _many(count: int, one: str, several: str = "") -> str:
    return f"1 {one}" if count == 1 else f"{count} {several or f'{one}s'}"


def view(now: Round, seats: Sequence[str], seat: int) -> str:
    """Return what a seat sees: the table, the hands of others, and what is known of its own."""
    built = ", ".join([f"{COLOURS[colour]} {top}" for colour, top in enumerate(now.fireworks)])
    end = f"; {now.turns_left} turns left" if now.turns_left >= 0 else ""
    lines = [
        f"Fireworks: {built}. Hints {now.hints} of {now.most_hints}, lives {now.lives}, deck {len(now.deck)}{end}.",
        f"Discarded: {_discarded(now.discarded)}.",
    ]
    for other, hand in enumerate(now.hands):
        is_own = other == seat
        cards = [
            f"card {place} {'' if is_own else f'{card_name(held.card)} '}({_known(held, now)})"
            for place, held in enumerate(hand, 1)
        ]
        lines.append(f"{'You' if is_own else seats[other]}: {', '.join(cards)}.")
    return "\n".join(lines)


def _known(held: Held, now: Round) -> str:
    """Return the colours and ranks that the owner of a card knows to be possible."""
    colours = "/".join([COLOURS[each] for each in held.colours]) if len(held.colours) < now.colours else "any"
    ranks = "/".join(map(str, held.ranks)) if len(held.ranks) < now.ranks else "any"
    return f"{colours} {ranks}"


def _discarded(cards: Sequence[Card]) -> str:
    counts = sorted(Counter(cards).items())
    return ", ".join([card_name(card) + (f" x{count}" if count > 1 else "") for card, count in counts]) or "none"


def meanings(seats: int, colours: int, ranks: int, hand: int) -> dict[str, str]:
    """Return simplified text -> action, for all actions of a game, legal now or not."""
    found = {}
    for verb in ("play", "discard"):
        for place in range(1, hand + 1):
            action = f"{verb} {place}"
            found.update(dict.fromkeys((action, f"{verb} card {place}", f"i {action}"), action))
    for seat in range(seats):
        for about in (*COLOURS[:colours], *map(str, range(1, ranks + 1))):
            action = f"hint player_{seat} {about}"
            found.update(dict.fromkeys(map(simplified, _forms(f"player_{seat}", about)), action))
    return found


def _forms(name: str, about: str) -> Iterator[str]:
    kind = "rank" if about.isdecimal() else "colour"
    for verb in ("hint", "tell", "reveal"):
        yield from (f"{verb} {name} {about}", f"{verb} {name} {kind} {about}", f"{verb} {about} to {name}")
    yield f"hint {name} color {about}"
    yield f"hint {name} {about}s"
