"""TextWorld's generators: their parameters, what is asked of the player, and the names and seeds of the tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turngym.errors import ConfigError, UnknownName, nearest

Value = int | str


class Game(NamedTuple):
    """One of TextWorld's generators.

    Args:
        parameters: Name of each parameter -> the values it may have, 1 and 0 meaning yes and no.
        defaults: Their values where none are given.
        rules: The goal, for the instructions.
        actions: The forms of its actions; words in capitals stand for what the observations name.
    """

    parameters: Mapping[str, Sequence[Value]]
    defaults: Mapping[str, Value]
    rules: str
    actions: tuple[str, ...]


_FLAG = (0, 1)
_MOVE = ("look", "inventory", "go DIRECTION")
_CARRY = ("take THING", "take THING from PLACE", "drop THING", "put THING on PLACE", "insert THING into PLACE")
_OPEN = ("open PLACE", "close PLACE")
_LOCK = ("unlock PLACE with KEY", "lock PLACE with KEY")
_WHOLE = (*_MOVE, "examine THING", *_CARRY, *_OPEN, *_LOCK, "eat FOOD")

GAMES: dict[str, Game] = {
    "coin_collector": Game(
        {"level": range(1, 301), "only_last_action": _FLAG},
        {"level": 5, "only_last_action": 1},
        "Somewhere in this house lies a coin. Find it and take it.",
        (*_MOVE, "examine THING", "take THING"),
    ),
    "treasure_hunter": Game(
        {"level": range(1, 31), "only_last_action": _FLAG},
        {"level": 5, "only_last_action": 1},
        "Find the thing that is asked for and take it; taking another one may lose the game. What is locked needs its "
        "key.",
        _WHOLE,
    ),
    "simple": Game(
        {"rewards": ("dense", "balanced", "sparse"), "goal": ("detailed", "brief", "none")},
        {"rewards": "dense", "goal": "detailed"},
        "Fetch the food that is asked for in a house of six rooms, and bring it to where it is wanted.",
        _WHOLE,
    ),
    "cooking": Game(
        {
            "recipe": range(1, 6),
            "take": range(6),
            "go": (1, 6, 9, 12),
            "open": _FLAG,
            "cook": _FLAG,
            "cut": _FLAG,
            "drop": _FLAG,
        },
        {"recipe": 1, "take": 1, "go": 6, "open": 0, "cook": 0, "cut": 0, "drop": 0},
        "Cook the recipe of the cookbook, which lies in the kitchen: gather the ingredients, cut and cook each exactly "
        "as the recipe says, prepare the meal in the kitchen and eat it. To fry use a stove, to roast an oven, to "
        "grill a barbeque. Eating or spoiling an ingredient loses the game.",
        (
            *(*_MOVE, "examine THING", *_CARRY, *_OPEN, "cook FOOD with PLACE", "slice FOOD with KNIFE"),
            *("dice FOOD with KNIFE", "chop FOOD with KNIFE", "prepare meal", "eat FOOD"),
        ),
    ),
    "custom": Game(
        {
            "world_size": range(1, 31),
            "nb_objects": range(1, 51),
            "quest_length": range(1, 21),
            "quest_breadth": range(1, 6),
            "nb_parallel_quests": range(1, 4),
            "only_last_action": _FLAG,
        },
        {
            **{"world_size": 5, "nb_objects": 10, "quest_length": 5, "quest_breadth": 1, "nb_parallel_quests": 1},
            "only_last_action": 0,
        },
        "Do what the first text asks for.",
        _WHOLE,
    ),
}
_MOST_ROOMS = 100

MOST_GAMES = 1000
"""Tasks of a split, at most."""
FIRST_SEED = {"train": 0, "dev": 10_000, "test": 20_000}
"""Split -> seed of its first task."""
FOOD_SPLIT = {"train": "train", "dev": "valid", "test": "test"}
"""Split -> that of the cooking game, which keeps foods apart."""


def read_params(game: str, params: str | Mapping[str, Value] | None) -> dict[str, Value]:
    """Return the parameters of a game, those not given at their defaults.

    Args:
        game: A name in :data:`GAMES`.
        params: A mapping or ``"name=value,name=value"``.

    Raises:
        UnknownName: The game has no such parameter.
        ConfigError: A value is not allowed, or there is no game with these values.

    >>> read_params("coin_collector", "level=3")
    {'level': 3, 'only_last_action': 1}
    """
    known = GAMES[game].parameters
    if isinstance(params, str):
        pairs = [part.partition("=")[::2] for part in params.split(",") if part.strip()]
        params = {name.strip(): value.strip() for name, value in pairs}
    values = dict(GAMES[game].defaults)
    for name, value in (params or {}).items():
        if name not in known:
            raise UnknownName(f"the game {game!r} has no parameter {name!r}. {nearest(name, known)}")
        found = [each for each in known[name] if str(each) == str(int(value) if isinstance(value, bool) else value)]
        if not found:
            allowed = known[name]
            text = f"{allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else " or ".join(map(str, allowed))
            raise ConfigError(f"{name} of the game {game!r} must be {text}, got {value!r}.")
        values[name] = found[0]
    _require_possible(game, values)
    return values


def _require_possible(game: str, values: Mapping[str, Value]) -> None:
    """Raise where each value is allowed and all together are not."""
    if game == "coin_collector":
        level = int(values["level"])
        rooms = ((level - 1) // 100 + 1) * ((level - 1) % 100 + 1)
        if rooms > _MOST_ROOMS:
            raise ConfigError(
                f"level {level} of the coin collector has {rooms} rooms, more than the {_MOST_ROOMS} that TextWorld "
                "can build: take 1 to 100, 101 to 150 or 201 to 233."
            )
    if game == "cooking" and int(values["take"]) > int(values["recipe"]):
        raise ConfigError(
            f"take={values['take']} of the cooking game is more than recipe={values['recipe']}: lower it."
        )


def as_text(params: Mapping[str, Value]) -> str:
    """Return parameters in their canonical form, sorted by name.

    >>> as_text({"level": 3, "goal": "none"})
    'goal=none,level=3'
    """
    return ",".join(f"{name}={params[name]}" for name in sorted(params))


def describe(game: str) -> str:
    """Return the rules and the forms of the actions of a game, for the system prompt."""
    forms = "\n".join(f"- {form}" for form in GAMES[game].actions)
    return f"{GAMES[game].rules}\n\nAnswer with one action a turn, such as:\n{forms}"
