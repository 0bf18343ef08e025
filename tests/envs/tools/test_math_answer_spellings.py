"""Usual spellings of right answers are right, and wrong answers are not: a table, and laws over published ones."""

import cmath
import gzip
import itertools
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from turngym.envs.tools.math_python.answers import same_answer

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "math"
needs_data = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the prepared mathematics sets are not here")

PAIRS = [line.split("\t") for line in Path(__file__).with_name("answer_pairs.tsv").read_text("utf8").splitlines()]
"""Verdict, given answer and gold answer."""
NOTHING = (
    r"\tan(\pi/2)",
    r"1/\sin\pi",
    r"10^{300}\sin\pi",
    r"10^{3000}\cos(10^{300})",
    r"\sin(10^{300})",
    r"\frac{1}{\sin \pi} + \frac{1}{\sin 2\pi}",
    r"10^{400}((\sqrt2)^2 - 2)",
    r"\lfloor 10^{300} \sin \pi \rfloor",
)
ANYTHING = ("5", r"\frac{3}{7}", r"\sqrt{2}", r"2\pi", "x^2 + 1", "3 + 2i", "x = 5", "1.75", r"120\text{ cm}", "1, 2")


def test_usual_spellings_are_right_and_small_differences_and_misread_texts_are_wrong() -> None:
    assert len(PAIRS) > 400 and {verdict for verdict, _, _ in PAIRS} == {"same", "different"}
    for verdict, given, gold in PAIRS:
        assert same_answer(given, gold) == (verdict == "same"), (given, gold)


def test_formulas_that_no_precision_settles_equal_no_answer() -> None:
    for given in NOTHING:
        assert [gold for gold in ANYTHING if same_answer(given, gold)] == []


UNIT_SPELLINGS = [
    ["5 cm", r"5\text{ cm}", "5 centimeters", r"5\,\mathrm{cm}"],
    ["5 cm^2", r"5 \text{ cm}^2", "5 square centimetres", "5 sq cm", "5 cm²"],
    ["5 cm^3", r"5\mbox{ cm}^3", "5 cubic centimeters"],
    ["5 m/s", r"5 \text{ m/s}", r"5\frac{\text{m}}{\text{s}}", "5 meters per second", r"5\text{ m}\cdot\text{s}^{-1}"],
    ["5 km/h", r"5\text{ km}/\text{h}", "5 kph", "5 kilometers per hour"],
    ["5 mph", "5 miles/hour"],
    ["5 hours", "5 h", "5 hr", r"5\text{ hours}"],
    ["$5", r"\$5", r"5\$", "5 dollars", "5 USD"],
    ["5€", "€5", "5 euros", r"5\text{ euros}"],
    ["5 cents", "5¢"],
    [r"5^\circ", "5°", "5 degrees", r"5^{\circ}"],
    ["5 radians", r"5\text{ rad}"],
    ["5°C", r"5^\circ\text{C}", "5 degrees Celsius"],
    [r"5\%", "5%"],
]


def test_two_different_units_are_different_and_one_alone_is_ignored() -> None:
    for place, spellings in enumerate(UNIT_SPELLINGS):
        for given, other in itertools.product(range(len(UNIT_SPELLINGS)), spellings):
            found = {(text, other): same_answer(text, other) for text in UNIT_SPELLINGS[given]}
            assert found == dict.fromkeys(found, given == place)
        assert all(same_answer(text, "5") and not same_answer(text, "6") for text in spellings)
        assert all(same_answer("5", text) for text in spellings if text not in ("5 h", "5 m/s"))


CHANGING = (
    *("thousandths", "hundredths", "billionth", "fifths", "sixteenths", "thirds", "halves", "twentieths", "tenths"),
    *("negative", "degrees below zero", "minus three", "plus", "over five", "doubled", "tripled", "halved"),
    *("base eight", "binary", "hex", "mod seven", "modulo 7", "maybe seven", "choose", "XOR", "inverse", "reciprocal"),
    *(
        "root",
        "fold",
        "percent",
        "permille",
        "kilo",
        "times ten",
        "unless false",
        "million",
        "dozen",
        "squared",
        "factorials",
    ),
    *("minutes past eight", "twenty", "thirteen", "not", "or 6", "wrong", "less", "fewer apples", "incorrect", "false"),
)
UNITS = (
    *("months", "teeth", "paths", "square units", "square feet", "cubic cm", "pairs", "apples", "people"),
    *("more hours", "hours", "degrees", "miles/hour", "km per hour", "cents", "cloths", "more", "gallons", "left"),
)


def test_words_that_change_a_number_are_no_units() -> None:
    for words in CHANGING:
        assert not same_answer(f"12 {words}", "12") and not same_answer(rf"12 \text{{ {words}}}", "12")


def test_words_for_what_is_counted_are_units() -> None:
    for words in UNITS:
        assert same_answer(f"12 {words}", "12") and same_answer(rf"12 \text{{ {words}}}", "12")


