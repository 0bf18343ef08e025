r"""Units after mathematical answers: ``120 cm``, ``5 \text{ cm}^2``, ``$180``, ``12 hours``."""

from __future__ import annotations

import re

_NAMES = {
    "cm": ("centimeter", "centimetre"),
    "mm": ("millimeter", "millimetre"),
    "km": ("kilometer", "kilometre"),
    "m": ("meter", "metre"),
    "in": ("inch", "inches"),
    "ft": ("foot", "feet"),
    "yd": ("yard",),
    "mi": ("mile", "mph"),
    "kg": ("kilogram",),
    "mg": ("milligram",),
    "g": ("gram",),
    "lb": ("pound",),
    "oz": ("ounce",),
    "L": ("l", "liter", "litre"),
    "ml": ("milliliter", "millilitre"),
    "s": ("sec", "second"),
    "min": ("minute",),
    "h": ("hr", "hour"),
    "day": (),
    "week": (),
    "month": (),
    "year": ("yr",),
    "dollar": ("usd", "$"),
    "cent": (),
    "euro": ("€",),
    "degree": (),
    "radian": ("rad",),
    "": ("unit",),
}
_KNOWN = {spelling: name for name, others in _NAMES.items() for spelling in (name, *others) if spelling}
_FACTORS = re.compile(
    r"(?:hundred|thousand|million|billion|trillion|dozen|score|gross|tens|half|halve|third|quarter|twice|fold|root|power"
    r"|squared|cubed|factorial|doubled?|tripled?|halved|times|divided|multiplied|inverse|reciprocal|percent|permille"
    r"|percentage|plus|minus|negative|over|below|above|or|and|not|nor|unless|about|maybe|perhaps|kilo|mega|giga|milli"
    r"|base|mod|modulo|binary|octal|hex|hexadecimal|xor|choose|sqrt|sin|cos|tan|cot|sec|csc|log|exp|inf|infty|infinity|oo"
    r"|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh"
    r"|nine)ty|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|\w+teen|\w+tie|\w*hundred|\w*thousand|\w*illion)th)s?",
    re.IGNORECASE,
)
"""Words that change the number before them, so that they must not be dropped as its unit."""
_COMMAND = re.compile(r"\\(?:text|textrm|textbf|mbox|mathrm|operatorname)\s*\{([^{}]{1,60})\}")
_POWER = re.compile(r"\^ ?(?:\{-?\d\}|\d)")
_WORDS = re.compile(r"[a-zA-Z]+(?:\^(?:\{\d\}|\d))?")
_BETWEEN = re.compile(r"[ ./]+")
_LAST_WORD = re.compile(r"(?:\s(?:square|cubic|sq|cu)\.?)?\s{1,4}([a-zA-Z]{2,12})(?:\^(?:\{\d\}|\d))?$")
_SEPARATOR = re.compile(r"(?:\\[,;: ]|\\cdot|[~./]|\s|\\$){1,8}$")
_TAIL = 60
_CURRENCY = re.compile(r"(-?)\s*(?:\\?([$€£])|\\(?:pounds|euro)(?![a-zA-Z]))\s*")


def split_unit(text: str, may_be_short: bool = True) -> tuple[str, str]:
    r"""Return an answer without its unit, and the unit where it is a well-known one.

    Args:
        text: The answer.
        may_be_short: Whether plain words of one or two letters, which could be a product, may be a unit.

    >>> split_unit(r"120\text{ cm}^2"), split_unit("12 hours"), split_unit("$5"), split_unit("5 million")
    (('120', 'cm'), ('12', 'h'), ('5', 'dollar'), ('5 million', ''))
    """
    currency = _CURRENCY.match(text)
    if currency:
        text = currency[1] + text[currency.end() :]
    bare, unit = _without_command(text)
    if bare == text:
        bare, unit = _without_words(text, 1 if may_be_short else 3)
    return bare, unit or (_KNOWN.get(currency[2], "") if currency else "")


def _without_command(text: str) -> tuple[str, str]:
    r"""Cut off units such as ``\text{ m}/\text{s}``."""
    unit = ""
    for _ in range(3):
        start = text.rfind("\\")
        found = _COMMAND.match(text, max(start, 0))
        after = text[found.end() :].strip() if found else ""
        before = _SEPARATOR.sub("", text[:start])
        if not found or (after and not _POWER.fullmatch(after)) or not before or not _is_unit(found[1]):
            break
        text, unit = before, _name(found[1])
    return text, unit


def _without_words(text: str, least: int) -> tuple[str, str]:
    """Cut off words after a plain number, or one well-known unit after anything else."""
    after = text.lstrip("+-0123456789.,/ ")
    bare = text[: len(text) - len(after)].rstrip(" .,/")
    is_number = bool(bare) and bare[-1].isdecimal() and bare[1:].find("+") == bare[1:].find("-") == -1
    if is_number and 0 < len(after) <= _TAIL and len(after) >= least and _is_unit(after):
        return bare, _name(after)
    last = _LAST_WORD.search(text, max(0, len(text) - _TAIL))
    if last and len(last[1]) >= least and _singular(last[1]) in _KNOWN and text[: last.start()].strip():
        return text[: last.start()], _name(last[1])
    return text, ""


def _is_unit(text: str) -> bool:
    """Return whether all words of a text may be a unit: a letter or two only where they are a known one."""
    words = [word for word in _BETWEEN.split(text.strip()) if word]
    return bool(words) and all(map(_may_be_unit, words))


def _may_be_unit(word: str) -> bool:
    if not _WORDS.fullmatch(word):
        return False
    word = word.split("^")[0]
    return word in _KNOWN or (len(word) > 2 and not _FACTORS.fullmatch(word))


def _name(text: str) -> str:
    """Return the known unit that a text names first, else an empty text."""
    words = [_singular(word.split("^")[0]) for word in _BETWEEN.split(text.strip())]
    return next((_KNOWN[word] for word in words if word in _KNOWN), "")


def _singular(word: str) -> str:
    word = word if word in _KNOWN else word.casefold()
    return word.removesuffix("s") if len(word) > 3 and word not in _KNOWN else word
