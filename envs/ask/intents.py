"""Hidden intents: a request that leaves slots open, whose values have a known prior."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from turngym.envs.ask.problem import Problem, Sketch
from turngym.envs.website.draw import Dice

_OPEN = {1: (3, 3), 2: (4, 4), 3: (5, 3)}
"""Level -> number of open slots, and of values of each."""
_SHARP = 0.5
Weights = Mapping[str, int]
# fmt: off
ORDERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "a pizza": {
        "size": ("small", "medium", "large", "family"), "base": ("thin", "thick", "wheat", "spelt"),
        "sauce": ("tomato", "cream", "pesto", "none"), "topping": ("ham", "olives", "mushrooms", "peppers"),
        "drink": ("water", "cola", "juice", "beer"), "time": ("noon", "six", "seven", "eight"),
        "place": ("home", "office", "park", "counter"),
    },
    "a trip": {
        "month": ("May", "June", "July", "August"), "by": ("train", "bus", "ship", "car"),
        "room": ("single", "double", "suite", "tent"), "meals": ("none", "breakfast", "half", "full"),
        "view": ("sea", "hills", "town", "garden"), "nights": ("two", "three", "five", "seven"),
        "sport": ("hiking", "rowing", "tennis", "none"),
    },
    "a bicycle": {
        "frame": ("steel", "alloy", "carbon", "bamboo"), "colour": ("red", "blue", "black", "white"),
        "gears": ("one", "three", "seven", "eleven"), "brakes": ("rim", "disc", "drum", "coaster"),
        "tyres": ("narrow", "wide", "studded", "slick"), "lamp": ("dynamo", "battery", "solar", "none"),
        "basket": ("front", "rear", "both", "none"),
    },
    "a report": {
        "format": ("pdf", "html", "slides", "text"), "period": ("day", "week", "month", "year"),
        "region": ("north", "south", "east", "west"), "currency": ("euro", "dollar", "pound", "yen"),
        "chart": ("lines", "bars", "pie", "none"), "language": ("English", "French", "Czech", "Dutch"),
        "detail": ("brief", "normal", "full", "raw"),
    },
    "a haircut": {
        "length": ("short", "chin", "shoulder", "long"), "colour": ("none", "brown", "blond", "copper"),
        "fringe": ("none", "straight", "side", "curved"), "wash": ("none", "quick", "mild", "full"),
        "day": ("Monday", "Tuesday", "Thursday", "Friday"), "by": ("Ada", "Bo", "Cleo", "anyone"),
        "style": ("plain", "layered", "curled", "braided"),
    },
}
# fmt: on
_OPENING = """I want {order}{said}. Other details are open; the numbers say how often they are meant:
{lines}
What do I want? Name {slots}, in this order."""


def intents(generator: np.random.Generator, level: int) -> Sketch:
    """Draw a request with open slots; the values of one depend on those of another.

    >>> problem = intents(np.random.default_rng(0), 2).build()
    >>> len(problem.questions), problem.names[0].count(",")
    (4, 3)
    """
    count, size = _OPEN[level]
    dice = Dice(generator)
    order = dice.one(list(ORDERS))
    slots = sorted(ORDERS[order], key=lambda slot: dice.share())
    values = {slot: dice.some(ORDERS[order][slot], size, size) for slot in slots[:count]}
    told = {slot: dice.one(ORDERS[order][slot]) for slot in slots[count : count + dice.whole(0, 2)]}
    cause, effect = slots[:2]
    plain = {slot: _drawn(dice, values[slot]) for slot in values if slot != effect}
    dependent = {value: _sharp_or_drawn(dice, values[effect]) for value in values[cause]}
    opening = _opening(order, told, (cause, effect), plain, dependent)
    return Sketch(opening, partial(_built, opening, values, (cause, effect), plain, dependent))


def _built(
    opening: str,
    values: Mapping[str, Sequence[str]],
    pair: tuple[str, str],
    plain: Mapping[str, Weights],
    dependent: Mapping[str, Weights],
) -> Problem:
    """Return the problem, whose candidates are all combinations of values that can be meant."""
    shown = sorted(values)
    cause, effect = (shown.index(slot) for slot in pair)
    priors = [[plain[slot][value] if slot in plain else 1 for value in values[slot]] for slot in shown]
    names, weights, answers = list[str](), list[int](), list[tuple[int, ...]]()
    kinds = ([values[slot] for slot in shown], [range(len(each)) for each in priors], priors)
    for chosen, places, known in zip(*(itertools.product(*each) for each in kinds), strict=True):
        weight = dependent[chosen[cause]].get(chosen[effect], 0)
        if weight:
            weights.append(math.prod(known) * weight)
            names.append(", ".join(chosen))
            answers.append(places)
    words = tuple(tuple(values[slot]) for slot in shown)
    return Problem(opening, tuple(names), np.array(weights), tuple(shown), np.array(answers), words)


def _opening(
    order: str,
    told: Mapping[str, str],
    pair: tuple[str, str],
    plain: Mapping[str, Weights],
    dependent: Mapping[str, Weights],
) -> str:
    shown, lines = sorted([*plain, pair[1]]), list[str]()
    for slot in shown:
        if slot in plain:
            lines.append(f"{slot}: {_listed(plain[slot])}")
        else:
            lines += [f"{slot} if {pair[0]} is {value}: {_listed(prior)}" for value, prior in dependent.items()]
    said = " and ".join(f"{slot} {value}" for slot, value in told.items())
    return _OPENING.format(
        order=order, said=f", {said}" if said else "", lines="\n".join(lines), slots=", ".join(shown)
    )


def _listed(weights: Weights) -> str:
    return ", ".join(f"{value} {weight}" for value, weight in weights.items())


def _drawn(dice: Dice, values: Sequence[str]) -> dict[str, int]:
    return {value: dice.whole(2, 5) for value in values}


def _sharp_or_drawn(dice: Dice, values: Sequence[str]) -> dict[str, int]:
    """Return weights, or those of a value that is always meant; both add up to about the same."""
    if dice.share() < _SHARP:
        return {dice.one(values): 3 * len(values)}
    return _drawn(dice, values)
