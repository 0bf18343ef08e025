"""A task: a repository with something wrong, and what judges it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.repo.defects import Defect, Sketch, drawn_defect, examples
from turngym.envs.tools.repo.parts import parts
from turngym.envs.tools.repo.plan import VENDOR, Case, Plan, Sources, failing, test_file
from turngym.envs.tools.terminal.repository import Repository
from turngym.envs.tools.terminal.task import folders

_GROUPS = 3
_EXAMPLES = 3


class RepoTask(NamedTuple):
    """A task.

    Args:
        kind: Kind of what is wrong.
        goal: What is asked for.
        package: Name of the package.
        files: Files of the repository at the start.
        original: Path -> source, where it is another one without the defect.
        vendored: Path -> source of the modules that are judged as they were.
        modules: Modules that cases use.
        cases: Hidden cases.
        expected: Their results.
        failing: Places of those that fail at the start.
    """

    kind: str
    goal: str
    package: str
    files: Mapping[str, Entry]
    original: Mapping[str, str]
    vendored: Mapping[str, str]
    modules: tuple[str, ...]
    cases: tuple[str, ...]
    expected: tuple[Any, ...]
    failing: tuple[int, ...]


def made_task(sketch: Sketch, level: int) -> RepoTask:
    """Return the task of a sketch."""
    defect, kind = drawn_defect(sketch, level), sketch.kind
    plan = defect.plan
    whole = plan.sources()
    hidden, shown = plan.hidden(), plan.shown()
    request = defect.request
    if not defect.keeps and kind != "merge":
        request += f" For example:\n{examples(shown, failing(shown, defect.start), _EXAMPLES)}"
    return RepoTask(
        kind,
        request,
        plan.package,
        _repository(defect),
        {_path(plan, name): whole[name] for name in whole if whole[name] != defect.start[name]},
        {path: text for path, text in _package(plan, whole).items() if path.startswith(f"{plan.package}/{VENDOR}/")},
        tuple(plan.values[part] for part in plan.own),
        tuple(case.text for case in hidden),
        tuple(case.result for case in hidden),
        tuple(place for place, _ in failing(hidden, defect.start)),
    )


def _path(plan: Plan, module: str) -> str:
    return f"{plan.package}/{module.replace('.', '/')}.py"


def _package(plan: Plan, sources: Sources) -> dict[str, str]:
    """Return path -> text of a package."""
    found = {f"{plan.package}/__init__.py": f'"""{plan.package}: {_about(plan)}."""\n'}
    if any(name.startswith(f"{VENDOR}.") for name in sources):
        found[f"{plan.package}/{VENDOR}/__init__.py"] = '"""Copies of modules of other projects."""\n'
    return {**found, **{_path(plan, name): text for name, text in sources.items()}}


def _about(plan: Plan) -> str:
    return ", ".join(plan.values[name] for name in plan.own)


def _repository(defect: Defect) -> dict[str, Entry]:
    """Return the working copy with its history."""
    plan, repository = defect.plan, Repository()
    commits, names, shown = list[str](), list(plan.names), plan.shown()
    base = shown if defect.keeps and not defect.steps else _passing(shown, defect.base)
    for group in range(_GROUPS):
        until = names[: max(1, len(names) * (group + 1) // _GROUPS)]
        tree = _tree(plan, defect.base, until, base)
        subject = f"Start {plan.package}" if group == 0 else f"Add {plan.values[until[-1]]}"
        commits.append(repository.commit(tree, subject, *commits[-1:]))
    for step in defect.steps:
        is_last = step is defect.steps[-1]
        cases = shown if defect.keeps and is_last else _passing(shown, step.sources)
        tree = _tree(plan, step.sources, names, cases, defect.notes if is_last else {})
        commits.append(repository.commit(tree, step.subject, *(commits[place] for place in step.parents)))
    repository.refs["main"] = commits[-1]
    if defect.branch:
        repository.refs[defect.branch] = commits[-2]
    return folders(repository.files("main", tree), ".git/refs/tags")


def _passing(cases: list[Case], sources: Sources) -> list[Case]:
    wrong = {place for place, _ in failing(cases, sources)}
    return [case for place, case in enumerate(cases) if place not in wrong]


def _tree(
    plan: Plan, sources: Sources, names: list[str], cases: list[Case], notes: Mapping[str, str] = {}
) -> dict[str, bytes]:
    """Return the files of a commit.

    Args:
        plan: The package.
        sources: Its sources.
        names: Parts that it has by then.
        cases: Its visible tests.
        notes: More files of the package.
    """
    there = {plan.module(name): sources[plan.module(name)] for name in names}
    texts = {"README.md": _readme(plan, names), ".gitignore": "__pycache__/\n", "tests/__init__.py": ""}
    for name in names:
        own = [case for case in cases if case.part == name]
        if own:
            texts[f"tests/test_{plan.values[name]}.py"] = test_file(plan, name, own)
    texts |= _package(plan, there) | {f"{plan.package}/{path}": text for path, text in notes.items()}
    return {path: text.encode() for path, text in texts.items()}


def _readme(plan: Plan, names: list[str]) -> str:
    lines = [f"# {plan.package}", "", "Tests: `python3 -m unittest`.", ""]
    lines += [f"- `{plan.module(name).replace('.', '/')}.py`: {parts()[name].about}" for name in names]
    return "\n".join(lines) + "\n"