@cache
def published() -> tuple[str, ...]:
    """Return every answer of the published sets."""
    lines = [
        line
        for path in sorted(PUBLISHED.glob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    return tuple(dict.fromkeys(str(json.loads(line)["answer"]) for line in lines))


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
LONG = re.compile(r"(?<![\d.,!])(\d{4,})(?![\d.])")
UNIT = re.compile(r"\s*\\(?:text|mbox)\{\s*(?:cents|inches|cm|hours|values)\s*\}(?:\^2)?$")
FRACTION = re.compile(r"(?<!\d)\\[dt]?frac\{([^{},]*)\}\{([^{},]*)\}")


def is_word(gold: str) -> bool:
    return gold in ("No", "no") or bool(re.search(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}|\\text", UNIT.sub("", gold)))


def units(gold: str) -> Iterator[str]:
    bare = UNIT.sub("", gold)
    yield bare
    if not is_word(gold):
        yield rf"{bare}\text{{ units}}"
        yield rf"{bare}\ \mbox{{units}}"
    if NUMBER.fullmatch(gold):
        yield from (f"{gold} units", f"{gold} things", rf"{gold}\text{{ cm}}", rf"{gold} \text{{ ft}}^2")


def thousands(gold: str) -> Iterator[str]:
    signs = ("{,}", r"\,", r",\!", ",", " ") if NUMBER.fullmatch(gold) else ("{,}", r"\,", r",\!")
    for sign in signs:
        yield "".join(grouped(part, sign) if place % 2 else part for place, part in enumerate(LONG.split(gold)))


def grouped(digits: str, sign: str) -> str:
    head = len(digits) % 3 or 3
    return sign.join([digits[:head], *(digits[place : place + 3] for place in range(head, len(digits), 3))])


def spaces(gold: str) -> Iterator[str]:
    yield f"  {gold}\n"
    if not is_word(gold) and not UNIT.search(gold):
        yield re.sub(r"(?<![a-zA-Z\\]) +| +(?![a-zA-Z0-9])", "", gold)
        yield gold.replace(" ", r"\;")
        if not re.search(r"\d,\d{3}|,\\!", gold):
            yield re.sub(r"(?<!\\)([-+=<>/()\[\],])", r" \1 ", gold)


def words(gold: str) -> Iterator[str]:
    if NUMBER.fullmatch(gold):
        yield from (rf"\text{{{gold}}}", rf"\mathrm{{{gold}}}")
    elif is_word(gold):
        inside = re.sub(r"^\\text\{([^{}]*)\}$", r"\1", gold)
        yield from (inside, f"{gold}.")
        if "\\" not in inside:
            yield from (rf"\text{{{inside}}}", inside.upper())


def wrapped(gold: str) -> Iterator[str]:
    yield from (rf"\boxed{{{gold}}}", f"${gold}$", rf"\({gold}\)", rf"$\boxed{{{gold}}}$.", rf"\[ {gold} \]")


def fractions(gold: str) -> Iterator[str]:
    yield gold.replace(r"\dfrac", r"\frac")
    yield re.sub(r"\\[dt]?frac", r"\\tfrac", gold)
    yield FRACTION.sub(r"{(\1)/(\2)}", gold)
    yield FRACTION.sub(r"{\1 \\over \2}", gold)
    yield re.sub(r"\\[dt]?frac\{(\d)\}\{(\d)\}", r"\\frac\1\2", gold)


@needs_data
@pytest.mark.parametrize(("spellings", "least"), [(units, 6000), (thousands, 2000), (spaces, 3000)])
def test_every_published_answer_is_right_with_units_thousands_and_spaces(
    spellings: Callable[[str], Iterator[str]], least: int
) -> None:
    require_right(spellings, least)


@needs_data
@pytest.mark.parametrize(("spellings", "least"), [(words, 2000), (wrapped, 10_000), (fractions, 1500)])
def test_every_published_answer_is_right_in_words_in_a_box_and_with_other_fractions(
    spellings: Callable[[str], Iterator[str]], least: int
) -> None:
    require_right(spellings, least)


def require_right(spellings: Callable[[str], Iterator[str]], least: int) -> None:
    pairs = {(given, gold) for gold in published() for given in spellings(gold) if given != gold}
    assert len(pairs) >= least
    assert [pair for pair in sorted(pairs) if not same_answer(*pair)] == []


NAME = re.compile(r"^(?:[a-zA-Z]|\\[a-zA-Z]+)(?:_\w)?'?(?:\(\w\))? = ")
INEQUALITY = re.compile(r"^(?:(.+?) (<|\\leq|\\geq|>) )?(?:[a-zA-Z]|\\[a-zA-Z]+) (<|\\leq|\\geq|>) ([^=<>]+)$")
PYTHON = [
    (r"\\(?:left|right|displaystyle)|\\[,!$%]|\^\\circ|\\mathbf", ""),
    (r"(\d)\\[dt]?frac(\d|\{[^{}]*\})(\d|\{[^{}]*\})", r"(\1+(\2)/(\3))"),
    (r"\\[dt]?frac *(\d|\{[^{}]*\}) *(\d|\{[^{}]*\})", r"((\1)/(\2))"),
    (r"\\sqrt\[(\d)\]\{([^{}]*)\}", r"((\2)**(1/\1))"),
    (r"\\sqrt(\d|\{[^{}]*\})", r"(sqrt(\1))"),
    (r"\\(?:ln|log) ?(\d+)", r"(log(\1))"),
    (r"\\(ln|log|sin)", r"\1"),
    (r"\\pi", "(pi)"),
    (r"\\cdot|\\times", "*"),
    (r"\{", "("),
    (r"\}", ")"),
    (r"\^", "**"),
]
LETTERS = {"e": math.e, "i": 1j, "pi": math.pi, "sqrt": cmath.sqrt, "log": cmath.log, "ln": cmath.log, "sin": cmath.sin}
VALUES = {
    letter: 0.37 + 0.0713 * place for place, letter in enumerate("abcdghjklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}


def value_of(gold: str) -> complex | None:
    """Return the value of an answer at one point, worked out by Python; None where it cannot read it."""
    text = NAME.sub("", UNIT.sub("", gold))
    text = re.sub(r"(?<=\d),(?:\\!)?(?=\d{3})", "", text)
    for pattern, other in PYTHON:
        text = re.sub(pattern, other, text)
    text = re.sub(r"([a-zA-Z]+)", lambda found: found[0] if found[0] in LETTERS else "*".join(found[0]), text)
    text = re.sub(
        r"(?<=[\w)])\s*(?=\()|(?<=\))\s*(?=[\w(])|(?<=\d)\s*(?=[a-zA-Z])|(?<=[a-zA-Z]) +(?=[a-zA-Z])", "*", text
    )
    text = re.sub(r"\b(sqrt|log|ln|sin)\*\(", r"\1(", text)
    try:
        found = eval(text, {"__builtins__": {}}, {**LETTERS, **VALUES})  # our own data, of no other use
        return complex(found)
    except (SyntaxError, NameError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None


def looks_of(gold: str) -> str:
    """Return an answer as text: unnamed, without blanks, wrappers and case, an inequality as its interval."""
    text = NAME.sub("", UNIT.sub("", gold)).replace(r"\pm 1", r"\{-1, 1\}")
    found = INEQUALITY.match(text)
    if found and not found[1]:
        sign, end = found[3], found[4]
        low = f"{'(' if sign == '>' else '['}{end},\\infty)"
        text = low if sign in (">", r"\geq") else f"(-\\infty,{end}{')' if sign == '<' else ']'}"
    elif found:
        text = f"{'(' if found[2] == '<' else '['}{found[1]},{found[4]}{')' if found[3] == '<' else ']'}"
    text = re.sub(r"^\\\{([^,]*)\\\}$|^\\text\{(.*)\}$|\\mathbf", r"\1\2", text)
    return re.sub(r"\\[dt]frac", r"\\frac", re.sub(r"\s|\\left|\\right|\+(?=\\infty)", "", text)).casefold()


@needs_data
def test_published_answers_equal_no_other_row_s_answer_that_differs() -> None:
    """Compare answers that look alike or are close, and a sample of all others, with what Python makes of both."""
    values = {gold: value_of(gold) for gold in published()}
    others = [gold for gold, value in values.items() if not NUMBER.fullmatch(gold)]
    assert sum(values[gold] is not None for gold in others) > 0.5 * len(others)
    source = random.Random(7)
    pairs = {(a, b) for a, b in (source.sample(others, 2) for _ in range(150))}
    shapes: dict[str, list[str]] = {}
    for gold in others:
        shapes.setdefault(re.sub(r"\d+", "0", gold), []).append(gold)
    near = [pair for alike in shapes.values() for pair in itertools.combinations(alike, 2)]
    pairs |= set(source.sample(near, 150))
    sized = sorted((gold for gold in others if values[gold] is not None), key=lambda gold: abs(values[gold] or 0))
    pairs |= {pair for first in (1, 2) for pair in zip(sized, sized[first:], strict=False)}
    unread = [gold for gold in others if values[gold] is None]
    pairs |= {(a, b) for a, b in (source.sample(unread, 2) for _ in range(150))}
    wrong, equal = [], 0
    for a, b in sorted(pairs):
        if same_answer(a, b) or same_answer(b, a):
            equal += 1
            first, second = values[a], values[b]
            if first is None or second is None:
                is_right = looks_of(a) == looks_of(b)
            else:
                is_right = cmath.isclose(first, second, rel_tol=1e-12)
            if not is_right:
                wrong.append((a, b))
    assert wrong == [] and equal > 10
