"""Progress labels without people: recipes from solved episodes by longest common subsequences.

Source: ProgRM, arXiv 2505.18121 (self-annotation). Everything here is a pure function of sequences of steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Steps = tuple[str, ...]


class Recipe(NamedTuple):
    """Key steps of a way to solve a task, and how many solved episodes went it."""

    steps: Steps
    support: int


def _table(first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
    """Return at ``[i][j]`` the length of the longest common subsequence of ``first[:i]`` and ``second[:j]``."""
    rows = [[0] * (len(second) + 1)]
    for step in first:
        above, row = rows[-1], [0]
        for j, other in enumerate(second):
            row.append(above[j] + 1 if step == other else max(above[j + 1], row[j]))
        rows.append(row)
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
    """Return after each step how many steps of the recipe have been done, in its order; never falls.

    >>> matched("axbxa", "ab")
    [1, 1, 2, 2, 2]
    """
    return [row[-1] for row in _table(steps, recipe)[1:]]


def recipes(solved: Iterable[Sequence[str]], most: int = 4, similarity: float = 0.5) -> list[Recipe]:
    """Return the recipes of a task, each of a different route, the best supported first.

    Solved episodes are taken shortest first. Each joins the recipe of which it has the largest share, which then
    becomes their longest common subsequence, or begins one of its own. A recipe keeps at least the share
    ``similarity`` of the steps of the episode that began it, so that joining never empties it.

    Args:
        solved: The steps of solved episodes of one task; the order does not matter.
        most: Recipes to keep; those with the least support go first.
        similarity: Share of its first steps that a recipe must keep, in (0, 1].

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
    """Return the progress after each step: the largest share of a recipe that has been done.

    The label never falls. It ends at 1 for a solved episode. A failed one gets partial credit the same way and stays
    below 1, since its task was not solved whatever it did: at most ``n / (n + 1)`` for a recipe of n steps.

    Args:
        steps: The steps of the episode.
        known: Recipes of its task; without any, a solved episode alone can be labelled, at its end.
        is_solved: Whether it solved the task.

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
