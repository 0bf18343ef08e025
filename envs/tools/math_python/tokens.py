"""The marks of a mathematical answer: numbers, letters, names of LaTeX, signs."""

from __future__ import annotations

import re

FUNCTIONS = {
    *("sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "ln", "log", "exp", "sqrt", "abs"),
}
_CONSTANTS = {"pi", "infty", "inf", "oo"}
_TOKEN = re.compile(
    r"\s*(?:((?:\d+\.\d+|\d+|\.\d+)(?:[eE][-+]?\d{1,3}(?!\d))?)|\\([a-zA-Z]+|\\|\{|\})"
    r"|(" + "|".join(sorted(FUNCTIONS | _CONSTANTS, key=len, reverse=True)) + r")(?![a-zA-Z])|(\*\*|.))",
    re.DOTALL,
)
_DROPPED = re.compile(
    r"\\(?:left|right|displaystyle|limits|big|Big|bigl|bigr|Bigl|Bigr)(?![a-zA-Z])|\\[!,;:> ]|~|\\?\$|\\[()\[\]]"
    r"|\^\s*(?:\{\s*\\circ\s*\}|\\circ)|°|\\?%|\\(?:degree|quad|qquad)(?![a-zA-Z])"
)
_SAME = {
    **{"dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "times": "*", "cdot": "*", "div": "/", "ast": "*"},
    **{"dbinom": "binom", "tbinom": "binom", "leq": "le", "leqslant": "le", "geq": "ge", "geqslant": "ge"},
    **{"neq": "ne", "lt": "<", "gt": ">", "lvert": "|", "rvert": "|", "vert": "|", "lbrace": "{", "rbrace": "}"},
    **{"varnothing": "emptyset", "varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta", "colon": ":"},
    **{"rightarrow": "to"},
}
_SIGNS = {"*", "/", "<", ">", "|", ":"}


def tokens(text: str) -> list[str]:
    r"""Return the marks of a text: numbers, letters, names with a backslash, signs.

    >>> tokens(r"2x + \pi")
    ['2', 'x', '+', '\\pi']
    """
    found = []
    for number, command, name, sign in _TOKEN.findall(_DROPPED.sub(" ", text)):
        if number:
            found.append(number)
        elif command or name:
            word = _SAME.get(command or name, command or name)
            found.append(word if word in _SIGNS else f"\\{word}")
        elif sign.strip():
            found.append({"**": "^", "{": "{", "}": "}"}.get(sign, sign))
    return found
