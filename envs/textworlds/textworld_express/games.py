"""The eight games of TextWorldExpress: parameters, rules, tasks, and how the package's answers are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from turngym.errors import ConfigError, UnknownName, nearest


class Game(NamedTuple):
    """Subject of a game.

    Args:
        parameters: Name of each generator parameter -> smallest and largest value (1 and 0 mean yes and no).
        rules: The goal, for the instructions.
        actions: The forms of its actions; words in capitals stand for what the observations name.
        gold_agent: The Java class that finds the gold path, where the package gives it a generator without a seed.
        is_lonely: Whether two games of the same task must not run in one Java process, since they share their objects.
        max_turns: Turns that suffice for the gold paths of its default parameters.
    """

    parameters: Mapping[str, tuple[int, int]]
    rules: str
    actions: tuple[str, ...]
    gold_agent: str = ""
    is_lonely: bool = False
    max_turns: int = 50


_LOOK = ("look around", "inventory")
_MOVE = ("move DIRECTION", "open door to DIRECTION", "close door to DIRECTION")
_CARRY = ("take OBJECT", "put OBJECT in CONTAINER")
_OPEN = ("open CONTAINER", "close CONTAINER")
_FLAG = (0, 1)
NO_EFFECT = ("look around", "inventory", "task")
_NO_EFFECT_VERBS = ("examine ", "read ")

GAMES: dict[str, Game] = {
    "arithmetic": Game(
        {},
        "Read the math problem, work out the answer, and put the objects whose number is the answer into the box. "
        "Any other objects in the box lose the game.",
        (*_LOOK, "read OBJECT", *_CARRY),
        is_lonely=True,
    ),
    "coin": Game(
        {"numLocations": (1, 11), "numDistractorItems": (0, 10), "includeDoors": _FLAG, "limitInventorySize": _FLAG},
        "Somewhere in this house lies a coin. Find it and take it. A closed door must be opened before you can pass.",
        (*_LOOK, *_MOVE, "take OBJECT"),
        gold_agent="CoinGoldAgent",
    ),
    "cookingworld": Game(
        {
            "numLocations": (1, 11),
            "numIngredients": (1, 5),
            "numDistractorItems": (0, 10),
            "includeDoors": _FLAG,
            "limitInventorySize": _FLAG,
        },
        "Cook the recipe of the cookbook: gather the ingredients, cut and heat each as the recipe says, prepare the "
        "meal and eat it. To fry use a stove, to roast an oven, to grill a barbeque; cutting needs the knife.",
        (
            *(*_LOOK, *_MOVE, *_CARRY, *_OPEN, "examine OBJECT", "read OBJECT", "chop OBJECT", "slice OBJECT"),
            *("dice OBJECT", "cook OBJECT in DEVICE", "prepare meal", "eat OBJECT"),
        ),
        max_turns=150,
    ),
    "mapreader": Game(
        {
            "numLocations": (1, 50),
            "maxDistanceApart": (1, 8),
            "maxDistractorItemsPerLocation": (0, 3),
            "includeDoors": _FLAG,
            "limitInventorySize": _FLAG,
        },
        "Fetch the coin from the named place and put it into the box. The map tells which places are connected.",
        (*_LOOK, "task", "read OBJECT", *_MOVE, *_CARRY),
    ),
    "peckingorder": Game(
        {},
        "Read the instructions book, do what it says, and read it again for the next instruction, until the game is "
        "won. Taking anything else loses the game.",
        (*_LOOK, "read OBJECT", *_CARRY),
    ),
    "simonsays": Game(
        {"gameLength": (1, 100), "numDistractors": (0, 5), "memorization": _FLAG, "verbose": _FLAG},
        "Do exactly what Simon says, one action a turn. Any other action of the list loses the game.",
        ("the words that Simon says, such as: take OBJECT",),
    ),
    "sorting": Game(
        {},
        "Put the objects into the box one by one, from the smallest quantity to the largest. Mind the units. "
        "A wrong order loses the game.",
        (*_LOOK, *_CARRY),
        is_lonely=True,
    ),
    "twc": Game(
        {"numLocations": (1, 3), "numItemsToPutAway": (1, 4), "includeDoors": _FLAG, "limitInventorySize": _FLAG},
        "Tidy up: put every object that lies about where such an object usually belongs.",
        (*_LOOK, *_MOVE, *_CARRY, *_OPEN),
        gold_agent="TWCGoldAgent",
    ),
}

TASKS_PER_SPLIT = 1000
FIRST_SEED = {"train": 0, "dev": 10_000, "test": 20_000}

# Two different cucumbers lie about in these: `take cucumber` takes one of them, and the book may mean the other.
# fmt: off
UNWINNABLE: dict[tuple[str, str], frozenset[int]] = {
    ("peckingorder", "dev"): frozenset({
        22, 42, 63, 64, 83, 95, 110, 153, 156, 171, 175, 217, 218, 225, 237, 261, 275, 287, 294, 295, 332, 351, 373,
        374, 407, 409, 410, 412, 428, 436, 447, 473, 528, 556, 568, 596, 598, 611, 623, 666, 670, 706, 727, 755, 816,
        836, 852, 858, 871, 902, 908, 938, 942, 975, 994,
    }),
}
# fmt: on


def task_numbers(game: str, split: str) -> tuple[int, ...]:
    """Return the numbers of a fold's tasks: 0 to 999, less the few that nobody can win.

    >>> len(task_numbers("coin", "dev")), len(task_numbers("peckingorder", "dev"))
    (1000, 945)
    """
    return tuple(n for n in range(TASKS_PER_SPLIT) if n not in UNWINNABLE.get((game, split), ()))


def read_params(game: str, params: str | Mapping[str, int] | None) -> str:
    """Return generator parameters in canonical form, ``"name=value,name=value"`` sorted by name.

    Raises:
        UnknownName: The game has no such parameter.
        ConfigError: A value is not an integer, or outside of its range.

    >>> read_params("coin", {"numLocations": 3, "includeDoors": 0})
    'includeDoors=0,numLocations=3'
    """
    known = GAMES[game].parameters
    if isinstance(params, str):
        pairs = [part.partition("=")[::2] for part in params.split(",") if part.strip()]
        params = {name.strip(): cast("int", value.strip()) for name, value in pairs}
    values = dict(params or {})
    for name, value in values.items():
        if name not in known:
            hint = nearest(name, known) if known else "It has none."
            raise UnknownName(f"the game {game!r} has no parameter {name!r}. {hint}")
        low, high = known[name]
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if not text.isdecimal() or not low <= int(text) <= high:
            raise ConfigError(f"{name} of the game {game!r} must be an integer in [{low}, {high}], got {value!r}.")
        values[name] = int(text)
    return ",".join(f"{name}={values[name]}" for name in sorted(values))


def describe(game: str) -> str:
    """Return the rules and the forms of the actions of a game, for the system prompt."""
    forms = "\n".join(f"- {form}" for form in GAMES[game].actions)
    return f"{GAMES[game].rules}\n\nAnswer with one action a turn, exactly as it is written here:\n{forms}"


@dataclass(frozen=True, slots=True)
class Reply:
    """Response of the package to one action, in canonical form."""

    observation: str
    look: str
    inventory: str
    task: str
    legal_actions: tuple[str, ...]
    score: float
    is_success: bool
    is_failure: bool


def tidy(text: str) -> str:
    r"""Return a text without white space at the ends of its lines and of itself.

    >>> tidy("You are here. \nTo the North you see a door. ")
    'You are here.\nTo the North you see a door.'
    """
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def parse_reply(text: str, task: str) -> Reply:
    """Return the package's JSON answer as a :class:`Reply`; ``task`` is its description of the task."""
    answer = json.loads(text)
    return Reply(
        observation=tidy(answer["observation"]),
        look=tidy(answer["look"]),
        inventory=tidy(answer["inventory"]),
        task=tidy(task),
        legal_actions=tuple(sorted(set(answer["validActions"]))),
        score=float(answer["score"]),
        is_success=bool(answer["tasksuccess"]) or answer["score"] >= 1.0,
        is_failure=bool(answer["taskfailure"]),
    )


def match_action(text: str, legal_actions: Sequence[str]) -> str | None:
    """Return the legal action that a text names, whatever its case and spacing; None if there is none.

    >>> match_action(" Move  north", ["inventory", "move north"])
    'move north'
    """
    wanted = " ".join(text.split()).casefold()
    return next((action for action in legal_actions if action.casefold() == wanted), None)


def gold_position(actions: Sequence[str], gold: Sequence[str], *, may_look: bool) -> int | None:
    """Return how many actions of the gold path have been taken, None if the path has been left.

    Args:
        actions: The valid actions so far.
        gold: The gold path.
        may_look: Whether actions that only look (``look around``, ``read ...``) leave the path as it is.

    >>> gold_position(["inventory", "move east"], ["move east", "take coin"], may_look=True)
    1
    >>> gold_position(["move west"], ["move east", "take coin"], may_look=True) is None
    True
    """
    position = 0
    for action in actions:
        if position < len(gold) and action == gold[position]:
            position += 1
        elif not (may_look and (action in NO_EFFECT or action.startswith(_NO_EFFECT_VERBS))):
            return None
    return position
