"""The marks of a mathematical answer: numbers, letters, names of LaTeX, signs."""

from __future__ import annotations

import re

INVERSE = {name: f"a{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")}
"""Trigonometric functions -> what they are written as with the exponent -1."""
FUNCTIONS = {
    *INVERSE,
    *INVERSE.values(),
    *(f"arc{name}" for name in INVERSE),
    *("ln", "log", "exp", "sqrt", "abs"),
}
_CONSTANTS = {"pi", "infty", "inf", "infinity", "oo"}
_TOKEN = re.compile(
    r"\s*(?:((?:\d+\.\d+|\d+|\.\d+)(?:[eE][-+]?\d{1,3}(?!\d))?)|\\([a-zA-Z]+|\\|\{|\})"
    r"|(" + "|".join(sorted(FUNCTIONS | _CONSTANTS, key=len, reverse=True)) + r")(?![a-zA-Z])|(\*\*|.))",
    re.DOTALL,
)
_DROPPED = re.compile(
    r"\\(?:left|right|displaystyle|limits|big|Big|bigl|bigr|Bigl|Bigr)(?![a-zA-Z])|\\[!,;:> ]|~|\\?\$|\\[()\[\]]"
    r"|\\?%|\\(?:quad|qquad)(?![a-zA-Z])"
)
_DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))|°")
_SAME = {
    **{"dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "times": "*", "cdot": "*", "div": "/", "ast": "*"},
    **{"dbinom": "binom", "tbinom": "binom", "leq": "le", "leqslant": "le", "geq": "ge", "geqslant": "ge"},
    **{"neq": "ne", "lt": "<", "gt": ">", "lvert": "|", "rvert": "|", "vert": "|", "lbrace": "{", "rbrace": "}"},
    **{"varnothing": "emptyset", "varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta", "colon": ":"},
    **{"rightarrow": "to", "langle": "(", "rangle": ")"},
}
_SIGNS = {"*", "/", "<", ">", "|", ":", "(", ")"}


def tokens(text: str) -> list[str]:
    r"""Return the marks of a text: numbers, letters, names with a backslash, signs.

    >>> tokens(r"2x + \pi")
    ['2', 'x', '+', '\\pi']
    """
    found = []
    for number, command, name, sign in _TOKEN.findall(_DROPPED.sub(" ", _DEGREES.sub(r" \\degree ", text))):
        if number:
            found.append(number)
        elif command or name:
            word = _SAME.get(command or name, command or name)
            found.append(word if word in _SIGNS else f"\\{word}")
        elif sign.strip():
            found.append({"**": "^", "{": "{", "}": "}"}.get(sign, sign))
    return found
