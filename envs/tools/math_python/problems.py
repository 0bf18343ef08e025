"""Randomly generated mathematical problems, each with its exact answer and code that finds it.

A template samples numbers and returns a question, the answer as a fraction or a list of them, and a short program that
prints it. Where possible, the answer is computed in a different way than by the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

_Dice: TypeAlias = Callable[[int, int], int]
"""Samples an integer from the first to the second, inclusive."""
_Template: TypeAlias = Callable[[_Dice, int], "Problem"]


class Problem(NamedTuple):
    """A question with its answer.

    Args:
        kind: Kind of mathematics.
        question: The text.
        answer: The answer, as it would be written.
        code: Programs that find it, one for each tool call; the last prints the answer.
    """

    kind: str
    question: str
    answer: str
    code: tuple[str, ...]

    def as_json(self) -> list[Any]:
        """Return it as JSON can hold it."""
        return [self.kind, self.question, self.answer, list(self.code)]

    @classmethod
    def from_json(cls, value: list[Any]) -> Problem:
        """Return what ``as_json`` gave."""
        kind, question, answer, code = value
        return cls(str(kind), str(question), str(answer), tuple(map(str, code)))


def _number(value: Fraction | int) -> str:
    return str(Fraction(value))


_PEOPLE = ("Ana", "Bo", "Chen", "Dara", "Efe", "Finn", "Gita", "Hugo", "Ines", "Jun", "Kira", "Luca", "Mona", "Nils")
_THINGS = ("stamps", "marbles", "shells", "cards", "buttons", "coins", "seeds", "beads", "stickers", "pencils")


def _shopping(dice: _Dice, level: int) -> Problem:
    """Return a chain of additions, multiplications and shares in words."""
    name, thing = _PEOPLE[dice(0, len(_PEOPLE) - 1)], _THINGS[dice(0, len(_THINGS) - 1)]
    have = dice(10, 60 * level)
    lines, code, value = [f"{name} has {have} {thing}."], [f"x = {have}"], have
    for _ in range(1 + 2 * level):
        kind, number = dice(0, 3), dice(2, 9)
        if kind == 0:
            value, line, step = value + 7 * number, f"{name} finds {7 * number} more.", f"x = x + {7 * number}"
        elif kind == 1:
            value, line = value * number, f"Then the collection grows to {number} times its size."
            step = f"x = x * {number}"
        elif kind == 2 and value > 3 * number:
            value, line, step = value - 3 * number, f"{name} gives {3 * number} away.", f"x = x - {3 * number}"
        else:
            line = f"{name} packs the {thing} into boxes of {number} and gives away those that fill no box."
            value, step = value - value % number, f"x = x - x % {number}"
        lines.append(line)
        code.append(step)
    question = f"{' '.join(lines)} How many {thing} does {name} have now?"
    return Problem("words", question, str(value), ("\n".join([*code, "print(x)"]),))


def rates(dice: _Dice, level: int) -> Problem:
    """Return a question on work done together."""
    times = [dice(2, 8 * level) for _ in range(2 + (level > 2))]
    share = sum((Fraction(1, time) for time in times), Fraction(0))
    told = ", ".join(f"pump {chr(65 + place)} alone in {time} hours" for place, time in enumerate(times))
    question = f"A tank is filled by {told}. In how many hours do they fill it together?"
    code = f"from fractions import Fraction\nprint(1 / sum(Fraction(1, t) for t in {times}))"
    return Problem("words", question, _number(1 / share), (code,))


def remainder(dice: _Dice, level: int) -> Problem:
    """Return a power modulo a number."""
    base, exponent, modulus = dice(2, 30), dice(10**level, 10 ** (level + 1)), dice(7, 10 ** min(level, 3) + 20)
    question = f"What is the remainder when {base}^{exponent} is divided by {modulus}?"
    found, square, bits = 1, base % modulus, exponent
    while bits:
        found = found * square % modulus if bits & 1 else found
        square, bits = square * square % modulus, bits >> 1
    return Problem("number theory", question, str(found), (f"print(pow({base}, {exponent}, {modulus}))",))


def divisors(dice: _Dice, level: int) -> Problem:
    """Return the number or the sum of the divisors of a number with known factors."""
    primes = (2, 3, 5, 7, 11, 13)[: 2 + level]
    powers = [dice(0, 3) for _ in primes]
    powers[0] += 1
    number = math.prod(p**e for p, e in zip(primes, powers, strict=True))
    pairs = f"n = {number}\npairs = [{{d, n // d}} for d in range(1, int(n**0.5) + 1) if n % d == 0]\n"
    if dice(0, 1):
        question, code = f"How many positive divisors does {number} have?", f"{pairs}print(sum(map(len, pairs)))"
        answer = math.prod(e + 1 for e in powers)
    else:
        question, code = f"What is the sum of all positive divisors of {number}?", f"{pairs}print(sum(map(sum, pairs)))"
        answer = math.prod((p ** (e + 1) - 1) // (p - 1) for p, e in zip(primes, powers, strict=True))
    return Problem("number theory", question, str(answer), (code,))


def _common_time(dice: _Dice, level: int) -> Problem:
    """Return when several periods meet again."""
    periods = sorted({dice(4, 15 * level + 5) for _ in range(2 + level)})
    told = ", ".join(map(str, periods))
    question = (
        f"Lamps flash together now, and from then on every {told} seconds, each lamp at its own pace. "
        "After how many seconds do all of them next flash together?"
    )
    code = f"import math\nprint(math.lcm(*{periods}))"
    answer = 1
    for period in periods:
        answer = answer * period // math.gcd(answer, period)
    return Problem("number theory", question, str(answer), (code,))


def committee(dice: _Dice, level: int) -> Problem:
    """Return in how many ways a group with conditions can be chosen."""
    men, women = dice(3, 4 + 2 * level), dice(3, 4 + 2 * level)
    size = dice(2, min(men + women - 1, 3 + level))
    least = dice(1, min(size, women))
    question = (
        f"A committee of {size} is chosen from {men} men and {women} women. "
        f"In how many ways can that be done if at least {least} of its members must be women?"
    )
    answer = sum(math.comb(women, w) * math.comb(men, size - w) for w in range(least, size + 1))
    code = (
        f"from itertools import combinations\npeople = ['m'] * {men} + ['w'] * {women}\n"
        f"print(sum(1 for c in combinations(people, {size}) if c.count('w') >= {least}))"
    )
    return Problem("combinatorics", question, str(answer), (code,))


def paths(dice: _Dice, level: int) -> Problem:
    """Return the number of ways through a grid that avoid a point."""
    width, height = dice(2, 3 + 2 * level), dice(2, 3 + 2 * level)
    x, y = dice(0, width), dice(0, height)
    if (x, y) in ((0, 0), (width, height)):
        x, y = width, 0
    question = (
        f"A path leads from (0, 0) to ({width}, {height}) in steps of 1 to the right or 1 up, and never touches the "
        f"point ({x}, {y}). How many such paths are there?"
    )
    through = math.comb(x + y, x) * math.comb(width + height - x - y, width - x)
    code = (
        f"ways = {{(0, 0): 1}}\nfor x in range({width + 1}):\n    for y in range({height + 1}):\n"
        f"        if (x, y) == ({x}, {y}): ways[x, y] = 0\n        elif (x, y) != (0, 0):\n"
        f"            ways[x, y] = ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)\nprint(ways[{width}, {height}])"
    )
    return Problem("combinatorics", question, str(math.comb(width + height, width) - through), (code,))


_SOLVE = """from fractions import Fraction
rows = [[Fraction(v) for v in row] for row in {rows}]
n = len(rows)
for i in range(n):
    p = next(r for r in range(i, n) if rows[r][i])
    rows[i], rows[p] = rows[p], rows[i]
    rows[i] = [v / rows[i][i] for v in rows[i]]
    for r in range(n):
        if r != i:
            rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i])]
