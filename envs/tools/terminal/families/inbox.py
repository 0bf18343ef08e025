"""Files: sort those of a folder by their ending, under clean names."""

from __future__ import annotations

from turngym.envs.tools.terminal.task import Draw, Task, Wanted, file, folders

_GOAL = """Move every file of inbox to sorted/ENDING/NAME. ENDING is what follows the last dot, in lower case. NAME \
is the old name with A-Z in lower case, each space replaced by _, and dashes at its start removed. Where NAME is \
taken, append -2, -3 and so on to what comes before the last dot; take the files in the byte order of their old \
names. The folder inbox stays, empty."""
_SOLUTION = """cd inbox
ls | while IFS= read -r old; do
  new=${old,,} new=${new// /_}
  while [[ $new == -* ]]; do new=${new#-}; done
  stem=${new%.*} end=${new##*.} number=1 name=$new
  mkdir -p "../sorted/$end"
  while [ -e "../sorted/$end/$name" ]; do number=$((number + 1)); name=$stem-$number.$end; done
  mv -- "$old" "../sorted/$end/$name"
done"""
_ENDINGS = ("txt", "md", "log", "csv", "jpg")


def inbox(draw: Draw) -> Task:
    """Draw a task of sorting files."""
    endings, names = draw.some(_ENDINGS, 3), set[str]()
    for word in draw.words(draw.scale(3, 4)):
        second, end = draw.text(1).strip(), draw.pick(endings)
        names |= {_odd(draw, f"{word} {second}", end) for _ in range(draw.number(1, 1 + draw.level))}
    files = {f"inbox/{name}": file(draw.text(3)) for name in sorted(names)}
    wanted: dict[str, Wanted] = {path: Wanted() for path in files}
    for name in sorted(names):
        clean = name.lower().replace(" ", "_").lstrip("-")
        stem, _, end = clean.rpartition(".")
        number, path = 1, f"sorted/{end}/{clean}"
        while path in wanted:
            number += 1
            path = f"sorted/{end}/{stem}-{number}.{end}"
        wanted[path] = Wanted(files[f"inbox/{name}"].data)
    return Task(_GOAL, folders(files), wanted, ("ls -l inbox", _SOLUTION))


def _odd(draw: Draw, stem: str, end: str) -> str:
    """Return one of the spellings of a name."""
    stem = draw.pick((stem, stem.upper(), stem.replace(" ", "_"), stem.title()))
    return f"{draw.pick(('', '', '-', '--') if draw.level > 1 else ('',))}{stem}.{draw.pick((end, end.upper()))}"
