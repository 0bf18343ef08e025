"""The thirty tasks of ScienceWorld: how many variations each has, how they are split, and the turns of the papers."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.errors import ConfigError, UnknownName, nearest

MIXED = "mixed"
VARIATIONS: dict[str, int] = {
    "boil": 30,
    "melt": 30,
    "freeze": 30,
    "change-the-state-of-matter-of": 30,
    "use-thermometer": 540,
    "measure-melting-point-known-substance": 436,
    "measure-melting-point-unknown-substance": 300,
    "power-component": 20,
    "power-component-renewable-vs-nonrenewable-energy": 20,
    "test-conductivity": 900,
    "test-conductivity-of-unknown-substances": 600,
    "find-living-thing": 300,
    "find-non-living-thing": 300,
    "find-plant": 300,
    "find-animal": 300,
    "grow-plant": 126,
    "grow-fruit": 126,
    "chemistry-mix": 32,
    "chemistry-mix-paint-secondary-color": 36,
    "chemistry-mix-paint-tertiary-color": 36,
    "lifespan-longest-lived": 125,
    "lifespan-shortest-lived": 125,
    "lifespan-longest-lived-then-shortest-lived": 125,
    "identify-life-stages-1": 14,
    "identify-life-stages-2": 10,
    "inclined-plane-determine-angle": 168,
    "inclined-plane-friction-named-surfaces": 1386,
    "inclined-plane-friction-unnamed-surfaces": 162,
    "mendelian-genetics-known-plant": 120,
    "mendelian-genetics-unknown-plant": 480,
}
"""Task -> number of its variations, in the order of the paper."""
SIMPLIFICATIONS = (
    "teleportAction",
    "openDoors",
    "openContainers",
    "selfWateringFlowerPots",
    "noElectricalAction",
)
_FREE_ACTIONS = ("look around", "inventory", "task")
"""Actions that take no time in the world."""
_ELECTRICAL = ("power-component", "conductivity")


def variations(kind: str, split: str, at_most: int = 0) -> range:
    """Return the numbers of a task's variations in a split, as the package splits them.

    The first two quarters are for training, the third for development, and the rest for testing.

    Args:
        kind: The task.
        split: ``"train"``, ``"dev"`` or ``"test"``.
        at_most: Only so many, from the first on; 0 for all.

    >>> variations("boil", "test"), variations("boil", "dev", at_most=3)
    (range(21, 30), range(14, 17))
    """
    total = VARIATIONS[kind]
    quarter = total // 4
    found = {
        "train": range(2 * quarter),
        "dev": range(2 * quarter, 3 * quarter),
        "test": range(3 * quarter, total),
    }[split]
    return found[: at_most or None]


def kinds_of(kind: str) -> tuple[str, ...]:
    """Return the tasks that an option names.

    Raises:
        UnknownName: There is no such task.
    """
    if kind != MIXED and kind not in VARIATIONS:
        raise UnknownName(f"ScienceWorld has no task named {kind!r}. {nearest(kind, (*VARIATIONS, MIXED))}")
    return tuple(VARIATIONS) if kind == MIXED else (kind,)


def read_simplifications(text: str, kinds: tuple[str, ...]) -> str:
    """Return simplifications in canonical form: in a fixed order, with commas.

    Raises:
        UnknownName: There is no such simplification.
        ConfigError: It would take away what a task is about.

    >>> read_simplifications("openDoors, teleportAction", ("boil",))
    'teleportAction,openDoors'
    """
    names = {name.strip() for name in text.split(",") if name.strip()}
    for name in sorted(names - {"easy"}):
        if name not in SIMPLIFICATIONS:
            raise UnknownName(
                f"ScienceWorld has no simplification {name!r}. {nearest(name, ('easy', *SIMPLIFICATIONS))}"
            )
    if "noElectricalAction" in names:
        clash = [kind for kind in kinds if any(word in kind for word in _ELECTRICAL)]
        if clash:
            raise ConfigError(f"the simplification noElectricalAction makes {clash[0]!r} impossible: leave it out.")
    if "easy" in names:
        return "easy"
    return ",".join(name for name in SIMPLIFICATIONS if name in names)


def gold_position(actions: Sequence[str], gold: Sequence[str]) -> int | None:
    """Return how many actions of a gold path have been taken, None if it has been left; to look is allowed.

    >>> gold_position(["inventory", "open door"], ["open door", "go outside"])
    1
    """
    position = 0
    for action in actions:
        if position < len(gold) and action == gold[position]:
            position += 1
        elif action not in _FREE_ACTIONS:
            return None
    return position