x = [row[-1] for row in rows]"""


def _linear_system(dice: _Dice, level: int) -> Problem:
    """Return a system of linear equations with one solution."""
    count = 2 + (level > 1)
    solution = [Fraction(dice(-9, 9), dice(1, level)) for _ in range(count)]
    while True:
        matrix = [[dice(-5, 5) for _ in range(count)] for _ in range(count)]
        if round(float(np.linalg.det(np.array(matrix, float)))):
            break
    sides = [sum(a * x for a, x in zip(row, solution, strict=True)) for row in matrix]
    names = "xyz"[:count]
    lines = [f"{_linear(row, names)} = {side}" for row, side in zip(matrix, sides, strict=True)]
    what = " + ".join(names)
    question = f"Solve: {'; '.join(lines)}. What is {what}?"
    rows = [[*map(str, row), str(side)] for row, side in zip(matrix, sides, strict=True)]
    return Problem("linear systems", question, _number(sum(solution)), (_SOLVE.format(rows=rows), "print(sum(x))"))


def _linear(row: list[int], names: str) -> str:
    return (" + ".join(f"{a}{name}" for a, name in zip(row, names, strict=True) if a) or "0").replace("+ -", "- ")


def _dice_sum(dice: _Dice, level: int) -> Problem:
    """Return the probability of a sum of dice."""
    count, sides = 1 + level, dice(4, 8)
    target = dice(count + 1, count * sides - 1)
    question = (
        f"{count} fair dice with {sides} sides each, numbered from 1, are thrown. "
        f"What is the probability that their sum is at least {target}? Answer with a fraction."
    )
    ways = [1]
    for _ in range(count):
        ways = [sum(ways[max(0, total - sides + 1) : total + 1]) for total in range(len(ways) + sides - 1)]
    answer = Fraction(sum(ways[max(0, target - count) :]), sides**count)
    code = (
        f"from fractions import Fraction\nfrom itertools import product\n"
        f"throws = [sum(t) for t in product(range(1, {sides + 1}), repeat={count})]\n"
        f"print(Fraction(sum(t >= {target} for t in throws), len(throws)))"
    )
    return Problem("probability", question, _number(answer), (code,))


def _urn(dice: _Dice, level: int) -> Problem:
    """Return the probability of drawing certain balls from an urn."""
    red, blue, green = dice(2, 3 + 2 * level), dice(2, 3 + 2 * level), dice(0, 2 * level)
    drawn = dice(2, min(4, red + blue + green - 1))
    wanted = dice(1, min(drawn, red))
    others = f"{blue} blue" + (f" and {green} green" if green else "")
    question = (
        f"An urn holds {red} red, {others} balls. {drawn} balls are drawn without putting any back. "
        f"What is the probability that exactly {wanted} of them are red? Answer with a fraction."
    )
    rest = blue + green
    answer = Fraction(math.comb(red, wanted) * math.comb(rest, drawn - wanted), math.comb(red + rest, drawn))
    code = (
        f"from fractions import Fraction\nfrom itertools import combinations\nballs = [1] * {red} + [0] * {rest}\n"
        f"draws = [sum(c) for c in combinations(balls, {drawn})]\nprint(Fraction(draws.count({wanted}), len(draws)))"
    )
    return Problem("probability", question, _number(answer), (code,))


def _recurrence(dice: _Dice, level: int) -> Problem:
    """Return a term of a sequence that is given by its two predecessors."""
    first, second, a, b, c = dice(0, 5), dice(1, 6), dice(1, 2 + level), dice(1, 2 + level), dice(0, 4) * (level > 1)
    place = dice(5, 5 + 4 * level)
    extra = f" + {c}" if c else ""
    question = (
        f"A sequence begins with a(1) = {first} and a(2) = {second}; from then on a(n) = {a}a(n-1) + {b}a(n-2){extra}. "
        f"What is a({place})?"
    )
    terms = [first, second]
    while len(terms) < place:
        terms.append(a * terms[-1] + b * terms[-2] + c)
    code = f"p, q = {first}, {second}\nfor _ in range({place - 2}):\n    p, q = q, {a} * q + {b} * p + {c}\nprint(q)"
    return Problem("sequences", question, str(terms[-1]), (code,))


def series(dice: _Dice, level: int) -> Problem:
    """Return the sum of a polynomial over the whole numbers of a range."""
    a, b, c, last = dice(1, 3 * level), dice(-9, 9), dice(-9, 9), dice(10, 10 ** (1 + level))
    question = f"What is the sum of {a}k^2 + ({b})k + ({c}) over all whole numbers k from 1 to {last}?"
    answer = a * last * (last + 1) * (2 * last + 1) // 6 + b * last * (last + 1) // 2 + c * last
    code = f"print(sum({a} * k * k + {b} * k + {c} for k in range(1, {last + 1})))"
    return Problem("sequences", question, str(answer), (code,))


_ORDERS = (
    ("Add {}.", "Increase it by {}.", "Make it {} more."),
    ("Subtract {}.", "Take {} away.", "Make it {} less."),
    ("Multiply by {}.", "Take it {} times."),
    ("Subtract it from {}.", "Replace it by {} minus itself."),
)


def arithmetic(dice: _Dice, level: int) -> Problem:
    """Return a chain of sums, differences and products, each in one of several wordings."""
    value = dice(10, 99)
    lines, code = [f"Begin with {value}."], str(value)
    for _ in range(1 + level):
        order = dice(0, len(_ORDERS) - 1)
        number = dice(2, 9) if order == 2 else dice(10, 99)
        lines.append(_ORDERS[order][dice(0, len(_ORDERS[order]) - 1)].format(number))
        value = (value + number, value - number, value * number, number - value)[order]
        inner = code if code.isdigit() else f"({code})"
        code = (f"{inner} + {number}", f"{inner} - {number}", f"{inner} * {number}", f"{number} - {inner}")[order]
    question = f"{' '.join(lines)} Which number is it now?"
    return Problem("arithmetic", question, str(value), (f"print({code})",))


TEMPLATES: Mapping[str, tuple[_Template, ...]] = {
    "words": (_shopping, rates),
    "number theory": (remainder, divisors, _common_time),
    "combinatorics": (committee, paths),
    "linear systems": (_linear_system,),
    "probability": (_dice_sum, _urn),
    "sequences": (_recurrence, series),
}
ALONE: Mapping[str, tuple[_Template, ...]] = {"arithmetic": (arithmetic,)}
"""Kinds that ``"mixed"`` leaves out, so that its problems stay as they have always been."""
KINDS = (*TEMPLATES, *ALONE)
LEVELS = (1, 2, 3)


def draw_problem(kind: str, level: int, generator: np.random.Generator) -> Problem:
    """Return a problem of a kind, or of any with ``"mixed"``.

    >>> draw_problem("sequences", 1, np.random.default_rng(0)).kind
    'sequences'
    """

    def dice(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    kinds = {**TEMPLATES, **ALONE}
    choices = kinds[list(TEMPLATES)[dice(0, len(TEMPLATES) - 1)] if kind == "mixed" else kind]
    return choices[dice(0, len(choices) - 1)](dice, level)
