"""When the runs of an experiment are compared, and one verdict for each claim from its comparisons.

Runs are compared after a quarter, after half and after all of them, since a large difference shows after few seeds. The
chance of a wrong verdict, 5 %, is split over the looks, so that it stays 5 % in all however they depend on each other
(Bonferroni); the most is left for the last, which has the most seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from turngym.benchmarks.statistics.power import Interval
from turngym.benchmarks.statistics.several_tests import holm, p_value

LEVEL = 0.05
SHARES = (0.25, 0.5, 1.0)
LEVELS = (0.01, 0.015, 0.025)
FEWEST_SEEDS = 80
"""Experiments with fewer seeds have one look: a quarter of them would decide nothing."""
NOTHING: Mapping[tuple[str, str], str] = MappingProxyType({})
HOLDS, FAILS, OPEN, PARTLY, UNTESTED = "holds", "does not hold", "undecided", "holds in part", "not tested"
RULE = """A claim is tested by its primary comparisons at the levels where the paper claims it. Of each, Student's t
test of the paired differences asks whether their mean is above 0 (*holds*) and whether it is below the effect that
matters (*does not hold*; *worse* if it is below 0 too), at 5 % after Holm's correction over the tests of the claim; an
experiment that is looked at three times, after a quarter, a half and all of its seeds, spends 1, 1.5 and 2.5 % of them,
and a test that is decided at a look has no more seeds. The claim *holds* if all its tests hold, *holds in
part* if some do, *does not hold* if none holds and most do not hold, and is *undecided* otherwise."""


class Look(NamedTuple):
    """One comparison of the runs so far."""

    seeds: int
    level: float


def looks(seeds: int) -> list[Look]:
    """Return the looks of an experiment.

    Args:
        seeds: How many seeds each arm has at most.

    >>> looks(200)
    [Look(seeds=50, level=0.01), Look(seeds=100, level=0.015), Look(seeds=200, level=0.025)]
    >>> looks(20)
    [Look(seeds=20, level=0.05)]
    """
    if seeds < FEWEST_SEEDS:
        return [Look(seeds, LEVEL)]
    return [Look(math.ceil(share * seeds), level) for share, level in zip(SHARES, LEVELS, strict=True)]


def corrected(rows: Sequence[Mapping[str, Any]], effects: Sequence[float], level: float = LEVEL) -> list[str]:
    """Return the verdict on each comparison of a claim after Holm's correction over all of them.

    Args:
        rows: The comparisons.
        effects: The smallest difference that matters in each.
        level: Chance of a wrong verdict among them.
    """
    found = [Interval(**row["difference"]) for row in rows]
    counts = [int(row["seeds"]) for row in rows]
    above = holm([p_value(each, count) for each, count in zip(found, counts, strict=True)])
    below = holm([p_value(*each) for each in zip(found, counts, effects, strict=True)])
    return [
        _said(each.mean, effect, high < level, low < level)
        for each, effect, high, low in zip(found, effects, above, below, strict=True)
    ]


def _said(mean: float, effect: float, differs_from_0: bool, differs_from_effect: bool) -> str:
    if differs_from_0 and mean > 0:
        return HOLDS
    if differs_from_0:
        return f"{FAILS}, worse"
    return FAILS if differs_from_effect and mean < effect else OPEN


def claim_verdict(said: Sequence[str]) -> str:
    """Return the verdict on a claim from those on its comparisons.

    >>> claim_verdict(["holds", "undecided"]), claim_verdict(["does not hold, worse", "does not hold", "undecided"])
    ('holds in part', 'does not hold')
    >>> claim_verdict(["does not hold", "undecided"]), claim_verdict([])
    ('undecided', 'not tested')
    """
    if not said:
        return UNTESTED
    held = said.count(HOLDS)
    if held:
        return HOLDS if held == len(said) else PARTLY
    return FAILS if 2 * sum(each.startswith(FAILS) for each in said) > len(said) else OPEN


def decide(
    rows: Sequence[Mapping[str, Any]],
    planned: Sequence[Mapping[str, Any]],
    untested: str,
    level: float = LEVEL,
    settled: Mapping[tuple[str, str], str] = NOTHING,
) -> dict[str, Any]:
    """Return the verdict on a claim, with that on each of its tests.

    Args:
        rows: The comparisons of the experiment.
        planned: What was planned for those at claimed levels: effect and power.
        untested: The verdict on a comparison whose arm never acted, which is no test.
        level: Chance of a wrong verdict among the tests.
        settled: Contrast and level -> the verdict of an earlier look, which stays.
    """
    plans = {(each["contrast"], each["level"]): each for each in planned}
    asked = [row for row in rows if row["claimed"] and row["primary"]]
    tests = [row for row in asked if row["verdict"] != untested]
    mine = [plans[row["contrast"], row["level"]] for row in tests]
    fresh = corrected(tests, [each["effect"] for each in mine], level) if tests else []
    said = [settled.get((row["contrast"], row["level"]), each) for row, each in zip(tests, fresh, strict=True)]
    return {
        "verdict": claim_verdict(said),
        "idle": len(asked) - len(tests),
        "tests": [
            {
                "contrast": row["contrast"],
                "level": row["level"],
                "said": each,
                "power": plan["power"],
                "seeds": row["seeds"],
                **row["difference"],
            }
            for row, each, plan in zip(tests, said, mine, strict=True)
        ],
    }
