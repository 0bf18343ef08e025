"""Archives: restore what is undamaged, and pack files."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping

from turngym.envs.tools.terminal.task import Draw, Probe, Task, Wanted, file, folders, gzipped, text

_RESTORE = """backup.tar.gz holds parts, and each part is a .tar.gz with files. sums.txt has the SHA-256 of every \
file that was saved. Put the files whose sum agrees into the folder {folder}, under the paths that they have in the \
parts. Write the paths of all others that sums.txt names, damaged or missing, to {report} in byte order, one on a \
line."""
_RESTORE_SOLUTION = """mkdir -p /tmp/parts /tmp/all {folder}
tar -xzf backup.tar.gz -C /tmp/parts
for part in /tmp/parts/*.tar.gz; do tar -xzf "$part" -C /tmp/all; done
here=$PWD; cd /tmp/all
sha256sum -c "$here/sums.txt" 2> /dev/null | sed -n 's/: OK$//p' | sort > /tmp/good
xargs -r cp --parents -t "$here/{folder}" < /tmp/good
cut -c 67- "$here/sums.txt" | sort | comm -23 - /tmp/good > "$here/{report}"
cd "$here" || exit"""
_PACK = """Write site.tar.gz with all files below site that end in .{end} and no others, under their paths relative \
to site, such as {example}."""
_PACK_SOLUTION = "cd site && find . -name '*.{end}' -type f -print0 | sort -z | tar -czf ../site.tar.gz --null -T -"


def archives(draw: Draw) -> Task:
    """Draw a task of restoring or packing files."""
    names = [f"{draw.pick(('doc', 'img', 'src'))}/{word}" for word in draw.words(draw.scale(4, 6))]
    if draw.number(0, 1):
        return _pack(draw, names)
    folder, report = draw.words(2)
    files = {f"{name}.txt": draw.text().encode() for name in names}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in sorted(files.items()))
    bad = draw.some(sorted(files), draw.number(1, 2 * draw.level))
    saved = {path: data[:-2] + b"?\n" if path in bad else data for path, data in files.items()}
    if draw.level > 1:
        del saved[bad[0]]
    count = draw.number(2, 2 + draw.level)
    rows = sorted(saved.items())
    parts = {f"part{place + 1}.tar.gz": packed(dict(rows[place::count])) for place in range(count)}
    wanted = {f"{folder}/{path}": Wanted(data) for path, data in files.items() if path not in bad}
    wanted[f"{report}.txt"] = text(sorted(bad))
    start = {"backup.tar.gz": file(packed(parts)), "sums.txt": file(sums)}
    look = "tar -tzf backup.tar.gz; head -n 2 sums.txt"
    words = {"folder": folder, "report": f"{report}.txt"}
    return Task(_RESTORE.format(**words), start, wanted, (look, _RESTORE_SOLUTION.format(**words)))


def _pack(draw: Draw, names: list[str]) -> Task:
    ends = draw.some(("html", "css", "txt", "js"), 2)
    files = {f"site/{name}.{draw.pick(ends)}": file(draw.text()) for name in names}
    files |= {f"site/{names[0]}.{ends[0]}": file(draw.text()), f"site/{names[1]}.{ends[1]}": file(draw.text())}
    if draw.level > 1:
        files[f"site/{names[2]} old.{ends[0]}"] = file(draw.text())
        files[f"site/{names[3]}{ends[0]}"] = file(draw.text())  # no dot before the ending
    inside = {path.removeprefix("site/"): each.data for path, each in files.items() if path.endswith(f".{ends[0]}")}
    output = "".join(f"{hashlib.sha256(data).hexdigest()}  ./{path}\n" for path, data in sorted(inside.items()))
    command = (
        "mkdir /tmp/out && tar -xzf site.tar.gz -C /tmp/out && cd /tmp/out && "
        "find . -type f -print0 | sort -z | xargs -0 sha256sum"
    )
    probe = Probe(("site.tar.gz",), {}, command, output)
    goal = _PACK.format(end=ends[0], example=f"{names[0]}.{ends[0]}")
    look = "find site -type f | sort"
    return Task(
        goal,
        folders(dict(sorted(files.items()))),
        {},
        (look, _PACK_SOLUTION.format(end=ends[0])),
        ("site.tar.gz",),
        (probe,),
    )


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return files as a .tar.gz with the same bytes everywhere."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), 1_700_000_000
            archive.addfile(member, io.BytesIO(data))
    return gzipped(buffer.getvalue())
