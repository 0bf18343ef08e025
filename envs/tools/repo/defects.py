"""Kinds of tasks: what is wrong with a package, what it was before, and what is asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from turngym.envs.tools.code_repair.mutations import Change, apply, changes
from turngym.envs.tools.repo.parts import named, parts
from turngym.envs.tools.repo.plan import VENDOR, Case, Plan, Sources, drawn_package, failing, uses, with_cases
from turngym.envs.tools.repo.trial import ENDLESS, RAISED, Result
from turngym.envs.tools.terminal.task import Draw
from turngym.errors import BrokenCode
from turngym.seeding import stream

_TRIES = 60
_MOST_BROKEN = 0.6
"""Share of the cases that a fault may break."""


Features = tuple[tuple[str, str], ...]


class Step(NamedTuple):
    """A commit after those that build up the package.

    Args:
        subject: Its subject.
        sources: The package then.
        parents: Its parents, as places in the list of commits before it.
    """

    subject: str
    sources: Sources
    parents: tuple[int, ...] = (-1,)


class Defect(NamedTuple):
    """A package with something wrong.

    Args:
        plan: The package without it.
        base: Sources of the commits that build it up.
        start: Sources at the start of the episode.
        request: What is asked for.
        keeps: Whether visible tests fail at the start; else they are left out.
        steps: The last commits.
        branch: Name of a branch that the one but last commit belongs to.
        notes: Path -> text of more files in the last commit.
    """

    plan: Plan
    base: Sources
    start: Sources
    request: str
    keeps: bool
    steps: tuple[Step, ...] = ()
    branch: str = ""
    notes: Mapping[str, str] = {}


class Sketch(NamedTuple):
    """What identifies an instance, drawn without running anything.

    Args:
        kind: Kind of what is wrong.
        plan: The package, without test cases.
        features: Features that the task is about, as part and name.
        seed: Seed of test cases and of what is wrong.
    """

    kind: str
    plan: Plan
    features: Features
    seed: int


def drawn_sketch(draw: Draw, kind: str) -> Sketch:
    """Draw a package for a task of a kind."""
    known = [(name, feature) for name, part in parts().items() for feature in part.features]
    features = tuple(draw.some(known, {"feature": 1, "merge": 2}.get(kind, 0)))
    vendoring = [name for name, part in parts().items() if any(parts()[need].is_vendored for need in part.needs)]
    first = [draw.pick(vendoring)] if kind == "dependency" else [name for name, _ in features]
    return Sketch(kind, drawn_package(draw, first, 1 + 2 * draw.level), features, draw.number(0, 2**40))


def is_fit(plan: Plan, sources: Sources, most: float = _MOST_BROKEN) -> bool:
    """Return whether hidden and visible cases fail with these sources, but not too many, and none runs without end."""
    found = failing(plan.cases, sources)
    if len(found) > most * len(plan.cases) or any(kind == ENDLESS for _, (kind, _) in found):
        return False
    return len({plan.cases[place].is_shown for place, _ in found}) == 2


def fault(draw: Draw, plan: Plan, features: Features) -> Defect | None:
    """Plant one fault, or several in different modules."""
    whole, count = plan.sources(), draw.number(max(1, draw.level - 1), draw.level)
    start, modules = dict(whole), list[str]()
    for part in draw.some(plan.own, len(plan.own)):
        if len(modules) == count:
            break
        module = plan.module(part)
        changed = _mutated(draw, plan, whole, module)
        if changed is not None:
            start[module] = changed
            modules.append(module)
    if len(modules) < count:
        return None
    name = plan.package
    several = "There may be several faults, and each may be in another module than the one that shows it."
    texts = {
        1: f"Tests of {name} fail. The fault is in {name}/{modules[0]}.py.",
        2: f"Tests of {name} fail. {several}",
        3: f"{name} gives wrong results that its tests do not show. {several}",
    }
    return Defect(plan, start, start, f"{texts[draw.level]} Repair the package.", draw.level < 3)


def _mutated(draw: Draw, plan: Plan, whole: Sources, module: str) -> str | None:
    """Return a module with a fault that cases show."""
    source = whole[module]
    places = [span for node in ast.walk(ast.parse(source)) for span in _inner(node, source)]
    found = [each for each in changes(source) if any(low <= each.start and each.end <= high for low, high in places)]
    for change in draw.some(found, 12):
        text = apply(source, (change,))
        if is_fit(plan, {**whole, module: text}):
            return text
    return None


def _inner(node: ast.AST, source: str) -> Iterator[tuple[int, int]]:
    """Yield where the body of a function is."""
    if isinstance(node, ast.FunctionDef):
        yield _span(source, node.body[0], node.body[-1])


def _span(source: str, first: ast.stmt, last: ast.stmt) -> tuple[int, int]:
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[: stmt - 1])) for stmt in (first.lineno, last.end_lineno or 0)]
    return starts[0] + first.col_offset, starts[1] + (last.end_col_offset or 0)


def removed(draw: Draw, plan: Plan, features: Features) -> Defect | None:
    """Remove the bodies of functions, up to their docstrings."""
    start, names = dict(plan.sources()), list[str]()
    count = 2 if draw.level == 3 else 1
    for part in draw.some(plan.own, len(plan.own)):
        module = plan.module(part)
        tree = ast.parse(start[module])
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and len(node.body) > 1]
        functions = [node for node in functions if ast.get_docstring(node)]
        for node in draw.some(functions, 1):
            low, high = _span(start[module], node.body[1], node.body[-1])
            text = apply(start[module], (Change("removed", low, high, "raise NotImplementedError"),))
            if len(names) < count and is_fit(plan, {**start, module: text}):
                start[module] = text
                names.append(f"`{node.name}` in {plan.package}/{module}.py")
    if len(names) < count:
        return None
    request = (
        f"Code of {plan.package} was lost: {' and '.join(names)}. Write it again, as docstrings and callers want it."
    )
    return Defect(plan, start, start, request, draw.level < 3)


def feature(draw: Draw, plan: Plan, features: Features) -> Defect | None:
    """Leave out a feature, which an issue asks for."""
    [(part, name)] = features
    start = plan.sources([name])
    if not is_fit(plan, start):
        return None
    found = parts()[part].features[name]
    request = named(f"{found.subject} ({plan.package}/{plan.module(part)}.py)\n\n{found.request}", plan.values)
    return Defect(plan, start, start, f"Issue: {request}", False)


def merge(draw: Draw, plan: Plan, features: Features) -> Defect | None:
    """Lose a change by a merge: one side's version of it was not taken."""
    (part, lost), (other, kept) = features
    base, ours, theirs, start = (plan.sources(each) for each in ([lost, kept], [kept], [lost], [lost]))
    if not is_fit(plan, start) or ours == base:
        return None
    branch, subjects = draw.words(1)[0], [parts()[part].features[lost].subject, parts()[other].features[kept].subject]
    own, its = (named(subject, plan.values) for subject in subjects)
    steps = (Step(own, ours), Step(its, theirs, (-2,)), Step(f"Merge branch '{branch}'", start, (-2, -1)))
    texts = {
        1: f"The merge of the branch {branch} lost the change of the commit `{own}`.",
        2: f"The merge of the branch {branch} lost a change of main, and tests fail.",
        3: f"The merge of the branch {branch} lost a change of main, with its tests.",
    }
    request = f"{texts[draw.level]} Bring it back, and keep what the branch has brought."
    return Defect(plan, base, start, request, draw.level < 3, steps, branch)


