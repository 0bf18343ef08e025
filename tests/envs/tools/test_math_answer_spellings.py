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

SAME = [
    (r"120\text{ cm}", "120"),
    ("120", r"120\text{ cm}"),
    ("120 centimeters", r"120\text{ cm}"),
    (r"5 \text{ cm}^2", "5"),
    ("5 cm²", r"5 \text{ cm}^2"),
    (r"5 \text{ km}/\text{h}", "5 km/h"),
    (r"\boxed{864 \mbox{ inches}^2}", r"864 \mbox{ inches}^2"),
    (r"3\pi \text{ cm}^2", r"3\pi"),
    (r"5\sqrt{2} units", r"5\sqrt{2}"),
    ("1{,}030", "1030"),
    (r"1\,030", "1030"),
    ("10 000", "10000"),
    (r"\$32{,}348", r"\$32,\!348"),
    (r"\$32{,}348", "32348"),
    ("-$5", "-5"),
    (r"0.\overline{3}", r"\frac{1}{3}"),
    (r"0.1\overline{6}", "1/6"),
    (r"2 \text{ or } 3", "2, 3"),
    ("x=3 or x=2", r"2 \text{ or } 3"),
    ("1, 2, or 3", "1,2,3"),
    ("0<x<12.5", "(0, 12.5)"),
    ("(0, 12.5)", "0<x<12.5"),
    ("12 > x > 0", "0 < x < 12"),
    (r"x \ge 3", r"[3, \infty)"),
    (r"x < 2 \text{ or } x > 3", r"(-\infty, 2) \cup (3, \infty)"),
    (r"-2 \le x \le 7", r"x \in [-2,7]"),
    ("6e5", "600000"),
    ("6e-10", "6e - 10"),
    (r"\binom{5}{2}", "10"),
    (r"{5 \choose 2}", "10"),
    (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
    (r"{1 \over 2}", "0.5"),
    ("½", r"\frac{1}{2}"),
    ("2½", r"\frac{5}{2}"),
    ("x²", "x^2"),
    ("x₁ ≤ 3", r"x_1 \le 3"),
    ("α", r"\alpha"),
    (r"\varnothing", r"\emptyset"),
    (r"\{\}", r"\emptyset"),
    (r"f'(0)\pi", r"\pi f'(0)"),
    (r"\lfloor 3.7 \rfloor", "3"),
    (r"\left(1, 100\right)", "(1,100)"),
    (r"\sin^2 x + \cos^2 x - 1", "0"),
    (r"\sqrt{x^2}", "|x|"),
    ("3.14159265359", r"\pi"),
    ("(c)", r"\text{(C)}"),
    ("no", "No"),
    (r"\sin \pi", "0"),
    (r"10^{20} \sin \pi", "0"),
    (r"\cos(\pi/2) + 5", "5"),
    (r"\sqrt{2}\sqrt{3}", r"\sqrt{6}"),
    ("(\\sqrt{2} - 1)^{20}", "1/(\\sqrt{2} + 1)^{20}"),
    (r"\frac{1}{e^{1000}}", "e^{-1000}"),
    ("2^{50000}", "4^{25000}"),
    ("1 + x^{300}", "x^{300} + 1"),
    ("12 percent", r"12\%"),
    ("12%", "12 percent"),
    ("12", r"12\%"),
    ("100,200", "(100, 200)"),
    (r"\sin 30^\circ", "1/2"),
    (r"\sin 30^\circ", r"\frac12"),
    (r"\sin(30°)", "0.5"),
    (r"\cos 60^{\circ}+1", "3/2"),
    (r"12\$", "12"),
    ("12€", "12"),
    ("12 €", "12"),
    ("= 5", "5"),
    ("=5", "5"),
    ("x = 5", "5"),
    (r"\boxed{5}\text{cm}", "5"),
    (r"\boxed{5}\text{cm}", r"5\text{ cm}"),
    (r"\boxed{5} cm", "5"),
    (r"\tan^{-1}(1)", r"\frac{\pi}{4}"),
    (r"\tan^{-1} x", r"\arctan x"),
    (r"\sin^{-1}(1/2)", r"\pi/6"),
    (r"120\text{ cm}", "120 cm"),
    ("120 centimeters", "120 cm"),
    ("120", "120 cm"),
    ("120cm", "120"),
    (r"120\text{ m}", "120 m"),
    (r"\tan^{-1} 1", r"\tan^{-1}(1)"),
    ("30°", r"30^\circ"),
    ("30 degrees", r"30^\circ"),
    ("30", r"30^\circ"),
    (r"22\frac{1}{2}^\circ", "22.5"),
    (r"$\$12$", "12"),
    (r"$12\$$", "12"),
    ("$5$", "5"),
    ("$$5$$", "5"),
    ("$5", "5"),
    (r"\boxed{\$5}", "5"),
    ("5 m/s", "5"),
    (r"5\,\frac{\text{m}}{\text{s}}", "5"),
    (r"5\,\frac{\text{m}}{\text{s}}", "5 m/s"),
    (r"5\text{ m}\cdot\text{s}^{-1}", "5 m/s"),
    ("60 mph", "60 miles per hour"),
    ("60 mph", r"60\text{ miles/hour}"),
    ("25 sq. ft", "25 square feet"),
    ("25 ft^2", "25 square feet"),
    ("25 feet squared", "25 square feet"),
    ("30°C", "30 degrees Celsius"),
    ("1 apple", "1"),
    ("1/2 cup", "1/2"),
    ("5 gallons", "5"),
    (r"\mathbb{R}", r"(-\infty,\infty)"),
    (r"\mathbb R", r"\mathbb{R}"),
    (r"(-\infty,\infty)", r"\mathbb{R}"),
    ("ℝ", r"\mathbb{R}"),
    (r"\mathbb{R}\setminus\{0\}", r"(-\infty,0)\cup(0,\infty)"),
    (r"x\ne 0", r"(-\infty,0)\cup(0,\infty)"),
    (r"\{x : x > 3\}", r"(3,\infty)"),
    (r"\{x \mid x>3\}", r"(3,\infty)"),
    (r"\{x \in \mathbb{R} \mid x>3\}", r"(3,\infty)"),
    (r"]3,\infty[", r"(3,\infty)"),
    (r"[3,+\infty)", r"[3,\infty)"),
    (r"x\in(3,\infty)", r"(3,\infty)"),
    (r"(0,\infty)\cup(-\infty,0)", r"(-\infty,0)\cup(0,\infty)"),
    (r"1\le x\le 3", "[1,3]"),
    (r"x\in\{1,2\}", "1,2"),
    ("{1,2}", r"\{1,2\}"),
    ("1 and 2", r"\{1,2\}"),
    (r"x=1\text{ or }x=2", r"\{1,2\}"),
    ("x<2 or x>3", r"(-\infty,2)\cup(3,\infty)"),
    (r"3\le x", r"[3,\infty)"),
    (r"\emptyset", r"\{\}"),
    ("∅", r"\emptyset"),
    ("empty set", r"\emptyset"),
    (r"\text{no solution}", r"\emptyset"),
    ("(-∞, 3]", r"(-\infty,3]"),
    ("(-inf, 3]", r"(-\infty,3]"),
    ("(-oo,3]", r"(-\infty,3]"),
    ("(-infinity, 3]", r"(-\infty,3]"),
    (r"\left(3,\infty\right)", r"(3,\infty)"),
    (r"\left]3,4\right[", "(3,4)"),
    ("[3;4]", "[3,4]"),
    ("(3 ; 4)", "(3,4)"),
    ("|x|<1", "(-1,1)"),
    (r"\{1\}\cup[2,3]", r"[2,3]\cup\{1\}"),
    ("[1,3]", "1 <= x <= 3"),
    ("x >= 3", r"[3,\infty)"),
    ("all real numbers", r"\mathbb{R}"),
    (r"\text{all real numbers}", r"(-\infty,\infty)"),
    ("x != 0", r"x \ne 0"),
    (r"\{1,2,3\}", r"\lbrace 1,2,3\rbrace"),
    ("(-1,1]", r"-1<x\leq1"),
    (r"\infty", "infinity"),
    (r"+\infty", r"\infty"),
    ("-∞", r"-\infty"),
    ("±3", "3, -3"),
    (r"\pm 3", "-3,3"),
    ("x = ±3", "3,-3"),
    (r"50\%", "50%"),
    (r"12 \mathrm{~cm}^2", "12"),
    (r"3\sqrt{2} \mathrm{~cm}", r"3\sqrt2"),
    (r"5 \text{~cm}", "5"),
    (r"5\mathrm{\,cm}", "5"),
    (r"5\text{ N}", "5"),
    (r"5\text{ J}", "5"),
    (r"5\text{ Hz}", "5"),
    (r"5\text{ kW}", "5"),
    (r"5\text{ K}", "5"),
    ("12 units squared", "12"),
    ("12 square units", "12"),
    (r"5\text{ million dollars}", "5000000"),
    ("5 million dollars", r"\$5{,}000{,}000"),
    ("5 million", "5000000"),
    ("$5 million", "5000000"),
    ("1.5 million", "1500000"),
    (r"5\text{ million}", r"5\text{ million}"),
    ("2 dozen", "24"),
    ("5 crore", "50000000"),
    (r"x=-2\text{ or }3", "-2,3"),
    ("x=-2,3", "-2,3"),
    ("x_1=-2, x_2=3", "-2,3"),
    ("-2,3", "x_1=-2, x_2=3"),
    ("(x,y)=(1,2)", "(1,2)"),
    ("(1,2)", "(x,y)=(1,2)"),
    (r"\langle 1,2\rangle", "(1,2)"),
    (r"\left\langle 1,2\right\rangle", "(1,2)"),
    ("AB=5", "5"),
    ("AB = 5 cm", "5"),
    (r"AB=5\text{ cm}", "5"),
    (r"AB=3\sqrt{2}", r"3\sqrt{2}"),
    (r"\angle A = 30^\circ", "30"),
    (r"\angle A = 30^\circ", r"30^\circ"),
    (r"m\angle A = 30^\circ", "30"),
    (r"\angle ABC = 30^\circ", "30"),
    ("5 mL", r"5\text{ ml}"),
    (r"x\in\mathbb{R}\setminus\{1,2\}", r"\mathbb{R}\setminus\{2,1\}"),
    (r"\left\{x \mid x>3\right\}", r"(3,\infty)"),
    (r"\mathbb{R}\setminus\{1,2\}", r"(-\infty,1)\cup(1,2)\cup(2,\infty)"),
    (r"\mathbb{R}\setminus\{2,1\}", r"\mathbb{R}\setminus\{1,2\}"),
    (r"\mathbb{R}\setminus\left\{1,2\right\}", r"(-\infty,1)\cup(1,2)\cup(2,\infty)"),
    ("5 hours left", "5 hours"),
    ("12 more apples", "12 apples"),
    ("5 newtons", r"5\text{ N}"),
    ("5 lbs", "5 pounds"),
    (r"\{1\}\cup\{2\}", r"\{1,2\}"),
    (r"\{5\}", "5"),
    ("5", r"\{5\}"),
    (r"\pm\infty", r"-\infty,\infty"),
    ("10~000", "10000"),
    (r"\boxed{5}, \boxed{6}", "5,6"),
    (r"x=\boxed{5}", "5"),
    (r"\{\emptyset\}", r"\{\varnothing\}"),
    (r"\boxed{1000} meters", "1000"),
    ("5 mph", "5 miles per hour"),
]
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
DIFFERENT = [
    ("e^{-60}", "e^{-50}"),
    (r"\frac{1}{2006!}", r"\frac{1}{2004!}"),
    (r"\frac{1}{5006!}", r"\frac{1}{5004!}"),
    ("0", "e^{-100}"),
    ("e^{-100}", "0"),
    ("1", "1 - e^{-100}"),
    (r"\pi + 10^{-12}", r"\pi"),
    ("y = (1 + e^{-100})x", "y = x"),
    ("501! + 1", "501!"),
    ("2|a|", "2a"),
    (r"\epsilon_{1}", r"\epsilon_{2}"),
    ("746496", r"864 \mbox{ inches}^2"),
    ("-42", r"-12 \text{ or } -30"),
    ("120 m", r"120\text{ cm}"),
    ("5x", "5"),
    ("3pi", "3"),
    ("5 million", "5"),
    ("n", "n!"),
    ("f(x)", "f'(x)"),
    ("f(0)", "0"),
    ("f(1)", "f(2)"),
    (r"\lfloor m/2 \rfloor", "0"),
    ("AB = 0", "0"),
    ("c_1 = 0", "c_2 = 0"),
    ("AB", "ab"),
    ("1 000/3", "1000/3000"),
    ("10 00", "1000"),
    ("[0, 12.5]", "0<x<12.5"),
    ("y > 3", "x > 3"),
    (r"\emptyset", "0"),
    ("2^{50000} + 1", "2^{50000}"),
    ("3000! + 1", "3000!"),
    (r"\pi + 10^{-300}", r"\pi"),
    (r"\pi + 10^{-150}", r"\pi"),
    (r"\pi^{500} + 1", r"\pi^{500}"),
    (r"\sin \pi + 10^{-400}", "0"),
    (r"\tan(\pi/2)", "0"),
    (r"1/\sin\pi", "0"),
    (r"\sin(10^{300})", "0"),
    (r"10^{-400} \sin(10^{300})", "0"),
    (r"\cos(10^{-200})", "1"),
    (r"\tan(10^{-100})", r"\sin(10^{-100})"),
    (r"\sinh 1000", r"\cosh 1000"),
    ("2^{10^{-300}}", "1"),
    ("y = x + 10^{-300}", "y = x"),
    ("1,000", "(1,0)"),
    ("10,000", "10,0"),
    ("1,000,200", "1,0,200"),
    (r"\pi = 5", "5"),
    ("e = 5", "5"),
    ("i = 5", "5"),
    ("5 m/s", "5 m/h"),
    ("5 cm^2", "5 cm"),
    (r"5\text{ cm}^2", r"5\text{ cm}"),
    ("5 cm²", "5 cm"),
    ("5 wrong", "5"),
    ("3 less", "3"),
    (r"30^\circ", "30 radians"),
    ("30 radians", r"30^\circ"),
    ("30°", "30 rad"),
    ("$5", "5 euros"),
    ("5€", "5 dollars"),
    ("5 km/h", "5 km"),
    ("5 square feet", "5 feet"),
    ("5 miles", "5 miles per hour"),
    ("5 M", "5"),
    ("25%", "25 cents"),
    ("30°C", "30°F"),
    ("5 wrong apples", "5"),
    ("1 wrong", "1"),
    ("5 incorrect", "5"),
    ("5 was", "5"),
    ("[0,1]", "(0,1)"),
    ("]0,1[", "[0,1]"),
    (r"\{1,2\}", "(1,2)"),
    (r"\sin 30^\circ", r"\sin 30"),
    (r"5^\circ", "5 cm"),
    (r"\tan^{-1} x", r"\frac{1}{\tan x}"),
    ("5 squared", "5"),
    ("5 cm/s", "5 s/cm"),
    (r"\mathbb{R}", r"\mathbb{Z}"),
    ("R", r"\mathbb{Q}"),
    ("5 = 5", "6"),
    ("5 m^2", "5 m^3"),
    ("3 fewer", "3"),
    ("5 false", "5"),
    ("5 km", "5 m"),
    (r"5\text{ tons}", r"5\text{ pounds}"),
    (r"5\text{ decades}", r"5\text{ years}"),
    (r"5\text{ kilojoules}", r"5\text{ joules}"),
    (r"5\text{ revolutions}", r"5^\circ"),
    (r"5\text{ revolutions}", r"5\text{ degrees}"),
    (r"5\text{ arcminutes}", r"5^\circ"),
    (r"5\text{ quarts}", r"5\text{ gallons}"),
    (r"5\text{ knots}", r"5\text{ mph}"),
    ("5 knots", "5 mph"),
    (r"5\text{ acres}", r"5\text{ square feet}"),
    ("5 acres", r"5\text{ ft}^2"),
    ("5 pesos", r"\$5"),
    (r"5\text{ pesos}", r"\$5"),
    (r"5\text{ crores}", "5"),
    (r"5\text{ lakhs}", "5"),
    (r"5\text{ cannot answers}", "5"),
    (r"\boxed{5}\boxed{6}", "30"),
    (r"\boxed{5} \boxed{6}", "30"),
    (r"\infty-\infty", "0"),
    (r"\infty - \infty + 5", "5"),
    (r"\{\emptyset\}", r"\emptyset"),
    (r"\{1,\{2\}\}", r"\{1,2\}"),
    (r"\{\{2\}\}", "2"),
    (r"\{\{2\}\}", r"\{2\}"),
    (r"\{\{1\},\{2\}\}", r"\{1,2\}"),
    (r"\{\{1,2\}\}", r"\{1,2\}"),
    ("5 apples", "5 pears"),
    (r"5\text{ apples}", r"5\text{ pears}"),
    ("5 dozen", "5"),
    ("5K", "5"),
    ("5 N", "5"),
    ("x_1=3, x_2=4", "x_1=4, x_2=3"),
    ("x=2, y=3", "2,3"),
    ("2,1", "a_1=1, a_2=2"),
    ("5 has", "5"),
    ("(x,y)=(1,2)", "(y,x)=(1,2)"),
    ("AB=5", "AC=5"),
    ("AB=0", "0"),
    (r"\angle A=30^\circ", r"\angle B=30^\circ"),
    ("(1,2)", r"\mathbb{R}\setminus\{1,2\}"),
    ("12 units squared", "144"),
    (r"5\text{ million dollars}", "5"),
    ("5 hundred apples", "5"),
    (r"1/\infty-1/\infty", "0"),
    (r"5\text{ cm}", r"5\text{ apples}"),
    ("12 squared", "12"),
    ("5 blorps", "5 glips"),
    (r"5\text{ minutes}", r"5\text{ months}"),
    ("5 grams", "5 kilograms"),
    ("5 megajoules", "5 joules"),
    (r"(1,\{2\})", "(1,2)"),
]


def test_usual_spellings_are_right() -> None:
    for given, gold in SAME:
        assert same_answer(given, gold)


def test_small_differences_and_misread_texts_are_wrong() -> None:
    for given, gold in DIFFERENT:
        assert not same_answer(given, gold)


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
