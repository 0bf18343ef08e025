"""One game of the package scienceworld, in a Java process that several games share without noticing.

The package draws random numbers from one generator and numbers its objects with one counter, both of the whole Java
process, and sets both at the start of a game. So that games do not disturb each other, they take turns, and each finds
both as it left them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from turngym.envs.textworlds.java import JavaObject, JavaProcess, java_pool, read
from turngym.errors import missing_extra

T = TypeVar("T")
UNKNOWN_ACTION = "No known action matches that input."
_ENTRY = "scienceworld.runtime.pythonapi.PythonInterface"
_HEAP_MEGABYTES = 384
_OPTIONS = (
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",  # the package walks over sets in the order of addresses, so that no two runs would be the same
)
_SCRAMBLE = 0x5DEECE66D  # what java.util.Random.setSeed mixes into a seed
_golds: dict[tuple[str, int, str, bool], tuple[str, ...]] = {}


class Reply(NamedTuple):
    """Response of the package to an action, in canonical form.

    Args:
        observation: Its answer.
        look: Result of looking around.
        inventory: Result of the inventory.
        score: Its score in percent; -100 where the task was failed for good.
        is_over: Whether the task is completed or failed.
        legal_actions: Its valid actions, sorted; empty if they were not asked for.
    """

    observation: str
    look: str
    inventory: str
    score: int
    is_over: bool
    legal_actions: tuple[str, ...]


@dataclass
class _Mark:
    """Where a game stands in the random numbers and in the count of objects."""

    seed: int = 0
    count: int = 0


class _Shared:
    """The generator and the counter of a Java process, and whose they are at the moment."""

    def __init__(self, java: Any) -> None:
        find = java.jvm.java.lang.Class.forName
        self._random = find("scala.util.Random$").getField("MODULE$").get(None).self()
        self._seed = find("java.util.Random").getDeclaredField("seed")
        self._seed.setAccessible(True)
        self._counter = find("util.UniqueIdentifier$").getField("MODULE$").get(None)
        self._owner = _Mark()

    def hand_to(self, mark: _Mark) -> None:
        """Note how the present owner leaves them, and put them as the next one left them."""
        if self._owner is not mark:
            self._owner.seed, self._owner.count = self._seed.get(self._random), self._counter.count()
            self._random.setSeed(mark.seed ^ _SCRAMBLE)
            getattr(self._counter, "count_$eq")(mark.count)
            self._owner = mark


def find_jar() -> Path:
    """Return the class archive of the package.

    Raises:
        MissingExtra: The package is not installed.
    """
    try:
        from scienceworld.constants import JAR_PATH
    except ImportError as error:
        raise missing_extra("ScienceWorld", "scienceworld", "scienceworld") from error
    return Path(JAR_PATH)


class Game:
    """A game of ScienceWorld.

    Args:
        jar: The class archive.
        lists_actions: Whether the valid actions are asked for after every action; nine tenths of the time go there.

    Raises:
        MissingExtra: There is no Java runtime.
        JavaGone: Java ended while it started.
    """

    def __init__(self, jar: Path, *, lists_actions: bool) -> None:
        self._java = JavaObject(java_pool("ScienceWorld", jar, _HEAP_MEGABYTES, _OPTIONS), _ENTRY, _take_own_turn)
        self._lists_actions = lists_actions
        self._mark = _Mark()

    @property
    def process(self) -> JavaProcess:
        """The Java process."""
        return self._java.process

    def load(self, kind: str, variation: int, simplifications: str) -> tuple[str, Reply]:
        """Start a task; return its description and what looking around says.

        Raises:
            JavaGone: The process has ended.
        """

        def begin(java: Any) -> tuple[str, Reply]:
            self._java.entry.load(kind, variation, simplifications, False)
            return tidy(self._java.entry.freeActionTaskDesc()), self._act(java, "look around")

        return self._take_turn(self._mark, begin)

    def step(self, action: str) -> Reply:
        """Take an action.

        Raises:
            JavaGone: The process has ended.
        """
        return self._take_turn(self._mark, lambda java: self._act(java, action))

    def find_gold(self, kind: str, variation: int, simplifications: str) -> tuple[str, ...]:
        """Return the package's gold path of a task, kept for the next time; this game is not touched by that.

        Raises:
            JavaGone: The process has ended.
        """
        key = kind, variation, simplifications, self._lists_actions
        if key not in _golds:
            _golds[key] = self._take_turn(_Mark(), functools.partial(_find_gold, *key), is_long=True)
        return _golds[key]

    def is_alive(self) -> bool:
        """Return whether its process runs."""
        return self._java.is_alive()

    def close(self) -> None:
        """Leave the process."""
        self._java.close()

    def _act(self, java: Any, action: str) -> Reply:
        return _act(java, self._java.entry, action, lists_actions=self._lists_actions)

    def _take_turn(self, mark: _Mark, function: Callable[[Any], T], *, is_long: bool = False) -> T:
        return _take_turn(self.process, mark, function, is_long=is_long)


def _take_turn(process: JavaProcess, mark: _Mark, function: Callable[[Any], T], *, is_long: bool = False) -> T:
    def act(java: Any) -> T:
        shared = process.shared.get(_ENTRY) or process.shared.setdefault(_ENTRY, _Shared(java))
        shared.hand_to(mark)
        return function(java)

    with process.lock:
        return process.run(act, is_long=is_long)


def _take_own_turn(process: JavaProcess, function: Callable[[Any], T]) -> T:
    """Construct a game; that builds a house, for which random numbers are drawn and objects counted."""
    return _take_turn(process, _Mark(), function)


def _act(java: Any, entry: Any, action: str, *, lists_actions: bool) -> Reply:
    answer, score, is_over = entry.step(action), round(100 * entry.getScore()), entry.getCompleted()
    look, inventory = entry.freeActionLook(), entry.freeActionInventory()
    legal = read(java, entry.getValidActionObjectCombinations()) if lists_actions else ()
    return Reply(tidy(answer), tidy(look), tidy(inventory), score, is_over or score < 0, tuple(sorted(set(legal))))


def _find_gold(kind: str, variation: int, simplifications: str, lists_actions: bool, java: Any) -> tuple[str, ...]:
    """Return the gold path; where nothing is drawn for lists, as far as the end, less what is not understood."""
    entry = java.jvm.scienceworld.runtime.pythonapi.PythonInterface()
    entry.load(kind, variation, simplifications, True)
    path: tuple[str, ...] = read(java, entry.getGoldActionSequence())
    if not lists_actions:  # for a list, random numbers are drawn on every turn, also on those not understood
        entry.load(kind, variation, simplifications, False)
        path = _understood(java, entry, path)
    java.detach(entry)
    return path


def _understood(java: Any, entry: Any, path: tuple[str, ...]) -> tuple[str, ...]:
    """Play a path in a game that has just started; return what is understood of it, as far as the end."""
    _act(java, entry, "look around", lists_actions=False)
    kept = []
    for action in path:
        reply = _act(java, entry, action, lists_actions=False)
        if reply.observation != UNKNOWN_ACTION:
            kept.append(action)
        if reply.is_over:
            break
    return tuple(kept)


def tidy(text: str) -> str:
    r"""Return a text without white space at the ends of its lines and of itself, indented by blanks.

    >>> tidy("You see: \n\ta bowl ")
    'You see:\n  a bowl'
    """
    return "\n".join(line.rstrip() for line in text.strip().expandtabs(2).splitlines())
