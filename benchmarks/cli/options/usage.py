"""Errors of the command line in one to three lines: what was given, what is expected, where to look."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from difflib import get_close_matches
from functools import partial
from typing import TypeVar

from turngym.benchmarks.cli.options.help import Groups, asks_help, show_help, width
from turngym.errors import ConfigError

ParsedT = TypeVar("ParsedT")
_WIDTH = 100_000
"""Keeps the parser from breaking its lines, which are put together again."""
_BORDER = re.compile(r"[╭╰+][─-]|.*[─-]{10}")
_NEAR = 0.7
_MEANT = {
    "lr": ("--update.learning-rate", "--learning-rate"),
    "learning-rate": ("--update.learning-rate",),
    "wd": ("--update.weight-decay",),
    "batch-size": ("--rollout.groups", "--batch-size"),
    "steps": ("--iterations",),
    "max-steps": ("--iterations", "--max-turns"),
    "epochs": ("--update.epochs", "--epochs"),
    "max-tokens": ("--rollout.max-new-tokens", "--max-new-tokens"),
    "max-new-tokens": ("--rollout.max-new-tokens",),
    "temp": ("--rollout.temperature", "--temperature"),
    "temperature": ("--rollout.temperature",),
    "num-episodes": ("--evaluation.episodes", "--episodes"),
    "n-episodes": ("--evaluation.episodes", "--episodes"),
    "output": ("--out", "--run-dir"),
    "output-dir": ("--out", "--run-dir"),
    "save-dir": ("--out", "--run-dir"),
    "policy": ("--agent", "--model"),
    "envs": ("--num-envs", "--rollout.num-envs"),
    "env-option": ("--env-options", "--option"),
}
"""Names that other tools have -> options that mean the same, the first of them that a command has."""
_KINDS = {
    "INT": "a whole number",
    "FLOAT": "a number",
    "STR": "a text",
    "PATH": "a path",
    "{True,False}": "True or False",
}


def read_words(parse: Callable[[Sequence[str]], ParsedT], argv: Sequence[str], groups: Groups) -> ParsedT:
    """Return what a parser makes of the command line, with its errors in a sentence.

    Args:
        parse: Calls the parser with words.
        argv: The words.
        groups: The options that ``--help`` shows; all if there are none.

    Raises:
        ConfigError: The command line is wrong.
        SystemExit: Help was printed.
    """
    if asks_help(argv):
        show_help(parse, argv, groups)
    heard = io.StringIO()
    try:
        with redirect_stderr(heard), width(_WIDTH):
            return parse(argv)
    except SystemExit as end:
        if end.code in (0, None):
            raise
    raise ConfigError(sentence(heard.getvalue(), argv, partial(_options, parse)))


def _options(parse: Callable[[Sequence[str]], object]) -> list[str]:
    """Return all options of a parser, as its help lists them."""
    heard = io.StringIO()
    with redirect_stdout(heard), width(_WIDTH), suppress(SystemExit):
        parse(["--help"])
    words = re.split(r"[\s│|]+", heard.getvalue())
    return [word for word in words if re.fullmatch(r"--[a-z][\w.-]*", word)]


def suggestion(word: str, options: Sequence[str]) -> str:
    """Return the option that a wrong word may have meant: its usual other name, or the nearest; empty if none is near.

    >>> suggestion("--lr", ["--seed", "--warmup.learning-rate", "--update.learning-rate"])
    '--update.learning-rate'
    >>> suggestion("--agnet", ["--agent", "--seed"]), suggestion("--zzz", ["--agent", "--seed"])
    ('--agent', '')
    """
    name = word.partition("=")[0].lstrip("-").replace("_", "-")
    for meant in _MEANT.get(name, ()):
        if meant in options:
            return meant
    lasts = {option.removeprefix("--").rpartition(".")[2]: option for option in reversed(options)}
    close = get_close_matches(name, [option.removeprefix("--") for option in options], 1, _NEAR)
    if close:
        return f"--{close[0]}"
    close = get_close_matches(name, lasts, 1, _NEAR)
    return lasts[close[0]] if close else ""


def sentence(printed: str, argv: Sequence[str], options: Callable[[], Sequence[str]] = tuple) -> str:
    r"""Return what the parser has printed in a box as one or two sentences.

    >>> sentence("│ Error parsing --seed: invalid literal for int() │\n│ --seed INT │", ["--seed", "x"])
    "--seed takes a whole number, got 'x'."

    Args:
        printed: Output of the parser.
        argv: The words of the command line.
        options: Gives all options, for suggestions.
    """
    rows = printed.splitlines()
    start = next((number for number, row in enumerate(rows) if _BORDER.match(row)), -1)  # the title ends there
    inside = [row.strip().strip("│|").strip() for row in rows[start + 1 :] if not _BORDER.match(row)]
    lines = [row for row in inside if row]
    text = " ".join(lines)
    command = re.search(r"turngym [\w-]+(?= --help)", text)
    more = f" `{command[0]} --help-all` shows all options." if command else ""
    if found := re.match(r"Error parsing (\S+): ", text):
        option = found[1]
        form = re.search(rf"(?m)^(?:\S+, )*{re.escape(option)} (\S.*)$", "\n".join(lines))
        return f"{option} takes {_kind(form[1] if form else '')}, got {_given(option, argv)}.{more}"
    if found := re.match(r"[Mm]issing from turngym [\w-]+: ", text):
        told, _, unknown = "\n".join(lines[1:]).partition("Unrecognized options:\n")
        names = re.findall(r"(?m)^(?:-\w(?: [A-Z]+)?, )?(--[\w.-]+|[A-Z_]+)(?=$|, | \[?[A-Z{\[])", told)
        named = ", ".join(dict.fromkeys(names)) or text.partition(": ")[2].split(" For full")[0]
        words = [row for row in unknown.splitlines() if row.startswith("--")]
        also = f" Unrecognized: {', '.join(words)}.{_hint(words, options)}" if words else ""
        return f"missing: {named}.{also}{more}"
    if found := re.match(r"Unrecognized options: (.*?)(?= Perhaps you meant:| For full helptext|$)", text):
        given = found[1].rstrip(".")
        words = [word for word in given.split(", ") if word.startswith("--")]
        return f"unrecognized options: {given}.{_hint(words, options) or _single(given, argv)}{more}"
    if text.startswith("Missing value for argument"):  # the parser stops here and names no option that it does not know
        known = options()
        words = [word for word in argv if word.startswith("--") and _name(word) not in known]
        more = (f" Unrecognized: {', '.join(words)}.{_hint(words, options)}" if words and known else "") + more
    first = re.split(r" (?:Argument helptext|For full helptext|Perhaps you meant)", text)[0].rstrip(".")
    return f"{first}.{more}"


def _name(word: str) -> str:
    return word.partition("=")[0].replace("_", "-")


def _hint(words: Sequence[str], options: Callable[[], Sequence[str]]) -> str:
    known = options() if words else ()
    found = dict.fromkeys(filter(None, (suggestion(word, known) for word in words)))
    return f" Did you mean {' and '.join(found)}?" if found else ""


def _single(given: str, argv: Sequence[str]) -> str:
    """Return that an option takes one value, if the first unrecognized word follows its value."""
    word = given.partition(", ")[0]
    place = argv.index(word) if word in argv else 0
    option, value = argv[place - 2 : place] if place >= 2 else ("", "")
    is_second = option.startswith("--") and not value.startswith("-")
    return f" {option} takes one value, got {value} and {word}." if is_second else ""


def _kind(form: str) -> str:
    form = form.removeprefix("{None}|").split("  ")[0].strip()
    return _KINDS.get(form, form or "another value")


def _given(option: str, argv: Sequence[str]) -> str:
    """Return what was passed to an option the last time, as it was written."""
    found = None
    for position, word in enumerate(argv):
        name, sign, value = word.partition("=")
        if name.replace("_", "-") == option.replace("_", "-"):
            found = value if sign else next(iter(argv[position + 1 : position + 2]), None)
    return "something else" if found is None else repr(found if len(found) <= 80 else f"{found[:77]}...")
