"""A broken build: repair a Makefile."""

from __future__ import annotations

from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.terminal.task import Draw, Probe, Task, Wanted, file, folders

_MAKEFILE = """NAME = {name}
PARTS = {parts}
OBJECTS = $(PARTS:%=build/%.o)

all: dist/$(NAME).txt

build/%.o: src/%.in src/common.in tools/expand.sh
\tmkdir -p build
\tsh tools/expand.sh {flag} src/common.in $< > $@

dist/$(NAME).txt: $(OBJECTS)
\tmkdir -p dist
\tcat $^ > $@

clean:
\trm -rf build dist

.PHONY: all clean
"""
_EXPAND = """# expand.sh [-u] COMMON FILE: prints FILE after the line of COMMON, in upper case with -u
case $1 in -u) shift; cat "$1" "$2" | tr a-z A-Z ;; *) cat "$1" "$2" ;; esac
"""
_GOAL = """The Makefile is broken. Repair it, and change nothing else: `make` must build dist/{name}.txt, which is \
for each part in the order {parts} what `sh tools/expand.sh {flag}src/common.in src/PART.in` prints. After a change \
of any file in src or tools, `make` must rebuild what depends on it. dist and build may stay."""
_FAULTS = {
    "tab": ("\tcat $^ > $@", "        cat $^ > $@"),
    "missing part": ("{last}\nOBJECTS", "\nOBJECTS"),
    "stale common": ("src/%.in src/common.in tools", "src/%.in tools"),
    "stale tool": (" tools/expand.sh\n\tmkdir", "\n\tmkdir"),
    "first only": ("cat $^ >", "cat $< >"),
    "cycle": ("dist/$(NAME).txt: $(OBJECTS)", "dist/$(NAME).txt: $(OBJECTS) all"),
    "typo": ("$(PARTS:%=build/%.o)", "$(PARTS:%=build/%.obj)"),
    "no folder": ("\tmkdir -p dist\n", ""),
    "flag": ("expand.sh {flag} ", "expand.sh {other} "),
    "variable": ("dist/$(NAME).txt\n\n", "dist/$(TITLE).txt\n\n"),
}
"""Fault -> text of the Makefile, and what replaces it."""


def build(draw: Draw) -> Task:
    """Draw a task of repairing a Makefile."""
    name, *parts = draw.words(draw.number(2, 3) + draw.level)
    flag = draw.pick(("-u", ""))
    right = _MAKEFILE.format(name=name, parts=" ".join(parts), flag=flag)
    wrong = right
    for fault in draw.some(sorted(_FAULTS), draw.level):
        old, new = (
            each.replace("{last}", f" {parts[-1]}").replace("{flag}", flag).replace("{other}", "" if flag else "-u")
            for each in _FAULTS[fault]
        )
        wrong = wrong.replace(old, new)
    shown, hidden = (_sources(draw, parts) for _ in range(2))
    tools = {"tools/expand.sh": file(_EXPAND)}
    files = folders({"Makefile": file(wrong), **shown, **tools})
    later = _sources(draw, parts)["src/common.in"].data.decode()
    other = _EXPAND.replace('cat "$1" "$2"', 'cat "$2" "$1"')
    command = (
        f"make > /dev/null 2>&1; cat dist/{name}.txt; touch -d '2 hours ago' build/* dist/* src/* tools/*; "
        f"touch -d '1 hour ago' build/*; touch -d '30 minutes ago' dist/*; "
        f"printf %s '{later}' > src/common.in; make > /dev/null 2>&1; cat dist/{name}.txt; "
        f"touch -d '2 hours ago' src/* tools/*; touch -d '1 hour ago' build/*; touch -d '30 minutes ago' dist/*; "
        f"cat > tools/expand.sh << 'END'\n{other}END\nmake > /dev/null 2>&1; cat dist/{name}.txt"
    )
    changed = {**hidden, "src/common.in": file(later)}
    output = "".join(
        _built(sources, parts, flag, is_other)
        for sources, is_other in ((hidden, False), (changed, False), (changed, True))
    )
    probe = Probe(("Makefile",), folders({**hidden, **tools}), command, output)
    goal = _GOAL.format(name=name, parts=", ".join(parts), flag=f"{flag} " if flag else "")
    solution = f"cat > Makefile << 'END'\n{right}END\nmake -B > /dev/null"
    wanted = {f"dist/{name}.txt": Wanted(_built(shown, parts, flag, False).encode())}
    look = "cat Makefile; make"
    return Task(goal, files, wanted, (look, solution), ("Makefile", "build", "dist"), (probe,))


def _sources(draw: Draw, parts: list[str]) -> dict[str, Entry]:
    return {f"src/{name}.in": file(draw.text(draw.number(1, 3))) for name in ("common", *parts)}


def _built(sources: dict[str, Entry], parts: list[str], flag: str, is_other: bool) -> str:
    """Return what the build makes of sources."""
    found = ""
    for name in parts:
        both = [sources[f"src/{each}.in"].data.decode() for each in ("common", name)]
        found += "".join(reversed(both) if is_other else both)
    return found.upper() if flag else found
