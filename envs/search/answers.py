"""Comparing answers: normalisation, exact match and token F1, as published with SQuAD (Rajpurkar et al. 2016)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset(("yes", "no", "noanswer"))


def normalise(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation, articles and runs of white space.

    >>> normalise("The  U.S. Army, 1,234 men")
    'us army 1234 men'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Sequence[str], form: Callable[[str], str] = normalise) -> bool:
    """Return whether the prediction equals one of the accepted answers after normalisation.

    Where normalisation leaves nothing of the prediction, as of "The The", it must be the answer as it stands.

    Args:
        prediction: The answer.
        answers: Accepted ones.
        form: Normalisation.

    >>> exact_match("a Danube.", ["the Danube"])
    True
    """
    found = form(prediction)
    if not found:
        bare = prediction.strip().casefold()
        return bool(bare) and any(bare == answer.strip().casefold() for answer in answers)
    return any(found == form(answer) for answer in answers)


def f1(prediction: str, answers: Sequence[str], form: Callable[[str], str] = normalise) -> float:
    """Return the best harmonic mean of token precision and recall over the accepted answers.

    Where one side is a bare yes or no and the other differs the score is 0, as HotpotQA's evaluator has it.

    >>> round(f1("Danube river", ["the Danube"]), 4)
    0.6667
    """
    if not form(prediction):
        return float(exact_match(prediction, answers, form))
    return max((_one_f1(form(prediction), form(answer)) for answer in answers), default=0.0)


def _one_f1(prediction: str, answer: str) -> float:
    if prediction == answer:
        return 1.0
    if prediction in _CLOSED or answer in _CLOSED:
        return 0.0
    mine, theirs = prediction.split(), answer.split()
    shared = sum((Counter(mine) & Counter(theirs)).values())
    return 2 * shared / (len(mine) + len(theirs)) if shared else 0.0


def chosen_letter(prediction: str, choices: Sequence[str], form: Callable[[str], str] = normalise) -> str:
    """Return the letter of the option that an answer names, by letter or by text; empty for none.

    >>> chosen_letter("(B)", ["one", "two"]), chosen_letter("Two.", ["one", "two"]), chosen_letter("x", ["one"])
    ('B', 'B', '')
    """
    letters = string.ascii_uppercase[: len(choices)]
    stripped = prediction.strip().strip("().:").strip()
    if len(stripped) == 1 and stripped.upper() in letters:
        return stripped.upper()
    named = re.match(r"\(?([A-Za-z])[).:]\s", prediction.strip())
    if named and named[1].upper() in letters:
        return named[1].upper()
    found = [letter for letter, choice in zip(letters, choices, strict=True) if exact_match(prediction, [choice], form)]
    return found[0] if len(found) == 1 else ""
