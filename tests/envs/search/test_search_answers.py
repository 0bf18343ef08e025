"""The published comparison of answers, on cases whose outcome was worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.search.answers import chosen_letter, exact_match, f1, normalise
from turngym.envs.search.env import SearchQA
from turngym.envs.search.wide_match import normalise_wide
from turngym.envs.tools.questions.judges import find_judge
from turngym.envs.tools.questions.reading import FileTask

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
    ("", [""], False, 0.0),
    ("", ["!!!"], False, 0.0),
    ("", ["The The"], False, 0.0),
    ("the", ["a"], False, 0.0),
    ("the the", ["The The"], True, 1.0),
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


def test_normalisation() -> None:
    for text in NORMAL:
        assert normalise(text) == NORMAL[text]


def test_scores() -> None:
    for prediction, answers, match, score in SCORES:
        assert exact_match(prediction, answers) is match
        assert f1(prediction, answers) == pytest.approx(score, abs=1e-12)


def test_there_are_sixty_cases() -> None:
    assert len(NORMAL) + len(SCORES) >= 60


@given(st.text(), st.text())
def test_f1_is_symmetric_between_0_and_1_and_1_for_equal_texts(first: str, second: str) -> None:
    assert f1(first, [second]) == pytest.approx(f1(second, [first]))
    assert 0 <= f1(first, [second]) <= 1
    assert f1(first, [first]) == exact_match(first, [first]) == bool(first.strip())


@given(st.text(), st.lists(st.text(), max_size=3))
def test_an_exact_match_has_f1_of_1(prediction: str, answers: list[str]) -> None:
    if exact_match(prediction, answers):
        assert f1(prediction, answers) == 1.0


CHOICES = ["aspirin", "an antibiotic", "rest", "B"]


THE_LETTER_OF_A_CHOICE: list[tuple[str, str]] = [
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
]


def test_the_letter_of_a_choice() -> None:
    for prediction, letter in THE_LETTER_OF_A_CHOICE:
        assert chosen_letter(prediction, CHOICES) == letter


WIDE = [
    ("\u201cDon\u2019t Look Now\u201d", "Don't Look Now"),
    ("1914\u20131918", "1914-1918"),
    ("well\u2011known", "well-known"),
    ("Pele\u0301", "Pel\u00e9"),
    ("Dan\u200bube\ufeff", "Danube"),
    ("co\u00adoperation", "cooperation"),
    ("seven", "7"),
    ("twenty-one", "21"),
    ("One hundred and five", "105"),
    ("2 million", "two million"),
    ("Three thousand two hundred", "3,200"),
    ("\ufb01sh", "fish"),
    ("STRASSE", "Stra\u00dfe"),
    ("New\u00a0York", "New York"),
    ("\u22125", "-5"),
    ("C\u266f", "C#"),
]
NARROW = [
    ("seven", "70"),
    ("1914-1918", "1914"),
    ("twenty two", "20 3"),
    ("Danube", "Danubio"),
    ("one two", "12"),
    ("", "a"),
]


def test_the_wider_judge_sees_through_typography_and_number_words() -> None:
    for given_answer, gold in WIDE:
        assert exact_match(given_answer, [gold], normalise_wide) and exact_match(gold, [given_answer], normalise_wide)


@pytest.mark.parametrize(("given_answer", "gold"), NARROW)
def test_the_wider_judge_tells_different_answers_apart(given_answer: str, gold: str) -> None:
    assert exact_match(given_answer, [gold], normalise_wide) == exact_match(given_answer, [gold])


THE_WIDER_FORM_KEEPS_THE_SIGNS_OF_NUMBER: list[tuple[str, str]] = [
    ("1.5 million", "15 million"),
    ("1.5 million", "fifteen million"),
    ("-5", "5"),
    ("\u22125", "5"),
    ("-$5", "$5"),
    (".5", "5"),
    ("C#", "C"),
    ("C++", "C"),
    ("C++", "C#"),
    ("!", "\u201c\u201d"),
]


def test_the_wider_form_keeps_the_signs_of_numbers_and_names() -> None:
    for given_answer, gold in THE_WIDER_FORM_KEEPS_THE_SIGNS_OF_NUMBER:
        assert not exact_match(given_answer, [gold], normalise_wide)
        assert not exact_match(gold, [given_answer], normalise_wide)
        assert exact_match(given_answer, [f" {given_answer.lower()} "], normalise_wide)


@pytest.mark.parametrize(("given_answer", "gold"), [("-5", "5"), ("C++", "C"), ("1.5 million", "15 million")])
def test_the_wider_judge_equates_what_the_published_one_does(given_answer: str, gold: str) -> None:
    """As the pages say: the published form drops signs."""
    task = FileTask("a", "question", (gold,))
    assert exact_match(given_answer, [gold]) and find_judge("wide", [task])(task, given_answer).success
    assert not find_judge("exact", [task])(task, given_answer).success


@pytest.mark.parametrize(("match", "is_right"), [("published", False), ("wide", True)])
def test_the_judge_of_search_qa_is_an_option(match: str, is_right: bool) -> None:
    env = SearchQA(size=200, kind="1 hop", match=match)
    env.reset(seed=1)
    answer = env.question.answers[0]
    _, reward, terminated, _, info = env.step(f"<answer>{answer[0]}\u200b{answer[1:]}</answer>")
    assert (reward, terminated, info["success"], info["score"] == 1.0) == (is_right, True, is_right, is_right)


@given(st.text(max_size=30), st.text(max_size=30))
def test_the_wider_judge_of_tasks_accepts_all_that_the_published_one_does(first: str, second: str) -> None:
    for text in filter(str.strip, (first, second, "The  U.S. Army, 1,234 men", "!")):
        task = FileTask("a", "question", (text,))
        for other in (first, text.upper(), f"the {text}."):
            if find_judge("normalised", [task])(task, other).success:
                assert find_judge("wide", [task])(task, other).success
