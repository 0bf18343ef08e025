"""Recipes: the common steps of solved episodes of a task, by longest common subsequences.

They measure the progress of an episode without human or model labels. Source: ProgRM, arXiv 2505.18121
(self-annotation). Except for file access, all functions are pure.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from turngym.errors import ConfigError
from turngym.storage.bounded import read_json
from turngym.storage.files import write_json

FORMAT = "turngym recipes 1"
MATCHES = ("action", "state")
SCOPES = ("task", "environment")
_SPACE = re.compile(r"\s+")
_ARGUMENT = re.compile(r"\[([^\[\]]*)\]|\"([^\"]*)\"|'([^']*)'")
_ELEMENT = re.compile(r"^[ \t]*\[(\w+)\][ \t]*(.+)$", re.MULTILINE)
_WORD = re.compile(r"\w+")


Steps = tuple[str, ...]


class Recipe(NamedTuple):
    """Key steps of a solution, and the number of solved episodes that followed it."""

    steps: Steps
    support: int


def next_row(above: Sequence[int], step: str, second: Sequence[str]) -> list[int]:
    """Return the next row of the table of common subsequences, for one more step of the first sequence.

    Entry ``[j]`` is the length of the longest common subsequence of the steps so far and ``second[:j]``; the initial
    row is all zeros.

    >>> next_row([0, 0, 0], "b", "ab")
    [0, 0, 1]
    """
    row = [0]
    for j, other in enumerate(second):
        row.append(above[j] + 1 if step == other else max(above[j + 1], row[j]))
    return row


def _table(first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
    """Return the lengths of the longest common subsequences of ``first[:i]`` and ``second[:j]``, at ``[i][j]``."""
    rows = [[0] * (len(second) + 1)]
    for step in first:
        rows.append(next_row(rows[-1], step, second))
    return rows


def lcs(first: Sequence[str], second: Sequence[str]) -> Steps:
    """Return a longest common subsequence, always the same one for the same arguments; O(nm).

    >>> "".join(lcs("abcbdab", "bdcaba"))
    'bcba'
    """
    table = _table(first, second)
    i, j = len(first), len(second)
    found = []
    while i and j:
        if first[i - 1] == second[j - 1]:
            found.append(first[i - 1])
            i, j = i - 1, j - 1
        elif table[i - 1][j] >= table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return tuple(reversed(found))


def matched(steps: Sequence[str], recipe: Sequence[str]) -> list[int]:
    """Return the number of completed recipe steps, in order, after each step; never falls.

    >>> matched("axbxa", "ab")
    [1, 1, 2, 2, 2]
    """
    return [row[-1] for row in _table(steps, recipe)[1:]]


def recipes(solved: Iterable[Sequence[str]], most: int = 4, similarity: float = 0.5) -> list[Recipe]:
    """Return the recipes of a task, one per route, the best supported first.

    Solved episodes are processed shortest first. Each joins the recipe of which it contains the largest share, which
    becomes their longest common subsequence, or starts a new one. A recipe keeps at least the share ``similarity`` of
    its initial steps, so joining never empties it.

    Args:
        solved: The steps of solved episodes of one task; the order does not matter.
        most: Maximum number of recipes; those with the least support are dropped.
        similarity: Share of its initial steps that a recipe must keep, in (0, 1].

    >>> [("".join(recipe.steps), recipe.support) for recipe in recipes(["abc", "abxc", "pq", "pyq"])]
    [('pq', 2), ('abc', 2)]
    """
    found: list[Steps] = []
    least: list[int] = []
    support: list[int] = []
    for steps in sorted((tuple(each) for each in solved), key=lambda each: (len(each), each)):
        if not steps:
            continue
        shares = [matched(steps, recipe)[-1] / len(recipe) for recipe in found]
        for index in sorted(range(len(found)), key=lambda k: (-shares[k], k)):
            joined = lcs(found[index], steps)
            if len(joined) >= least[index]:
                found[index] = joined
                support[index] += 1
                break
        else:
            found.append(steps)
            least.append(max(1, math.ceil(similarity * len(steps))))
            support.append(1)
    made = sorted(map(Recipe, found, support), key=lambda recipe: (-recipe.support, len(recipe.steps), recipe.steps))
    return made[:most]


def progress_labels(steps: Sequence[str], known: Sequence[Recipe], is_solved: bool) -> list[float]:
    """Return the progress after each step: the largest completed share of a recipe.

    The label never falls. It ends at 1 for a solved episode; a failed one stays below 1, at most ``n / (n + 1)`` for a
    recipe of n steps.

    Args:
        steps: The steps of the episode.
        known: Recipes of its task; without any, only the end of a solved episode can be labelled.
        is_solved: True if the episode solved the task.

    >>> progress_labels("axbx", [Recipe(("a", "b", "c"), 2)], is_solved=False)
    [0.3333333333333333, 0.3333333333333333, 0.6666666666666666, 0.6666666666666666]
    """
    labels = [0.0] * len(steps)
    for recipe, _ in known:
        size = len(recipe)
        most = 1.0 if is_solved else size / (size + 1)
        labels = [
            max(label, min(done / size, most)) for label, done in zip(labels, matched(steps, recipe), strict=True)
        ]
    if is_solved and labels:
        labels[-1] = 1.0
    return labels


def canonical_action(goal: str, observation: str, action: str) -> str:
    """Return an action without details that differ between equal steps of equal tasks.

    Case and spaces are ignored. The number of an element listed as ``[number] role name`` in the observation becomes
    that role and name, because numbers change with the seed. An argument in brackets or quotes becomes ``{goal}`` if
    the goal contains all its words.

    Args:
        goal: First observation of the episode.
        observation: Observation before the action.
        action: The action.

    >>> canonical_action("Buy a red mug", "[12] button Buy now", "click('12')")
    'click(button buy now)'
    >>> canonical_action("Buy a red mug", "", "search[Red  Mug]")
    'search[{goal}]'
    """
    elements: dict[str, str] = {number: name.strip().lower() for number, name in _ELEMENT.findall(observation)}
    known = set(_WORD.findall(goal.lower()))

    def read(found: re.Match[str]) -> str:
        argument = str(next(group for group in found.groups() if group is not None)).strip()
        if argument in elements:
            return elements[argument]
        words = _WORD.findall(argument.lower())
        whole = str(found[0])
        return f"{whole[0]}{{goal}}{whole[-1]}" if words and known.issuperset(words) else whole

    return _SPACE.sub(" ", _ARGUMENT.sub(read, action)).strip().lower()


def task_key(env_id: str, instance: str, first_observation: str) -> str:
    """Return a name for a task: the environment with the hash of the instance, or of the first observation.

    >>> task_key("turngym/Maze-v0", "12ab", "a maze")
    'turngym/Maze-v0 12ab'
    """
    seen = hashlib.blake2b(first_observation.encode("utf8", "backslashreplace"), digest_size=8).hexdigest()
    return f"{env_id} {instance or seen}"


@dataclass(frozen=True)
class RecipeBook:
    """The recipes of many tasks, with the kind of their steps.

    Args:
        match: ``"action"`` for canonical actions, ``"state"`` for the resulting states.
        scope: ``"task"`` for recipes of single tasks, ``"environment"`` for recipes of a whole environment.
        known: Name of a task, or id of an environment -> its recipes.
    """

    match: str = "action"
    scope: str = "task"
    known: Mapping[str, Sequence[Recipe]] = field(default_factory=dict)

    def of(self, env_id: str, instance: str, first_observation: str) -> Sequence[Recipe]:
        """Return the recipes of a task, by instance or first observation; empty if there are none.

        Args:
            env_id: The environment.
            instance: Hash of the instance, empty if it is unknown.
            first_observation: First observation.
        """
        keys = [task_key(env_id, instance, first_observation), task_key(env_id, "", first_observation)]
        return next(filter(None, map(self.known.get, [env_id] if self.scope == "environment" else keys)), ())

    def write(self, path: Path) -> None:
        """Write the recipes as JSON."""
        known = {key: [recipe._asdict() for recipe in found] for key, found in sorted(self.known.items())}
        write_json(path, {"format": FORMAT, "match": self.match, "scope": self.scope, "recipes": known})

    @classmethod
    def read(cls, path: Path) -> RecipeBook:
        """Read a file written by :meth:`write`.

        Raises:
            ConfigError: The file is missing or is not a recipe file.
        """
        try:
            content = read_json(path)
            if content["format"] != FORMAT or content["match"] not in MATCHES or content["scope"] not in SCOPES:
                raise ValueError(f"its format is {content['format']!r}, expected {FORMAT!r}")
            known = {key: tuple(map(_recipe, found)) for key, found in content["recipes"].items()}
            return cls(content["match"], content["scope"], known)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError(
                f"{path} holds no recipes ({type(error).__name__}: {error}): `turngym label-progress` writes them."
            ) from error


def _recipe(raw: Mapping[str, object]) -> Recipe:
    steps, support = raw["steps"], raw["support"]
    if not isinstance(steps, list) or not steps or not all(isinstance(step, str) for step in steps):
        raise ValueError(f"the steps {steps!r}")
    if isinstance(support, bool) or not isinstance(support, int):
        raise ValueError(f"the support {support!r}")
    return Recipe(tuple(steps), support)
