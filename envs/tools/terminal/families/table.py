"""Text tools: sums over a table, by a key of another table."""

from __future__ import annotations

from collections import Counter

from turngym.envs.tools.terminal.task import Draw, Task, file, text

_GOAL = """sales.csv has the columns id, region, product, units and price; staff.csv the columns region and manager. \
Write report.csv without a header: a line `manager,total` for each manager with at least one sale of {units} units \
or more, where total is the sum of units * price over the sales of {units} units or more in the regions of that \
manager. Sort by total, the largest first, then by manager from a to z."""
_SOLUTION = """awk -F, -v least={units} 'FNR == 1 {{ next }} NR == FNR {{ who[$1] = $2; next }}
$4 >= least {{ sum[who[$2]] += $4 * $5 }} END {{ for (each in sum) printf "%s,%d\\n", each, sum[each] }}' \
staff.csv sales.csv | sort -t, -k2,2nr -k1,1 > report.csv"""


def table(draw: Draw) -> Task:
    """Draw a task of sums over a table."""
    regions = draw.words(draw.scale(3, 5))
    managers = [f"{draw.pick('abcdefgh')}.{word}" for word in draw.words(max(2, len(regions) // 2))]
    staff = {region: draw.pick(managers) for region in regions}
    least, sums = draw.number(3, 12), Counter[str]()
    sales = ["id,region,product,units,price"]
    for number in range(draw.scale(15, 30)):
        region, units, price = draw.pick(regions), draw.number(1, 20), draw.number(5, 900)
        sales.append(f"{1000 + number},{region},p-{draw.number(1, 99)},{units},{price}")
        if units >= least:
            sums[staff[region]] += units * price
    rows = sorted(sums.items(), key=lambda row: (-row[1], row[0]))
    files = {
        "sales.csv": file("\n".join(sales) + "\n"),
        "staff.csv": file("region,manager\n" + "".join(f"{region},{who}\n" for region, who in staff.items())),
    }
    wanted = {"report.csv": text([f"{who},{total}" for who, total in rows])}
    look = "head -n 3 sales.csv staff.csv"
    return Task(_GOAL.format(units=least), files, wanted, (look, _SOLUTION.format(units=least)))
