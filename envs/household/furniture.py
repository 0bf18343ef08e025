"""The vocabulary of generated households: rooms with their receptacles, and objects with their properties."""

from __future__ import annotations

from typing import NamedTuple

from turngym.envs.household.world import CLEAN, COOL, HEAT, LOOK, PLACE, TWO


class Receptacles(NamedTuple):
    """Receptacles of one type.

    Args:
        most: How many a room may have.
        is_openable: Whether they must be opened.
        preposition: Preposition for an object in it.
    """

    most: int
    is_openable: bool = False
    preposition: str = "in"


ROOMS: dict[str, tuple[str, ...]] = {
    "kitchen": (
        "cabinet",
        "counter",
        "drawer",
        "fridge",
        "microwave",
        "pantry",
        "shelf",
        "sink",
        "stove",
        "table",
        "bin",
    ),
    "bedroom": ("bed", "chest", "desk", "drawer", "nightstand", "shelf", "wardrobe", "bin", "stool"),
    "livingroom": ("armchair", "cabinet", "coffeetable", "drawer", "shelf", "sideboard", "sofa", "table", "bin"),
    "bathroom": ("cabinet", "counter", "drawer", "hamper", "shelf", "sink", "stool", "bin", "bathtub"),
}
"""Room -> types of its receptacles."""

RECEPTACLES: dict[str, Receptacles] = {
    "armchair": Receptacles(2, False, "on"),
    "bathtub": Receptacles(1),
    "bed": Receptacles(2, False, "on"),
    "bin": Receptacles(1),
    "cabinet": Receptacles(6, True),
    "chest": Receptacles(1, True),
    "coffeetable": Receptacles(1, False, "on"),
    "counter": Receptacles(3, False, "on"),
    "desk": Receptacles(2, False, "on"),
    "drawer": Receptacles(6, True),
    "fridge": Receptacles(1, True),
    "hamper": Receptacles(1, True),
    "microwave": Receptacles(1, True),
    "nightstand": Receptacles(2, False, "on"),
    "pantry": Receptacles(1, True),
    "shelf": Receptacles(4, False, "on"),
    "sideboard": Receptacles(1, False, "on"),
    "sink": Receptacles(1),
    "sofa": Receptacles(2, False, "on"),
    "stool": Receptacles(1, False, "on"),
    "stove": Receptacles(1, False, "on"),
    "table": Receptacles(2, False, "on"),
    "wardrobe": Receptacles(1, True),
}
"""Type -> what is known of such receptacles."""

NEEDS: dict[str, str] = {CLEAN: "sink", HEAT: "microwave", COOL: "fridge"}
"""Kind of task -> type of the receptacle that it takes."""
LAMP = "lamp"
LAMP_PLACES = ("coffeetable", "desk", "nightstand", "shelf", "sideboard", "table")
"""Where a lamp may stand: never behind a door."""
LIT_ROOMS = ("bedroom", "livingroom")

_STORES = ("cabinet", "counter", "drawer", "shelf", "table")
_KITCHEN = ("cabinet", "counter", "pantry", "sink", "stove", "table", "shelf", "fridge", "microwave", "coffeetable")
_FOOD = ("counter", "fridge", "microwave", "pantry", "sink", "table", "bin", "coffeetable")
_OFFICE = ("bed", "coffeetable", "desk", "drawer", "nightstand", "shelf", "sideboard", "sofa", "table", "chest", "bin")
_SOFT = ("armchair", "bed", "chest", "hamper", "sofa", "wardrobe", "stool")
_BATH = ("bathtub", "bin", "cabinet", "counter", "drawer", "shelf", "sink", "stool")
_WASH, _WARM, _CHILL = "cleanable", "heatable", "coolable"


class Things(NamedTuple):
    """Things of one type.

    Args:
        places: Types of the receptacles that they fit.
        abilities: Possible actions on them besides taking them.
        several: The plural, where it takes more than an s.
    """

    places: tuple[str, ...]
    abilities: tuple[str, ...] = ()
    several: str = ""


