"""Files: sort those of a folder by their ending, under clean names."""

from __future__ import annotations

from turngym.envs.tools.terminal.task import Draw, Task, Wanted, file, folders

_GOAL = """Move every file of inbox to {target}/ENDING/NAME. ENDING is what follows the last dot, in lower case. NAME \
is the old name with A-Z in lower case, each space replaced by {mark}, and dashes at its start removed. Where NAME is \
taken, append -{first}, -{second} and so on to what comes before the last dot; take the files in the byte order of \
their old names. The folder inbox stays, empty."""
_SOLUTION = """cd inbox
ls | while IFS= read -r old; do
  new=${{old,,}} new=${{new// /{mark}}}
  while [[ $new == -* ]]; do new=${{new#-}}; done
  stem=${{new%.*}} end=${{new##*.}} number={first} name=$new
  mkdir -p "../{target}/$end"
  while [ -e "../{target}/$end/$name" ]; do name=$stem-$number.$end; number=$((number + 1)); done
  mv -- "$old" "../{target}/$end/$name"
done"""
_ENDINGS = ("txt", "md", "log", "csv", "jpg")


def inbox(draw: Draw) -> Task:
    """Draw a task of sorting files."""
    endings, names = draw.some(_ENDINGS, 3), set[str]()
    for word in draw.words(draw.scale(3, 4)):
        second, end = draw.text(1).strip(), draw.pick(endings)
        names |= {_odd(draw, f"{word} {second}", end) for _ in range(draw.number(1, 1 + draw.level))}
    files = {f"inbox/{name}": file(draw.text(3)) for name in sorted(names)}
    target, mark, first = draw.words(1)[0], draw.pick("_+.="), draw.number(1, 20)
    wanted: dict[str, Wanted] = {path: Wanted() for path in files}
    for name in sorted(names):
        clean = name.lower().replace(" ", mark).lstrip("-")
        stem, _, end = clean.rpartition(".")
        number, path = first - 1, f"{target}/{end}/{clean}"
        while path in wanted:
            number += 1
            path = f"{target}/{end}/{stem}-{number}.{end}"
        wanted[path] = Wanted(files[f"inbox/{name}"].data)
    words = {"target": target, "mark": mark, "first": first, "second": first + 1}
    return Task(_GOAL.format(**words), folders(files), wanted, ("ls -l inbox", _SOLUTION.format(**words)))


def _odd(draw: Draw, stem: str, end: str) -> str:
    """Return one of the spellings of a name."""
    stem = draw.pick((stem, stem.upper(), stem.replace(" ", "_"), stem.title()))
    return f"{draw.pick(('', '', '-', '--') if draw.level > 1 else ('',))}{stem}.{draw.pick((end, end.upper()))}"