def dependency(draw: Draw, plan: Plan, features: Features) -> Defect | None:
    """Update a vendored module whose interface has changed."""
    vendored = [name for name in plan.names if parts()[name].is_vendored]
    part = parts()[draw.pick(vendored)]
    apis = [name for name in part.changes if any(uses(each, f"#+ {name}") for each in plan.own)]
    names = [key for key in part.draws if key != part.name and any(uses(each, f"${key}") for each in plan.own)]
    found = draw.some([*apis, *names], draw.number(1, draw.level))
    values, lines, left_out = dict(plan.values), list[str](), list[str]()
    for each in found:
        if each in apis:
            left_out.append(each)
            lines.append(named(part.changes[each], plan.values))
        else:
            values[each] = draw.pick([old for old in part.draws[each] if old != plan.values[each]])
            lines.append(f"`{values[each]}` is called `{plan.values[each]}` now.")
    old = plan._replace(values=values)
    base, start = old.sources(left_out), old.sources(left_out, vendor=plan)
    module = plan.module(part.name)
    if not found or not is_fit(plan, start, 1.0):
        return None
    notes = {f"{VENDOR}/CHANGES.md": f"# {plan.values[part.name]} 2.0\n\n" + "".join(f"- {line}\n" for line in lines)}
    request = (
        f"{plan.package}/{module.replace('.', '/')}.py was updated to 2.0, and {plan.package} does not work with it "
        f"yet. {plan.package}/{VENDOR}/CHANGES.md says what is new. Change the package, not {VENDOR}."
    )
    steps = (Step(f"Update {plan.values[part.name]} to 2.0", start),)
    return Defect(plan, base, start, request, True, steps, notes=notes)


KINDS: Mapping[str, Callable[[Draw, Plan, Features], Defect | None]] = {
    each.__name__: each for each in (dependency, fault, feature, merge, removed)
}


def drawn_defect(sketch: Sketch, level: int) -> Defect:
    """Return a package with something wrong, as a sketch says.

    Raises:
        BrokenCode: None is found.
    """
    draw = Draw(stream("repo defect", sketch.seed), level)
    for _ in range(_TRIES):
        found = KINDS[sketch.kind](draw, with_cases(sketch.plan, draw), sketch.features)
        if found is not None:
            return found
    raise BrokenCode(f"no task of the kind {sketch.kind} was found in {_TRIES} tries: its parts allow too few.")


def examples(cases: Sequence[Case], found: Sequence[tuple[int, Result]], most: int) -> str:
    """Return failing cases as text: at most so many, of different parts first."""
    order = sorted(
        found,
        key=lambda each: [cases[other].part for other, _ in found[: found.index(each)]].count(cases[each[0]].part),
    )
    lines = []
    for place, result in order[:most]:
        *before, last = cases[place].text.splitlines()
        lines += [f"    {line}" for line in before]
        lines.append(f"    {last}  # expected: {_told(cases[place].result)}; it is: {_told(result)}")
    return "\n".join(lines)


def _told(result: Result) -> str:
    kind, value = result
    return f"{value} raised" if kind == RAISED else repr(value)
