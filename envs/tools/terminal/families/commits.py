"""Git: find a commit, restore a branch, undo a commit, merge a branch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from turngym.envs.tools.terminal.repository import CONFIG, Repository
from turngym.envs.tools.terminal.task import Draw, Probe, Task, Wanted, file, folders, text

_KEPT = (".git/objects", ".git/refs", ".git/packed-refs", ".git/HEAD")
_MAIN = "refs/heads/main"
"""A tag of the same name would come first without ``refs/heads``."""
_VERBS = ("Tune", "Correct", "Extend", "Review", "Shorten", "Rename")
Files = dict[str, bytes]


class _History(NamedTuple):
    """A branch main of one commit after another.

    Args:
        repository: The repository.
        names: Names of its files.
        states: Files after each commit.
        commits: Id of each commit.
        subjects: Subject of each commit.
    """

    repository: Repository
    names: list[str]
    states: list[Files]
    commits: list[str]
    subjects: list[str]


def commits(draw: Draw) -> Task:
    """Draw a task with a repository of git."""
    history = _drawn(draw)
    return draw.pick((_find, _restore, _undo, _merge))(draw, history)


def _drawn(draw: Draw) -> _History:
    names = [f"{word}.conf" for word in draw.words(3 + draw.level)]
    keys = draw.words(6)
    state = {name: "".join(f"{key}={draw.number(1, 9999)}\n" for key in keys).encode() for name in names}
    history = _History(Repository(), names, [], [], [])
    for place in range(draw.scale(4, 6)):
        if place:
            name, key = draw.pick(names), draw.pick(keys)
            state = _changed(state, name, key, draw.number(10_000, 99_999))
        subject = f"{draw.pick(_VERBS)} {draw.text(2).strip()}"
        parents = history.commits[-1:]
        history.commits.append(history.repository.commit(state, subject, *parents))
        history.states.append(state)
        history.subjects.append(subject)
    history.repository.refs["main"] = history.commits[-1]
    return history


def _changed(state: Files, name: str, key: str, value: int) -> Files:
    lines = [f"{key}={value}" if line.startswith(f"{key}=") else line for line in state[name].decode().splitlines()]
    return {**state, name: ("\n".join(lines) + "\n").encode()}


def _task(history: _History, goal: str, wanted: Mapping[str, Wanted], solution: str, *probes: Probe) -> Task:
    files = folders(history.repository.files("main", history.states[-1]), ".git/refs/tags")
    look = "git log --oneline --stat | head -n 40"
    return Task(f"This folder is a repository of git. {goal}", files, wanted, (look, solution), (".git",), probes)


def _probe(command: str, *lines: str) -> Probe:
    """Return a probe of the objects and branches, with a separate configuration."""
    config = folders({".git/config": file(CONFIG)})
    return Probe(_KEPT, config, f"export GIT_NO_REPLACE_OBJECTS=1; {command}", "".join(f"{line}\n" for line in lines))


def _find(draw: Draw, history: _History) -> Task:
    place = draw.number(1, len(history.commits) - 1)
    before, after = history.states[place - 1], history.states[place]
    name = next(each for each in history.names if before[each] != after[each])
    line = next(line for line in after[name].decode().splitlines() if line not in before[name].decode().splitlines())
    goal = f"Write the full id of the commit that brought the line {line} into {name} to answer.txt, and nothing else."
    solution = f"git log --reverse --format=%H -S'{line}' -- {name} | head -n 1 > answer.txt"
    return _task(history, goal, {"answer.txt": text([history.commits[place]])}, solution)


def _restore(draw: Draw, history: _History) -> Task:
    branch, name = draw.words(2)
    start = draw.number(0, len(history.commits) - 1)
    lost, subject = history.commits[start], ""
    for number in range(draw.number(1, 1 + draw.level)):
        subject = f"Draft {draw.text(2).strip()}"
        lost = history.repository.commit(
            {**history.states[start], f"{name}{number}.txt": draw.text().encode()}, subject, lost
        )
    goal = (
        f"The branch {branch} was deleted. Make it again, at its last commit, whose subject is `{subject}`; "
        "main stays checked out as it is."
    )
    solution = f"git branch {branch} \"$(git reflog --format='%H %s' | grep -F '{subject}' | cut -d ' ' -f 1)\""
    head = f"refs/heads/{branch}"
    probe = _probe(
        f"git rev-parse {head} {_MAIN}; git cat-file -t {head}; cat .git/HEAD",
        *(lost, history.commits[-1], "commit", f"ref: {_MAIN}"),
    )
    return _task(history, goal, {}, solution, probe)


def _undo(draw: Draw, history: _History) -> Task:
    """Undo a commit whose line no later commit has changed."""
    last, places = history.states[-1], list(range(1, len(history.commits)))
    fit = [place for place in places if _without(history, place) is not None]
    place = draw.pick(fit)
    clean = _without(history, place) or last
    tree = history.repository.tree_of(clean)
    goal = (
        f"Undo the changes of the commit with the subject `{history.subjects[place]}` by one new commit on "
        "top of main. The changes of the other commits stay, and so do those commits."
    )
    name = next(each for each in history.names if history.states[place - 1][each] != history.states[place][each])
    solution = (
        f"commit=$(git log --format='%H %s' | grep -F '{history.subjects[place]}' | cut -d ' ' -f 1)\n"
        f'git diff -U0 "$commit" "$commit~1" | git apply --unidiff-zero - && git commit -qam \'Undo a change\''
    )
    probe = _probe(
        f"git rev-parse {_MAIN}^ {_MAIN}^{{tree}}; cat .git/HEAD", history.commits[-1], tree, f"ref: {_MAIN}"
    )
    wanted = {name: Wanted(clean[name])}
    return _task(history, goal, wanted, solution, probe)


def _without(history: _History, place: int) -> Files | None:
    """Return the last files without the change of a commit, None if its line was changed again, or as before."""
    before, after = history.states[place - 1], history.states[place]
    name = next((each for each in history.names if before[each] != after[each]), "")
    old, new = (set(state[name].splitlines()) for state in (before, after))
    (was,), (now,) = old - new, new - old
    last = history.states[-1]
    if now not in last[name].splitlines():
        return None
    return {**last, name: last[name].replace(now + b"\n", was + b"\n")}


def _merge(draw: Draw, history: _History) -> Task:
    """Merge a branch that has changed a line that main has changed too, which conflicts."""
    branch = draw.words(1)[0]
    base, last = history.states[0], history.states[-1]
    name = draw.pick(history.names)
    keys = [line.partition("=")[0] for line in base[name].decode().splitlines()]
    key = draw.pick(keys)
    ours, theirs = (_changed(state, name, key, draw.number(100_000, 999_999)) for state in (last, base))
    theirs["notes.txt"] = draw.text().encode()
    head = history.repository.commit(ours, f"Set {key}", history.commits[-1])
    other = history.repository.commit(theirs, f"Set {key} too", history.commits[0])
    history.repository.refs |= {"main": head, branch: other}
    history.states.append(ours)
    merged = {**ours, "notes.txt": theirs["notes.txt"]}
    value = next(line for line in theirs[name].splitlines() if line.startswith(f"{key}=".encode()))
    own = next(line for line in ours[name].splitlines() if line.startswith(f"{key}=".encode()))
    is_theirs = draw.number(0, 1)
    if is_theirs:
        merged[name] = ours[name].replace(own, value)
    tree = history.repository.tree_of(merged)
    side = branch if is_theirs else "main"
    goal = (
        f"Merge the branch {branch} into main by a merge commit. Both have changed {key} in {name}: take the value of "
        f"{side} there, and otherwise the values of main in that file."
    )
    solution = f"git merge -q --no-commit {branch} > /dev/null\ngit show main:{name} > {name}\n"
    if is_theirs:
        solution += f"sed -i \"s/^{key}=.*/$(git show {branch}:{name} | grep '^{key}=')/\" {name}\n"
    solution += f"git add {name} && git commit -qm 'Merge {branch}'"
    command = f"git rev-parse {_MAIN}^1 {_MAIN}^2 {_MAIN}^{{tree}}; cat .git/HEAD"
    probe = _probe(command, head, other, tree, f"ref: {_MAIN}")
    wanted = {name: Wanted(merged[name]), "notes.txt": Wanted(merged["notes.txt"])}
    return _task(history, goal, wanted, solution, probe)
