"""Cron-like tables: the runs that a table stands for."""

from __future__ import annotations

from datetime import date, timedelta

from turngym.envs.tools.terminal.task import Draw, Task, file, text

_GOAL = """The file table has lines as crontab has them: minute, hour, day of the month, month, day of the week (0 \
to 6, 0 is Sunday), command. Fields are *, numbers, ranges such as 1-5, lists of these with commas, and steps such \
as */15. If neither the day of the month nor the day of the week begins with *, one of them is enough, as for cron. \
Write runs.txt: a line `YYYY-MM-DD HH:MM COMMAND` for every run from {first} to {last}, both days included, by time, \
then in the order of the table."""
_SOLUTION = """cat > /tmp/runs.py <<'END'
from datetime import date, timedelta
def hits(field, value, low, high):
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{{low}}-{{high}}" if span == "*" else span).partition("-")
        if int(first) <= value <= int(last or first) and (value - int(first)) % int(step or 1) == 0:
            return True
    return False
rows = [line.split(maxsplit=5) for line in open("table") if line.strip() and not line.startswith("#")]
day, last = date.fromisoformat("{first}"), date.fromisoformat("{last}")
while day <= last:
    found = []
    for place, (minute, hour, dom, month, dow, command) in enumerate(rows):
        month_day, week_day = hits(dom, day.day, 1, 31), hits(dow, day.isoweekday() % 7, 0, 6)
        is_any = dom.startswith("*") or dow.startswith("*")
        if hits(month, day.month, 1, 12) and (month_day and week_day if is_any else month_day or week_day):
            found += [(h, m, place, command.strip()) for h in range(24) for m in range(60)
                      if hits(hour, h, 0, 23) and hits(minute, m, 0, 59)]
    for h, m, place, command in sorted(found):
        print(f"{{day}} {{h:02}}:{{m:02}} {{command}}")
    day += timedelta(1)
END
python3 /tmp/runs.py > runs.txt"""
_MOST_RUNS = 400


def timetable(draw: Draw) -> Task:
    """Draw a task of reading a table."""
    first = date(2024, 1, 1) + timedelta(draw.number(0, 700))
    last = first + timedelta(draw.number(1, 3) * draw.level)
    rows = [_row(draw, first) for _ in range(draw.scale(2, 3))]
    while True:
        runs = [(*run, place) for place, row in enumerate(rows) for run in _runs(row, first, last)]
        if 0 < len(runs) <= _MOST_RUNS:
            break
        rows = [_row(draw, first) for _ in rows]
    names = [f"/opt/{word} --{draw.pick(('full', 'fast'))}" for word in draw.words(len(rows))]
    lines = [f"{day} {hour:02}:{minute:02} {names[place]}" for day, hour, minute, place in sorted(runs)]
    table = "# minute hour day month weekday command\n"
    table += "".join(f"{' '.join(row)} {name}\n" for row, name in zip(rows, names, strict=True))
    words = {"first": first.isoformat(), "last": last.isoformat()}
    solution = ("cat table", _SOLUTION.format(**words))
    return Task(_GOAL.format(**words), {"table": file(table)}, {"runs.txt": text(lines)}, solution)


def _row(draw: Draw, day: date) -> list[str]:
    minute, hour = draw.number(0, 59), draw.number(0, 22)
    minutes = (str(minute), "*/20", f"{minute % 30},{30 + minute % 30}", "5-50/15")
    hours = (str(hour), f"{hour}-{hour + 1}", "*/8", f"{hour % 12},{12 + hour % 12}")
    days = ("*", "*", str(day.day), f"{day.day}-31", "*/2", "1-15/3")
    weekdays = ("*", "1-5", "0,6", str(day.isoweekday() % 7), "*/3")
    months = ("*", str(day.month))
    return [draw.pick(choices) for choices in (minutes, hours, days, months, weekdays)]


def _hits(field: str, low: int, high: int) -> set[int]:
    """Return the numbers that a field stands for."""
    found = set[int]()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def _runs(row: list[str], first: date, last: date) -> list[tuple[date, int, int]]:
    minutes, hours = sorted(_hits(row[0], 0, 59)), sorted(_hits(row[1], 0, 23))
    days, months, weekdays = _hits(row[2], 1, 31), _hits(row[3], 1, 12), _hits(row[4], 0, 6)
    found = []
    for number in range((last - first).days + 1):
        day = first + timedelta(number)
        both = (day.day in days, day.isoweekday() % 7 in weekdays)
        is_due = all(both) if row[2][0] == "*" or row[4][0] == "*" else any(both)
        if is_due and day.month in months:
            found += [(day, hour, minute) for hour in hours for minute in minutes]
    return found
