"""Files: remove those that have the content of another one."""

from __future__ import annotations

from turngym.envs.tools.terminal.task import Draw, Task, Wanted, file, folders, text

_GOAL = """Among the files below photos, of those with the same content keep only the one whose path is {side} in byte \
order, and delete the others. Write the deleted paths to {report} in byte order, one on a line, each beginning with \
photos/. Folders stay, even if empty."""
_SOLUTION = """find photos -type f -print0 | sort {option}z | xargs -0 sha256sum > /tmp/sums
awk '{{ path = substr($0, 67) }} seen[$1]++ {{ print path }}' /tmp/sums | sort > {report}
while IFS= read -r path; do rm -- "$path"; done < {report}"""


def duplicates(draw: Draw) -> Task:
    """Draw a task of removing duplicates."""
    places = [f"photos/{word}" for word in draw.words(3 * draw.level)]
    contents = [draw.text(draw.number(1, 4)) for _ in range(draw.scale(3, 5))]
    contents += [content.rstrip("\n") for content in draw.some(contents, draw.level)]  # nearly equal
    files = {}
    for content in contents:
        for word in draw.words(draw.number(1, 3)):
            name = f"{word}{draw.pick(('-', ' ', '_'))}{draw.number(1, 99)}.raw"
            files[f"{draw.pick(places)}/{name}"] = file(content)
    kept, removed = set[bytes](), []
    is_last, report = draw.number(0, 1), f"{draw.words(1)[0]}.txt"
    for path in sorted(files, reverse=bool(is_last)):
        if files[path].data in kept:
            removed.append(path)
        kept.add(files[path].data)
    wanted = {**{path: Wanted() for path in removed}, report: text(sorted(removed))}
    words = {"side": "last" if is_last else "first", "option": "-r" if is_last else "-", "report": report}
    look = "find photos -type f | sort"
    tree = folders(dict(sorted(files.items())), *places)
    return Task(_GOAL.format(**words), tree, wanted, (look, _SOLUTION.format(**words)))
