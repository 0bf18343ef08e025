"""Texts that a regular expression reads most slowly, derived from the expression itself."""

import ast
import importlib
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from re import _constants as codes  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]

ROOT = Path(__file__).parents[2]
METHODS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split")
SIZES = (320, 2560)
NOTICED = 0.001
_SAMPLES = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_NOT_WORD: ".",
}


class Use(NamedTuple):
    """A regular expression, and how a module applies it."""

    where: str
    pattern: re.Pattern[Any]
    method: str


def _ours(tree: ast.AST) -> Iterator[tuple[str, str, ast.expr]]:
    """Give (name or empty, method, expression) for what a module does with regular expressions."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner, method = node.func.value, node.func.attr
        if isinstance(owner, ast.Name) and method in METHODS and node.args:
            yield owner.id, method, node.args[0]


def uses(folder: str) -> Iterator[Use]:
    """Give every use of a regular expression in the modules of a folder that can be imported here."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        source = path.read_text("utf8")
        if "import re\n" not in source:
            continue
        name = ".".join(("turngym", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for owner, method, argument in set(_ours(ast.parse(source))):
            found = getattr(module, owner, None)
            if isinstance(found, re.Pattern):
                yield Use(f"{name}.{owner}", found, method)
            elif owner == "re" and isinstance(argument, ast.Constant):
                yield Use(f"{name} {argument.value!r}", re.compile(argument.value), method)


def sample(nodes: Any) -> str:
    """Return a short text that a part of an expression matches."""
    return "".join(_one(code, argument) for code, argument in nodes)


def _one(code: Any, argument: Any) -> str:
    if code is codes.LITERAL:
        return chr(argument)
    if code is codes.NOT_LITERAL:
        return "a" if argument != ord("a") else "b"
    if code is codes.ANY:
        return "a"
    if code is codes.IN:
        return _member(argument)
    if code is codes.BRANCH:
        return sample(argument[1][0])
    if code is codes.SUBPATTERN:
        return sample(argument[3])
    if code is codes.ATOMIC_GROUP:
        return sample(argument)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return sample(argument[2]) * max(1, int(argument[0]))
    return ""


def _member(members: Any) -> str:
    if members[0][0] is codes.NEGATE:
        taken = "".join(_member([each]) for each in members[1:])
        return next(letter for letter in "a1 .x" if letter not in taken)
    code, argument = members[0]
    if code is codes.LITERAL:
        return chr(int(argument))
    return str(chr(argument[0] + 1) if code is codes.RANGE else _SAMPLES.get(argument, "a"))


def _parts(nodes: Any) -> Iterator[str]:
    """Give samples of every part of an expression, at any depth."""
    for code, argument in nodes:
        if found := _one(code, argument):
            yield found
        if code is codes.IN:
            yield from (_member([each]) for each in argument if each[0] is not codes.NEGATE)
        elif code is codes.BRANCH:
            for each in argument[1]:
                yield sample(each)
                yield from _parts(each)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _parts(argument[2])
        elif code is codes.SUBPATTERN:
            yield from _parts(argument[3])
        elif code is codes.ATOMIC_GROUP:
            yield from _parts(argument)


class Attack(NamedTuple):
    """A beginning of what matches, one of its parts repeated, and an odd end."""

    start: str
    pump: str
    end: str

    def text(self, length: int) -> str:
        """Return it with so many characters in its middle."""
        return self.start + self.pump * (length // len(self.pump)) + self.end


def attacks(pattern: re.Pattern[Any]) -> Iterator[Attack]:
    """Give what may be slow to read."""
    tree = list(parser.parse(pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin1")))
    while len(tree) == 1 and tree[0][0] is codes.SUBPATTERN:
        tree = list(tree[0][1][3])
    starts = dict.fromkeys(sample(tree[:place]) for place in range(len(tree) + 1))
    pumps = dict.fromkeys(filter(None, [*starts, *_parts(tree), " ", "\n", "a", "1"]))
    for start in starts:
        for pump in pumps:
            for end in ("\0", ""):
                yield Attack(start, pump, end)


def seconds(use: Use, text: str) -> float:
    """Return the processor time of one use."""
    subject: Any = text if isinstance(use.pattern.pattern, str) else text.encode("latin1", "replace")
    method = getattr(use.pattern, use.method)
    begin = time.thread_time()
    if use.method == "sub":
        method(subject[:0], subject)
    elif use.method == "finditer":
        for _ in method(subject):
            pass
    else:
        method(subject)
    return time.thread_time() - begin


def slow(use: Use) -> str:
    """Return a text whose fourfold takes far more than four times as long, empty if none does."""
    for attack in attacks(use.pattern):
        for size in SIZES:
            if seconds(use, attack.text(size)) > NOTICED and is_worse_than_linear(use, attack, size):
                return attack.text(60)
    return ""


def is_worse_than_linear(use: Use, attack: Attack, size: int) -> bool:
    """Return whether two fourfolds of a text each cost eight times as much: linear costs four, quadratic sixteen.

    Two, as one may be measured while the processor changes its clock or does the work of others.
    """
    return all(_growth(use, attack.text(each), attack.text(each // 4)) > 8 for each in (size, 4 * size))


def _growth(use: Use, text: str, quarter: str) -> float:
    pairs = [(seconds(use, text), seconds(use, quarter)) for _ in range(4)]
    return min(pair[0] for pair in pairs) / max(min(pair[1] for pair in pairs), 1e-6)
