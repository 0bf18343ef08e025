"""Permissions of a shared tree."""

from __future__ import annotations

from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.terminal.task import Draw, Task, Wanted, file, folders

_GOAL = """Set the permissions below the folder share: folders {folder:o}; files in or below a folder named private \
{private:o}; other files whose first two bytes are #! {script:o}; all other files {other:o}. Nothing else changes, \
and links are not followed."""
_SOLUTION = """find share -type d -exec chmod {folder:o} {{}} +
find share -type f -print0 | while IFS= read -r -d '' path; do
  case $path in
    */private/*) mode={private:o} ;;
    *) two=; IFS= read -r -d '' -n 2 two < "$path"
       if [ "$two" = '#!' ]; then mode={script:o}; else mode={other:o}; fi ;;
  esac
  chmod "$mode" "$path"
done"""
_OLD = (0o600, 0o644, 0o664, 0o666, 0o755, 0o777)


def modes(draw: Draw) -> Task:
    """Draw a task of permissions."""
    wishes = {
        "folder": draw.pick((0o750, 0o2750, 0o755, 0o2770)),
        "private": draw.pick((0o600, 0o400)),
        "script": draw.pick((0o740, 0o750, 0o700)),
        "other": draw.pick((0o640, 0o644, 0o440)),
    }
    places = ["share", *(f"share/{word}" for word in draw.words(1 + draw.level))]
    places += [f"{draw.pick(places)}/private", f"{places[-1]}/more"]
    files = {}
    for word in draw.words(draw.scale(6, 8)):
        start = draw.pick(("", "#!/bin/sh\n", "# !", "\n#!"))
        name = f"{word}{draw.pick(('.sh', '.txt', '', ' 2'))}"
        files[f"{draw.pick(places)}/{name}"] = file(start + draw.text(), draw.pick(_OLD))
    tree = {**folders(files, *places)}
    for path in places:
        tree[path] = Entry("folder", draw.pick((0o755, 0o700, 0o777)))
    wanted = {}
    for path, entry in tree.items():
        kind = "folder" if entry.kind == "folder" else "other"
        if kind == "other" and "/private/" in path:
            kind = "private"
        elif kind == "other" and entry.data.startswith(b"#!"):
            kind = "script"
        wanted[path] = Wanted(entry.data, wishes[kind], entry.kind == "folder")
    if draw.level > 1:
        tree["keep.conf"] = file("#!keep\n", 0o604)
        tree[f"{places[-1]}/link"] = Entry("link", 0o777, b"../" * places[-1].count("/") + b"../keep.conf")
        wanted["keep.conf"] = Wanted(b"#!keep\n", 0o604)
    return Task(_GOAL.format(**wishes), tree, wanted, ("ls -lR share", _SOLUTION.format(**wishes)))