THINGS: dict[str, Things] = {
    "apple": Things(_FOOD, (_WASH, _WARM, _CHILL)),
    "bottle": Things(("bin", "cabinet", "counter", "fridge", "pantry", "shelf", "table"), (_WASH, _CHILL)),
    "bowl": Things(_KITCHEN, (_WASH, _WARM, _CHILL)),
    "bread": Things(_FOOD, (_WARM, _CHILL)),
    "brush": Things(_BATH, (_WASH,), "brushes"),
    "candle": Things((*_STORES, "sideboard", "coffeetable", "bathtub")),
    "coin": Things((*_OFFICE, "armchair", "cabinet", "counter")),
    "comb": Things((*_BATH, "nightstand"), (_WASH,)),
    "cup": Things((*_KITCHEN, "desk", "nightstand", "sideboard"), (_WASH, _WARM, _CHILL)),
    "cushion": Things(_SOFT),
    "egg": Things(_FOOD, (_WASH, _WARM, _CHILL)),
    "fork": Things(("counter", "drawer", "sink", "table"), (_WASH,)),
    "hat": Things((*_SOFT, "shelf", "desk")),
    "key": Things((*_OFFICE, "armchair", "counter")),
    "magazine": Things((*_OFFICE, "armchair", "stool")),
    "mug": Things((*_KITCHEN, "desk", "nightstand", "sideboard"), (_WASH, _WARM, _CHILL)),
    "notebook": Things((*_OFFICE, "armchair")),
    "novel": Things((*_OFFICE, "armchair", "stool")),
    "pan": Things(("cabinet", "counter", "pantry", "sink", "stove", "table", "fridge"), (_WASH, _CHILL)),
    "pear": Things(_FOOD, (_WASH, _WARM, _CHILL)),
    "pencil": Things((*_OFFICE, "counter")),
    "phone": Things((*_OFFICE, "armchair", "counter")),
    "plate": Things(_KITCHEN, (_WASH, _WARM, _CHILL)),
    "pot": Things(("cabinet", "counter", "pantry", "sink", "stove", "table", "fridge"), (_WASH, _CHILL)),
    "potato": Things(_FOOD, (_WASH, _WARM, _CHILL), "potatoes"),
    "remote": Things(("armchair", "coffeetable", "drawer", "sideboard", "sofa", "table", "bed", "nightstand")),
    "scarf": Things((*_SOFT, "drawer"), (), "scarves"),
    "soap": Things((*_BATH, "hamper"), (_WASH,)),
    "sponge": Things((*_BATH, "stove"), (_WASH,)),
    "spoon": Things(("counter", "drawer", "sink", "table"), (_WASH,)),
    "tissuebox": Things((*_OFFICE, "cabinet", "counter", "stool"), (), "tissueboxes"),
    "tomato": Things(_FOOD, (_WASH, _WARM, _CHILL), "tomatoes"),
    "towel": Things(("bathtub", "counter", "hamper", "shelf", "stool", "cabinet", "wardrobe"), (_WASH,)),
    "vase": Things((*_STORES, "sideboard", "coffeetable", "desk"), (_WASH,)),
    "watch": Things((*_OFFICE, "cabinet"), (), "watches"),
}
"""Type -> what is known of such things. Everything can be taken."""

FITS = frozenset((place, kind) for kind, thing in THINGS.items() for place in thing.places)
"""Pairs (type of a receptacle, type of a thing) that go together."""

ASKS = {
    PLACE: "put {a_thing} {preposition} {a_target}",
    TWO: "put two {several} {preposition} {a_target}",
    CLEAN: "put a clean {thing} {preposition} {a_target}",
    HEAT: "put a hot {thing} {preposition} {a_target}",
    COOL: "put a cool {thing} {preposition} {a_target}",
    LOOK: "look at {a_thing} by the light of {a_target}",
}
"""Kind of task -> how it is asked."""
