"""Spellings of mathematical answers: characters, wrappers, thousands, repeating decimals and words in one form."""

from __future__ import annotations

import re

_FRACTIONS = {
    **{"½": "12", "⅓": "13", "⅔": "23", "¼": "14", "¾": "34", "⅕": "15", "⅖": "25", "⅗": "35", "⅘": "45"},
    **{"⅙": "16", "⅚": "56", "⅐": "17", "⅛": "18", "⅜": "38", "⅝": "58", "⅞": "78", "⅑": "19"},
}
_GREEK = {
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta"},
    **{"κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma"},
    **{"τ": "tau", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta"},
    **{"Λ": "Lambda", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega", "ℵ": "aleph"},
}
_SIGNS = {
    **{"∞": "infty", "√": "sqrt", "≤": "le", "≥": "ge", "⩽": "le", "⩾": "ge", "≠": "ne", "∈": "in", "∪": "cup"},
    **{"±": "pm", "∅": "varnothing", "⌊": "lfloor", "⌋": "rfloor", "⌈": "lceil", "⌉": "rceil", "→": "to"},
}
_UNICODE = str.maketrans(
    {
        **{"−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "⁄": "/", "∕": "/", "º": "°"},
        **{sign: rf"\mathbb{{{letter}}}" for sign, letter in zip("ℝℂℤℚℕ", "RCZQN", strict=True)},
        **{"\u00a0": " ", "\u2009": " ", "\u202f": " ", "’": "'", "′": "'", "~": " ", "⟨": "(", "⟩": ")"},
        **{sign: rf"\frac{{{digits[0]}}}{{{digits[1]}}}" for sign, digits in _FRACTIONS.items()},
        **{sign: rf" \{name} " for sign, name in (_GREEK | _SIGNS).items()},
    }
)
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "₀₁₂₃₄₅₆₇₈₉₊₋ₙ"
_BACK = str.maketrans(_RAISED + _LOWERED, "0123456789+-n" * 2)
_INDEX = re.compile(f"([{_RAISED}]+)|([{_LOWERED}]+)")

_MOST_WRAPPERS = 8
_WRAPPER = re.compile(r"\\(?:boxed|fbox|text|textbf|textit|textrm|mbox|mathrm|mathbf)\s*\{")
_MATHS = (("\\(", "\\)"), ("\\[", "\\]"), ("$", "$"))
_BOX = re.compile(r"(?<!\\)\\(?:boxed|fbox)\s*(?=\{)")
_NEXT_BOX = re.compile(r"(?<=[}\d])\s*\\(?:boxed|fbox)\s*(?=\{)")
_INNER_SPACE = re.compile(r"(?<=\{)(?:\\[,;: ])+")
_ANGLE = re.compile(r"\\angle\s?([A-Z])([A-Z])([A-Z])(?![a-zA-Z])")
_BOXED_NUMBER = re.compile(r"^\\(?:boxed|fbox)\s*\{\s*([-+]?[\d.]{1,60})\s*\}(?=\s*(?:\\(?!frac)|[a-zA-Z]))")
_OR = re.compile(
    r"\\(?:text|textrm|mbox|mathrm)\s*\{[\s,]*(?:or|and)[\s,]*\}|\\(?:lor|vee|land|wedge)(?![a-zA-Z])"
    r"|(?<![\\{a-zA-Z])(?:or|and)(?![}a-zA-Z])"
)
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(\{,\}|,\\!|\\[,;: !]|'|,|[ ~])\d{3}(?:\1\d{3})*+(?!\d|,\d|'|\s*/)")
_LIST = re.compile(r"(?<=\d),(?=\d)")
_ZERO_LED = re.compile(r"\d,0\d")
_SCIENTIFIC = re.compile(r"(?<=\d)[eE](?=[-+]?\d)")
_NO_DIGIT = re.compile(r"\D+")
_REPEATING = re.compile(r"(?<!\d)(\d{0,60})\.(\d{0,60})\\(?:overline|bar|dot)\s*(?:\{\s*(\d{1,60})\s*\}|(\d))")


def spelled(text: str) -> str:
    r"""Return an answer without wrappers, its characters and words as the parser reads them.

    >>> spelled(r"\boxed{x²}"), spelled(r"2 \text{ or } 3")
    ('x^{2}', '2  \\or  3')
    """
    text = _INNER_SPACE.sub(" ", _BOXED_NUMBER.sub(r"\1", _INDEX.sub(_index, unwrapped(text))))
    text = _BOX.sub("", _NEXT_BOX.sub(", ", text)).translate(_UNICODE)
    return _OR.sub(r" \\or ", _ANGLE.sub(r"\\angle \1 \2 \3", text)).strip()


def readings(text: str) -> list[str]:
    r"""Return the ways to read the numbers of a spelled answer; a comma or an e between digits has two meanings.

    >>> readings(r"1{,}030"), readings(r"0.1\overline{6}"), readings("1,230"), readings("6e-10")
    (['1030'], ['\\frac{15}{90}'], ['1230', '1, 230'], ['6e-10', '6 e -10'])
    """
    text = _REPEATING.sub(_repeating, text)
    grouped = _GROUPED.sub(lambda found: _NO_DIGIT.sub("", found[0]), text)
    in_list = text if grouped != text and _ZERO_LED.search(text) else _LIST.sub(", ", text)
    found = [grouped, in_list, _SCIENTIFIC.sub(r" \g<0> ", grouped)]
    return list(dict.fromkeys(found if in_list != text else [grouped, *found[2:]]))


def unwrapped(text: str) -> str:
    r"""Return a text without blanks, dollar signs, full stops and commands such as ``\boxed`` around all of it.

    >>> unwrapped(r" $\boxed{\text{Yes}}$. ")
    'Yes'
    """
    for _ in range(_MOST_WRAPPERS):
        inner = text.strip().rstrip(".").removeprefix("=").strip()
        for first, last in _MATHS:
            is_escaped = last == "$" and inner.endswith(r"\$")
            if len(inner) > len(first) and inner.startswith(first) and inner.endswith(last) and not is_escaped:
                inner = inner[len(first) : -len(last)]
        wrapper = _WRAPPER.match(inner)
        if wrapper and inner.endswith("}") and _is_one_group(inner[wrapper.end() : -1]):
            inner = inner[wrapper.end() : -1]
        if inner == text:
            break
        text = inner
    return text


def _is_one_group(inside: str) -> bool:
    """Return whether no brace within a text closes the one before it."""
    depth = 0
    for sign in inside:
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            return False
    return depth == 0


def _index(found: re.Match[str]) -> str:
    return f"{'^' if found[1] else '_'}{{{found[0].translate(_BACK)}}}"


def _repeating(found: re.Match[str]) -> str:
    whole, fixed, period = found[1], found[2], found[3] or found[4]
    top = int(whole + fixed + period) - int((whole + fixed) or 0)
    return rf"\frac{{{top}}}{{{'9' * len(period)}{'0' * len(fixed)}}}"
