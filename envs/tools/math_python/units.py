r"""Units after mathematical answers: ``120 cm``, ``5 \text{ cm}^2``, ``$180``, ``30^\circ``, ``12 hours``."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TypeAlias

Unit: TypeAlias = frozenset[tuple[str, int]]
"""Names of the units and other words in a unit, each with its power: ``m/s`` is ``{("m", 1), ("s", -1)}``."""

_NAMES = {
    "cm": ("centimeter", "centimetre"),
    "mm": ("millimeter", "millimetre"),
    "km": ("kilometer", "kilometre"),
    "m": ("meter", "metre"),
    "in": ("inch", "inches"),
    "ft": ("foot", "feet"),
    "yd": ("yard",),
    "mi": ("mile",),
    "kg": ("kilogram",),
    "mg": ("milligram",),
    "g": ("gram",),
    "lb": ("pound", "£"),
    "oz": ("ounce",),
    "L": ("l", "liter", "litre"),
    "ml": ("milliliter", "millilitre", "mL"),
    "gallon": ("gal",),
    "quart": ("qt",),
    "pint": ("pt",),
    "ton": (),
    "tonne": (),
    "acre": (),
    "hectare": (),
    "knot": (),
    "N": ("newton",),
    "J": ("joule",),
    "kJ": ("kilojoule",),
    "Hz": ("hertz",),
    "kHz": ("kilohertz",),
    "MHz": ("megahertz",),
    "W": ("watt",),
    "kW": ("kilowatt",),
    "K": ("kelvin",),
    "V": ("volt",),
    "A": ("ampere", "amp"),
    "Pa": ("pascal",),
    "mol": ("mole",),
    "cup": (),
    "s": ("sec", "second"),
    "min": ("minute",),
    "h": ("hr", "hour"),
    "day": (),
    "week": (),
    "month": (),
    "year": ("yr",),
    "decade": (),
    "century": (),
    "ms": ("millisecond",),
    "dollar": ("usd", "$"),
    "cent": ("¢",),
    "euro": ("eur", "€"),
    "degree": (),
    "radian": ("rad",),
    "revolution": ("rev",),
    "arcmin": ("arcminute",),
    "arcsec": ("arcsecond",),
    "celsius": (),
    "fahrenheit": (),
    "": ("unit",),
}
_KNOWN = {spelling: name for name, others in _NAMES.items() for spelling in (name, *others) if spelling}
_SHORT = {"mph": (("mi", 1), ("h", -1)), "kph": (("km", 1), ("h", -1))}
_SYMBOL = re.compile(r"(?<![a-zA-Z])(?:[NJWKVA]|Pa)(?![a-zA-Z])")
"""Units that would be letters of a formula outside of ``\\text{}``."""
_MEASURES = {*_NAMES, "percent"}
_FILLERS = {"more", "each", "total", "left", "different", "distinct", "possible"}
_PLURAL = re.compile(r"(?<=[xz])es$|(?<=[cs]h)es$|(?<=ss)es$|(?<!s)s$")
_SINGULARS = {"people": "person", "men": "man", "women": "woman", "children": "child", "teeth": "tooth"}
_SCALES = {
    **{"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12},
    **{"dozen": 12, "lakh": 10**5, "crore": 10**7},
}
_SCALED = re.compile(
    r"^([-+]?(?:\\?[$€£])?[-+]?)(\d{1,3}(?:,\d{3}){1,3}|\d{1,15})(\.\d{1,12})?(?:\\[,;: ]|\s)*"
    rf"(\\(?:text|textrm|mbox|mathrm)\s*\{{\s*)?({'|'.join(_SCALES)})s?(?![a-zA-Z])"
)
_MOST_SCALES = 3
_CHANGES = re.compile(
    r"(?:hundred|thousand|million|billion|trillion|dozen|lakh|crore|myriad|score|gross|tens|half|halve|third|quarter|twice|fold|root|power"
    r"|squared|cubed|factorial|doubled?|tripled?|halved|times|divided|multiplied|inverse|reciprocal|percent|permille"
    r"|percentage|plus|minus|negative|over|below|above|or|and|not|nor|unless|about|maybe|perhaps|kilo|mega|giga|milli"
    r"|cannot|cant|dont|undefined|unknown|impossible|nothing|none|without|except|less|fewer|short|wrong|incorrect|false|invalid|never|was|has|does|this|its|guesse?|base"
    r"|mod|modulo|binary|octal|hex|hexadecimal|xor|choose|sqrt|sin|cos|tan|cot|sec|csc|log|exp|inf|infty|infinity|oo"
    r"|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh"
    r"|nine)ty|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|\w+teen|\w+tie|\w*hundred|\w*thousand|\w*illion)th)s?",
    re.IGNORECASE,
)
"""Words that change the number before them, so that they must not be dropped as its unit."""
_COUNTED = re.compile(r"\w{2,}[a-z]s|people|men|women|children|teeth|mice|geese|sheep|fish|dice|more|each|total|left")
"""Words for what is counted, of which there is one at least after a number, unless a well-known unit is there."""
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_RAISED = {"squared": 2, "cubed": 3}
_COMMAND = re.compile(r"\\(?:text|textrm|textbf|mbox|mathrm|operatorname)\s*\{([^{}]{1,60})\}")
_FRACTION = re.compile(
    r"\\[dt]?frac\s{0,4}\{(\\\w{2,12}\{[^{}]{1,20}\}(?:\^\d)?)\}\{(\\\w{2,12}\{[^{}]{1,20}\}(?:\^\d)?)\}$"
)
_POWER = re.compile(r"\^ ?(?:\{-?\d\}|\d)")
_PART = re.compile(r"[ .*]*(?:(/)|([a-zA-Z]+)(?:\^ ?(?:\{(-?\d)\}|(\d)))?)")
_SEPARATOR = re.compile(r"(?:\\[,;: ]|\\cdot|[~./]|\s|\\$){1,8}$")
_SINGLE = re.compile(r"[-+]?(?:0{0,3}1|\d{0,9}\.\d{1,9}|\d{1,9}/\d{1,9})")
_TAIL = 60
_MOST_WORDS = 4
_CURRENCY = r"(?:\\?(?P<sign>[$€£¢])|\\(?P<name>pounds|euro)(?![a-zA-Z]))"
_BEFORE, _AFTER = re.compile(rf"(-?)\s*{_CURRENCY}\s*"), re.compile(rf"\s{{0,4}}{_CURRENCY}$")
_DEGREES = re.compile(
    r"(?:\^\s{0,4}(?:\{\s?\\circ\s?\}|\\circ)|°|\\degree)\s{0,4}(?:([CF])|\\(?:text|mathrm)\{\s?([CF])\s?\})?$"
)
_TEMPERATURES = {"C": "celsius", "F": "fahrenheit"}
_TRIGONOMETRIC = re.compile(r"sin|cos|tan|cot|sec|csc")


def split_unit(text: str, least: int = 1) -> tuple[str, Unit]:
    r"""Return an answer without its unit, and the unit.

    The signs for degrees and percent remain: the parser knows them.

    Args:
        text: The answer.
        least: Letters that a plain word needs to be a unit: those of one or two could be a product.

    >>> split_unit("12 apples"), split_unit("5 million")
    (('12', frozenset({('apple', 1)})), ('5 million', frozenset()))
    >>> bare, unit = split_unit(r"120\text{ km}/\text{h}")
    >>> bare, sorted(unit)
    ('120', [('h', -1), ('km', 1)])
    """
    text, unit = _without_currency(text)
    bare, found = _without_command(text)
    if bare == text:
        bare, found = _without_words(text, least)
    unit |= found
    degrees = None if _TRIGONOMETRIC.search(bare) else _DEGREES.search(bare, max(0, len(bare) - _TAIL))
    if degrees:
        scale = degrees[1] or degrees[2]
        bare = bare[: degrees.start()] if scale else bare
        unit |= {(_TEMPERATURES.get(scale, "degree"), 1)}
    elif bare.endswith("%"):
        unit |= {("percent", 1)}
    return bare, unit


def is_one_unit(first: Unit, second: Unit) -> bool:
    """Return whether two units are one, of which one may have further words: ``hours`` and ``hours left``.

    >>> tons, pounds, short_tons = (split_unit(f"5 {name}")[1] for name in ("tons", "pounds", "short tons"))
    >>> is_one_unit(tons, pounds), is_one_unit(tons, short_tons)
    (False, True)
    """
    known = [{part for part in unit if part[0] in _MEASURES} for unit in (first, second)]
    return (known[0] == known[1] or not all(known)) and (first <= second or second <= first)


def scaled(text: str) -> str:
    r"""Return an answer whose number is multiplied by the word after it.

    >>> scaled(r"5\text{ million dollars}"), scaled("1.5 dozen eggs"), scaled("3 thousandths")
    ('5000000\\text{ dollars}', '18 eggs', '3 thousandths')
    """
    for _ in range(_MOST_SCALES):
        found = _SCALED.match(text)
        if found is None:
            break
        number = Decimal(found[2].replace(",", "") + (found[3] or "")) * _SCALES[found[5]]
        command, rest = found[4] or " ", text[found.end() :].lstrip()
        if found[4] and rest.startswith("}"):
            command, rest = " ", rest[1:]
        text = f"{found[1]}{number.normalize():f}{command}{rest}".strip()
    return text


def _without_currency(text: str) -> tuple[str, Unit]:
    before = _BEFORE.match(text)
    found = before or _AFTER.search(text, max(0, len(text) - _TAIL))
    if not found:
        return text, frozenset()
    unit = frozenset({(_KNOWN[_singular(found["sign"] or found["name"])], 1)})
    return (before[1] + text[before.end() :] if before else text[: found.start()]), unit


def _without_command(text: str) -> tuple[str, Unit]:
    r"""Cut off units such as ``\text{ m}/\text{s}``."""
    bare, words = _FRACTION.sub(r"\1/\2", text), ""
    for _ in range(_MOST_WORDS):
        start = bare.rfind("\\")
        found = _COMMAND.match(bare, max(start, 0))
        power = bare[found.end() :].strip() if found else ""
        before = _SEPARATOR.sub("", bare[:start])
        if not found or (power and not _POWER.fullmatch(power)) or not before:
            break
        sign = "/" if "/" in bare[len(before) : start] else " "
        longer = f"{sign}{found[1].strip()}{power}{words}"
        if _read(longer, bool(_SINGLE.fullmatch(before))) is None:
            break
        bare, words = before, longer
    return (bare, _read(words, is_single=True) or frozenset()) if words else (text, frozenset())


def _without_words(text: str, least: int) -> tuple[str, Unit]:
    """Cut off words after a plain number, or well-known units after anything else."""
    after = text.lstrip("+-0123456789.,/{} ")
    bare = text[: len(text) - len(after)]
    is_apart, bare = bare.endswith(" "), bare.rstrip(" .,/")
    is_number = bare.rstrip("}")[-1:].isdecimal() and bare[1:].find("+") == bare[1:].find("-") == -1
    if is_number and 0 < len(after) <= _TAIL and len(after) >= least + (least > 1 and not is_apart):
        unit = None if _SYMBOL.search(after) else _read(after, bool(_SINGLE.fullmatch(bare)))
        if unit is not None:
            return bare, unit
    words = text[-_TAIL:].split(" ")
    for count in range(min(_MOST_WORDS, len(words) - 1), 0, -1):
        tail = " ".join(words[-count:])
        unit = _read(tail, is_known=True) if len(tail) >= max(least, 2) else None
        if unit is not None and text[: -len(tail)].strip():
            return text[: -len(tail)].rstrip(), unit
    return text, frozenset()


def _read(text: str, is_single: bool = False, is_known: bool = False) -> Unit | None:
    """Return the units and other words in a text; None where it may be no unit.

    Args:
        text: Words with powers and slashes.
        is_single: Whether one thing may be counted, or a part of one, so that a word need not be a plural.
        is_known: Whether all words must be well-known units, and longer than a letter.
    """
    found, side, power, is_counted = Counter[str](), 1, 1, is_single
    last: str | None = None
    for word, raised in _words(text):
        name = _KNOWN.get(_singular(word))
        if word in ("/", "per"):
            side = -1
        elif word in _POWERS:
            power = _POWERS[word]
        elif word in _RAISED and last is not None:
            found[last] += side * (_RAISED[word] - 1)
        elif not _may_be_unit(word, is_known):
            return None
        else:
            is_counted = is_counted or name is not None or word in _SHORT or bool(_COUNTED.fullmatch(word))
            last = name
            own = _singular(word)
            for part, count in _SHORT.get(word, ((("" if own in _FILLERS else own) if name is None else name, 1),)):
                found[part] += side * power * raised * count
            power = 1
    if found["celsius"] or found["fahrenheit"]:
        del found["degree"]
    del found[""]
    return frozenset([part for part in found.items() if part[1]]) if is_counted and power == 1 else None


def _may_be_unit(word: str, is_known: bool) -> bool:
    if _singular(word) in _KNOWN or word in _SHORT:
        return len(word) > is_known
    return not is_known and len(word) > 2 and not _CHANGES.fullmatch(word)


def _words(text: str) -> list[tuple[str, int]]:
    """Return the words and slashes of a text with their powers; a word that is no unit where it holds anything else."""
    found, place, text = [], 0, text.strip(" .")
    while place < len(text):
        part = _PART.match(text, place)
        if part is None:
            return [("", 1)]
        found.append((part[1] or part[2], int(part[3] or part[4] or 1)))
        place = part.end()
    return found


def _singular(word: str) -> str:
    word = word if word in _KNOWN else word.casefold() if len(word) > 2 else word
    if word in _KNOWN or len(word) < 3 or (len(word) == 3 and word[:-1] not in _KNOWN):
        return word
    return _SINGULARS.get(word) or (f"{word[:-3]}y" if word.endswith("ies") else _PLURAL.sub("", word))
