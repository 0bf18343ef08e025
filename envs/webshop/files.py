"""Catalogues of the published WebShop, read from a folder of the user's.

Two layouts are understood, compressed (``.gz``, ``.xz``) or not:

- small: ``webshop_documents_1k.jsonl`` (a line a product, under ``product``) and ``items_ins_v2_1000.json``;
- full release: ``items_shuffle.json`` or ``items_shuffle_1000.json``, and ``items_ins_v2.json`` or its short form.

Nouns of titles come from ``nouns.json`` (id -> list) where it lies there, else from word lists: see :func:`nouns_of`.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import lzma
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

from turngym.envs.textgames.words import word_list
from turngym.envs.webshop.product import Goal, Product, draw_ceiling
from turngym.envs.webshop.reward import COLOURS
from turngym.errors import ConfigError
from turngym.seeding import stream

PRODUCTS = ("webshop_documents_1k.jsonl", "items_shuffle.json", "items_shuffle_1000.json")
INSTRUCTIONS = ("items_ins_v2_1000.json", "items_ins_v2.json")
_NOUNS = "nouns.json"
_OPENERS: Mapping[str, Callable[..., Any]] = {"": open, ".gz": gzip.open, ".xz": lzma.open}
_DAMAGES = (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, lzma.LZMAError)
_MONEY = re.compile(r"\d[\d,]*\.?\d*")
_SMALL_WORDS = frozenset(
    (
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "has",
        "in",
        "into",
        "is",
        "it",
        "its",
        "new",
        "of",
        "off",
        "on",
        "or",
        "our",
        "out",
        "over",
        "per",
        "pro",
        "s",
        "set",
        "so",
        "t",
        "that",
        "the",
        "this",
        "to",
        "up",
        "us",
        "use",
        "using",
        "with",
        "without",
        "x",
        "you",
        "your",
    )
)


def _find(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        for ending in _OPENERS:
            if (path := folder / f"{name}{ending}").is_file():
                return path
    raise ConfigError(
        f"{str(folder)!r} is not a WebShop catalogue: it needs one of {', '.join(names)}, plain, .gz or .xz. "
        "Leave the option out for the generated shop."
    )


def _open(path: Path) -> IO[str]:
    opened: IO[str] = _OPENERS[path.suffix if path.suffix in _OPENERS else ""](path, "rt", encoding="utf8")
    return opened


def fingerprint(folder: Path) -> str:
    """Return a name for the content of a catalogue's files, from their names, sizes and times of change.

    Raises:
        ConfigError: They are not there.
    """
    parts = [
        f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}"
        for path in (_find(folder, PRODUCTS), _find(folder, INSTRUCTIONS))
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def read_products(folder: Path) -> tuple[Product, ...]:
    """Return the products of a folder, in the order of the file, each id once.

    Raises:
        ConfigError: A file is missing or damaged.
    """
    asked, nouns = _instructions(folder), _nouns(folder)
    found: dict[str, Product] = {}
    path = _find(folder, PRODUCTS)
    try:
        for raw in _raw_products(path):
            asin = str(raw["asin"])
            if asin not in found:
                found[asin] = _product(raw, asin, asked.get(asin, {}), nouns.get(asin))
    except _DAMAGES as error:
        raise ConfigError(f"{path} is damaged ({error!r}): fetch it again.") from error
    return tuple(found.values())


def _raw_products(path: Path) -> Iterator[Mapping[str, Any]]:
    with _open(path) as file:
        if ".jsonl" in path.name:
            for line in file:
                yield json.loads(line)["product"]
        else:
            yield from json.load(file)


def _instructions(folder: Path) -> dict[str, dict[str, Any]]:
    path = _find(folder, INSTRUCTIONS)
    try:
        with _open(path) as file:
            found: dict[str, dict[str, Any]] = json.load(file)
    except _DAMAGES as error:
        raise ConfigError(f"{path} is damaged ({error!r}): fetch it again.") from error
    return found


def _nouns(folder: Path) -> dict[str, list[str]]:
    path = folder / _NOUNS
    found: dict[str, list[str]] = json.loads(path.read_text("utf8")) if path.is_file() else {}
    return found


def _product(raw: Mapping[str, Any], asin: str, asked: Mapping[str, Any], nouns: list[str] | None) -> Product:
    title = str(raw["name"]).strip()
    bullets = raw.get("small_description") or ()
    rating = raw.get("average_rating")
    return Product(
        asin=asin,
        title=title,
        category=tuple(part.strip() for part in str(raw.get("product_category") or "").split("›")),
        query=str(raw.get("query") or "").lower().strip(),
        description=str(raw.get("full_description") or "").strip(),
        bullets=tuple(str(bullet).strip() for bullet in ([bullets] if isinstance(bullets, str) else bullets)),
        attributes=tuple(asked.get("attributes", ())),
        options=_options(raw.get("customization_options") or {}),
        prices=_prices(raw.get("pricing")),
        nouns=nouns_of(title) if nouns is None else frozenset(nouns),
        rating=float(rating) if isinstance(rating, int | float) else math.nan,
    )


def _options(raw: Any) -> dict[str, tuple[str, ...]]:
    """Return option name -> values, in lower case, single blanks between words as in actions.

    A slash in a value would read as a path, so it is set apart.
    """
    if not isinstance(raw, Mapping):
        return {}
    found = {}
    for name, values in raw.items():
        texts = [" ".join(str(value["value"]).replace("/", " | ").lower().split()) for value in values or ()]
        if texts:
            found[str(name).lower()] = tuple(texts)
    return found


def _prices(raw: Any) -> tuple[float, ...]:
    """Return the amounts of a price: numbers, or text such as ``$10.99 to $1,200``."""
    if isinstance(raw, str):
        return tuple(float(amount.replace(",", "")) for amount in _MONEY.findall(raw))
    return tuple(float(amount) for amount in raw or ())[:2]


def nouns_of(title: str) -> frozenset[str]:
    """Return the likely nouns of a title.

    A word counts unless it has fewer than three letters, is a small word such as ``with``, or the word lists know it as
    adjective or verb and not as noun, or it is a colour. The published environment asks a statistical tagger.

    >>> sorted(nouns_of("Red cotton shirt with soft collar"))
    ['collar', 'cotton', 'shirt']
    """
    found = {word for word in re.findall("[a-z]+", title.lower()) if len(word) > 2 and word not in _SMALL_WORDS}
    return frozenset(found - _no_nouns() - set(COLOURS))


@cache
def _no_nouns() -> frozenset[str]:
    return (word_list("adjective") | word_list("verb")) - word_list("noun")


def read_goals(folder: Path) -> tuple[Callable[[Product], tuple[Goal, ...]], frozenset[str]]:
    """Return what makes the goals of a product, and the ids of the products that give any.

    A goal is the product's instruction with one combination of its options; a product without an instruction gives
    none. The price ceiling is drawn from the product's id and the number of the combination.
    """
    asked = _instructions(folder)

    def goals(product: Product) -> tuple[Goal, ...]:
        entry = asked.get(product.asin, {})
        if not entry.get("instruction"):
            return ()
        wanted = tuple(entry["instruction_attributes"])
        made = []
        for number, values in enumerate(itertools.product(*product.options.values())):
            options = dict(zip(product.options, values, strict=True))
            ceiling = draw_ceiling(stream("webshop ceiling", product.asin, number), product.price)
            text = str(entry["instruction"]).rstrip(". ")
            text += "".join(f"{' with' if not i else ', and'} {n}: {v}" for i, (n, v) in enumerate(options.items()))
            text += f", and price lower than {ceiling:.2f} dollars" if ceiling < math.inf else ""
            made.append(Goal(product.asin, text, wanted, options, ceiling))
        return tuple(made)

    return goals, frozenset(asin for asin, entry in asked.items() if entry.get("instruction"))
