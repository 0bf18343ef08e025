"""The published comparison of answers, on cases whose outcome was worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.search.answers import chosen_letter, contains_answer, exact_match, f1, normalise

# text -> normalised
NORMAL = {
    "The Beatles": "beatles",
    "the  beatles ": "beatles",
    "A tale of the city": "tale of city",
    "an apple": "apple",
    "An-apple": "anapple",
    "Thea": "thea",
    "theatre": "theatre",
    "a": "",
    "the": "",
    "": "",
    "U.S.": "us",
    "u.s.a": "usa",
    "1,234": "1234",
    "1.5": "15",
    "$5": "5",
    "5%": "5",
    "O'Brien": "obrien",
    "it's": "its",
    "rock & roll": "rock roll",
    "rock and roll": "rock and roll",
    "state-of-the-art": "stateoftheart",
    "C++": "c",
    "C#": "c",
    "(1999)": "1999",
    "1999-2001": "19992001",
    "Müller": "müller",
    "MÜLLER": "müller",
    "Straße": "straße",
    "İstanbul": "i̇stanbul",
    "naïve": "naïve",
    "\u201cquoted\u201d": "\u201cquoted\u201d",
    "don\u2019t": "don\u2019t",
    "tab\tand\nline": "tab and line",
    "no\u00a0break": "no break",
    "東京": "東京",
    "Yes.": "yes",
    "No!": "no",
}

# prediction, accepted answers -> exact match, F1
SCORES: list[tuple[str, list[str], bool, float]] = [
    ("the Danube", ["Danube"], True, 1.0),
    ("Danube river", ["Danube"], False, 2 / 3),
    ("Danube", ["river Danube", "Danube"], True, 1.0),
    ("Danube", ["river Danube", "the river called Danube"], False, 2 / 3),
    ("", ["Danube"], False, 0.0),
    ("", [""], True, 1.0),
    ("the", ["a"], True, 1.0),
    ("yes", ["yes"], True, 1.0),
    ("Yes.", ["yes"], True, 1.0),
    ("yes it is", ["yes"], False, 0.0),
    ("no", ["yes"], False, 0.0),
    ("no way", ["no doubt"], False, 0.5),
    ("noanswer", ["no answer"], False, 0.0),
    ("1,234", ["1234"], True, 1.0),
    ("1.5", ["15"], True, 1.0),
    ("one", ["1"], False, 0.0),
    ("USA", ["U.S.A."], True, 1.0),
    ("United States", ["United States of America"], False, 2 / 3),
    ("of of of", ["of"], False, 0.5),
    ("of of", ["of the of"], True, 1.0),
    ("a b c d", ["d c b e"], False, 2 * 3 / (3 + 4)),
    ("Paris Paris", ["Paris"], False, 2 / 3),
    ("paris, france", ["Paris France"], True, 1.0),
    ("France Paris", ["Paris France"], False, 1.0),
    ("Jean-Luc", ["Jean Luc"], False, 0.0),
    ("Müller", ["Muller"], False, 0.0),
    ("東京", ["東京"], True, 1.0),
    ("x", [], False, 0.0),
]


@pytest.mark.parametrize("text", NORMAL)
def test_normalisation(text: str) -> None:
    assert normalise(text) == NORMAL[text]


@pytest.mark.parametrize(("prediction", "answers", "match", "score"), SCORES)
def test_scores(prediction: str, answers: list[str], match: bool, score: float) -> None:
    assert exact_match(prediction, answers) is match
    assert f1(prediction, answers) == pytest.approx(score, abs=1e-12)


def test_there_are_sixty_cases() -> None:
    assert len(NORMAL) + len(SCORES) >= 60


@given(st.text(), st.text())
def test_f1_is_symmetric_between_0_and_1_and_1_for_equal_texts(first: str, second: str) -> None:
    assert f1(first, [second]) == pytest.approx(f1(second, [first]))
    assert 0 <= f1(first, [second]) <= 1
    assert f1(first, [first]) == 1.0 and exact_match(first, [first])


@given(st.text(), st.lists(st.text(), max_size=3))
def test_an_exact_match_has_f1_of_1_and_contains_the_answer(prediction: str, answers: list[str]) -> None:
    if exact_match(prediction, answers):
        assert f1(prediction, answers) == 1.0 and contains_answer(prediction, answers)


CHOICES = ["aspirin", "an antibiotic", "rest", "B"]


@pytest.mark.parametrize(
    ("prediction", "letter"),
    [
        ("A", "A"),
        ("a", "A"),
        (" (c) ", "C"),
        ("C.", "C"),
        ("B) an antibiotic", "B"),
        ("b: whatever", "B"),
        ("Aspirin!", "A"),
        ("antibiotic", "B"),
        ("E", ""),
        ("aspirin or rest", ""),
        ("", ""),
        ("D", "D"),
    ],
)
def test_the_letter_of_a_choice(prediction: str, letter: str) -> None:
    assert chosen_letter(prediction, CHOICES) == letter
