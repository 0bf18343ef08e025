"""A generated package before anything is wrong with it: modules, names, and test cases with results."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from turngym.envs.tools.repo.parts import Values, chosen, drawn_case, drawn_values, parts, rendered
from turngym.envs.tools.repo.trial import RAISED, Result, Trial
from turngym.envs.tools.terminal.task import Draw

VENDOR = "vendor"
Sources = Mapping[str, str]
"""Module, such as ``"money"`` or ``"vendor.numkit"`` -> source."""
_DRAWN = 4
"""Cases drawn from one pattern; every other one is in the visible tests."""
_PACKAGES = ("orchard", "lantern", "harbour", "meadow", "copper", "juniper", "saffron", "quarry", "willow", "anchor")
_CALLED = re.compile(r"\.(\w+)\(")


class Case(NamedTuple):
    """A test case.

    Args:
        part: Part that it tests.
        text: Lines of Python; the last is the value.
        result: What comes of it in the package without faults.
        is_shown: Whether it is a visible test.
    """

    part: str
    text: str
    result: Result
    is_shown: bool


class Plan(NamedTuple):
    """What was drawn.

    Args:
        package: Name of the package.
        names: Its parts, each after those that it needs.
        values: Name -> choice.
        cases: Its test cases.
    """

    package: str
    names: tuple[str, ...]
    values: Values
    cases: tuple[Case, ...]

    def module(self, part: str) -> str:
        """Return the name of a part's module within the package."""
        return f"{VENDOR}.{self.values[part]}" if parts()[part].is_vendored else self.values[part]

    def sources(self, without: Collection[str] = (), vendor: Plan | None = None) -> dict[str, str]:
        """Return the package.

        Args:
            without: Features and changes of interfaces that it does not have.
            vendor: Plan of the vendored modules with all changes, if that is another one.
        """
        found = {}
        for name in self.names:
            part = parts()[name]
            plan, left_out = (vendor, ()) if part.is_vendored and vendor is not None else (self, without)
            features = {*_flags(part.source)}.difference(left_out)
            found[self.module(name)] = rendered(part, plan.values, features)
        return found

    @property
    def own(self) -> list[str]:
        """Parts that are not vendored modules."""
        return [name for name in self.names if not parts()[name].is_vendored]

    def hidden(self) -> list[Case]:
        """Return the cases that judge."""
        return [case for case in self.cases if not case.is_shown]

    def shown(self) -> list[Case]:
        """Return the cases of the visible tests."""
        return [case for case in self.cases if case.is_shown]


def _flags(source: str) -> list[str]:
    return re.findall(r"^ *#\+ (\w+)$", source, re.MULTILINE)


def uses(part: str, mark: str) -> bool:
    """Return whether a part's source has an alternative or a name, such as ``"#+ double"`` or ``"$fit"``."""
    return re.search(rf"{re.escape(mark)}\b", parts()[part].source) is not None


def drawn_package(draw: Draw, first: Sequence[str], count: int) -> Plan:
    """Draw a package, without test cases.

    Args:
        draw: Source of choices.
        first: Parts that it has in any case.
        count: Parts that are drawn, besides those that they need.
    """
    own = [name for name, part in parts().items() if not part.is_vendored]
    picked = list(dict.fromkeys([*first, *draw.some(own, len(own))]))[:count]
    names = tuple(chosen(picked))
    package = f"{draw.pick(_PACKAGES)}{draw.pick(('', '_core', '_tools', '_lib'))}"
    return Plan(package, names, drawn_values(draw, names), ())


def with_cases(plan: Plan, draw: Draw) -> Plan:
    """Return a package with test cases and their results."""
    texts = [(name, *each) for name in plan.names for each in _drawn_cases(name, plan.values, draw)]
    results = Trial(plan.sources()).run([text for _, text, _ in texts])
    found = [Case(part, text, result, is_shown) for (part, text, is_shown), result in zip(texts, results, strict=True)]
    return plan._replace(cases=tuple(found))


def _drawn_cases(name: str, values: Values, draw: Draw) -> list[tuple[str, bool]]:
    """Return cases of a part, and whether they are shown; patterns that give the same again give fewer."""
    found: dict[str, bool] = {}
    for pattern in parts()[name].cases:
        texts = dict.fromkeys(drawn_case(pattern, values, draw) for _ in range(_DRAWN))
        fresh = [text for text in texts if text not in found]
        found |= {text: place % 2 == 0 for place, text in enumerate(fresh)}
    return list(found.items())


def failing(cases: Sequence[Case], sources: Sources) -> list[tuple[int, Result]]:
    """Return the places of the cases that fail with these sources, and what comes of them."""
    results = Trial(sources).run([case.text for case in cases])
    return [
        (place, result)
        for place, (case, result) in enumerate(zip(cases, results, strict=True))
        if result != case.result
    ]


def test_file(plan: Plan, part: str, cases: Sequence[Case]) -> str:
    """Return a file of ``unittest`` with the cases of a part."""
    module = plan.values[part]
    bodies = [_body(case) for case in cases]
    used = sorted({plan.values[each] for each in plan.own if any(f"{plan.values[each]}." in body for body in bodies)})
    lines = [f'"""Tests of {module}."""', "", "import unittest", ""]
    lines += [f"from {plan.package} import {', '.join(used)}", "", "", f"class Test{module.title().replace('_', '')}("]
    lines[-1] += "unittest.TestCase):"
    counts: dict[str, int] = {}
    for case, body in zip(cases, bodies, strict=True):
        called = _CALLED.search(case.text.splitlines()[-1])
        name = called[1] if called else module
        counts[name] = counts.get(name, 0) + 1
        lines += [f"    def test_{name.strip('_').lower()}_{counts[name]}(self):", body, ""]
    return "\n".join([*lines[:-1], "", "", 'if __name__ == "__main__":', "    unittest.main()", ""])


def _body(case: Case) -> str:
    *before, last = case.text.splitlines()
    kind, value = case.result
    if kind == RAISED:
        lines = [f"with self.assertRaises({value}):", *(f"    {line}" for line in (*before, last))]
    else:
        is_tuple = isinstance(ast.parse(last, mode="eval").body, ast.Tuple)
        lines = [*before, f"self.assertEqual({f'({last})' if is_tuple else last}, {value!r})"]
    return "\n".join(f"        {line}" for line in lines)
