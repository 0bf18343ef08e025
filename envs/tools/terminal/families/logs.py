"""Logs: count the errors of each host in a stretch of time, over rotated files."""

from __future__ import annotations

from collections import Counter

from turngym.envs.tools.terminal.task import Draw, Task, file, folders, gzipped, text

_GOAL = """The logs in the folder log, some of them compressed, have lines `TIME HOST LEVEL MESSAGE`. Write \
errors.txt: a line `HOST COUNT` for each host with at least one line of level {level} at or after {start} and before \
{end}; the largest count first, then by host in byte order."""
_SOLUTION = """{{ cat log/*.log; gzip -dc log/*.gz; }} |
awk '$3 == "{level}" && $1 >= "{start}" && $1 < "{end}" {{ count[$2]++ }}
  END {{ for (each in count) print each, count[each] }}' |
sort -k2,2nr -k1,1 > errors.txt"""
_LEVELS = ("INFO", "WARN", "ERROR", "FATAL")


def logs(draw: Draw) -> Task:
    """Draw a task of counting log lines."""
    day, level, first = draw.number(1, 25), draw.pick(_LEVELS[1:]), draw.number(1, 8)
    start = f"2024-{draw.number(1, 12):02}-{day:02}T{first:02}:{draw.number(0, 59):02}:00"
    end = f"{start[:8]}{day + 1:02}T{draw.number(5, 20):02}:{draw.number(0, 59):02}:00"
    hosts = [f"{word}-{draw.number(1, 9)}" for word in draw.words(draw.scale(2, 4))]
    times = [f"{start[:8]}{day + draw.number(0, 2):02}T{_clock(draw)}" for _ in range(draw.scale(40, 60))]
    times += [start, end]
    count, lines = Counter[str](), []
    for time in sorted(times):
        host, found = draw.pick(hosts), draw.pick((*_LEVELS, level))
        lines.append(f"{time} {host} {found} {draw.pick(_LEVELS)} {draw.text(2).strip()}")
        if found == level and start <= time < end:
            count[host] += 1
    size = -(-len(lines) // (3 + draw.level))
    pieces = ["".join(f"{line}\n" for line in lines[place : place + size]) for place in range(0, len(lines), size)]
    *old, newest = pieces
    files = {f"log/gate.{number + 1}.gz": file(gzipped(each.encode())) for number, each in enumerate(reversed(old))}
    files["log/gate.log"] = file(newest)
    rows = sorted(count.items(), key=lambda row: (-row[1], row[0]))
    wanted = {"errors.txt": text([f"{host} {number}" for host, number in rows])}
    words = {"level": level, "start": start, "end": end}
    look = "ls log; head -n 2 log/gate.log"
    return Task(_GOAL.format(**words), folders(files), wanted, (look, _SOLUTION.format(**words)))


def _clock(draw: Draw) -> str:
    return f"{draw.number(0, 23):02}:{draw.number(0, 59):02}:{draw.number(0, 59):02}"
