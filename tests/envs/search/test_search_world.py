"""The generated world and its questions: true, answerable by reading, and only so."""

import itertools

import numpy as np
import pytest

from turngym.envs.search.questions import KINDS, Question, draw_question
from turngym.envs.search.world import SHARES, World, make_world
from turngym.envs.search.world_words import RELATIONS, VALUES, YEAR

WORLD = make_world(600, 3)


def draws(kind: str, count: int, world: World = WORLD) -> list[Question]:
    generator = np.random.default_rng(0)
    return [draw_question(world, kind, generator) for _ in range(count)]


def test_a_world_has_as_many_documents_as_things_of_every_kind() -> None:
    assert len(WORLD.documents) == len(WORLD.things) == 600
    for kind, share in SHARES.items():
        assert abs(len(WORLD.of_kind(kind)) - share * 600) <= 6
    assert len({document.id for document in WORLD.documents}) == 600
    assert [document.title for document in WORLD.documents] == list(WORLD.things)


def test_worlds_of_other_seeds_and_sizes_are_other_worlds() -> None:
    assert make_world(200, 1).documents != make_world(200, 2).documents
    assert make_world.__wrapped__(200, 1).documents == make_world(200, 1).documents


def test_every_fact_has_its_kind_and_stands_in_the_document_of_its_thing() -> None:
    for name, thing in WORLD.things.items():
        text = WORLD.document(name).text
        needed = {key for key, relation in RELATIONS.items() if relation.of == thing.kind} - {"spouse"}
        assert needed <= thing.facts.keys()
        for relation, fact in thing.facts.items():
            assert fact.lower() in text.lower()
            to = RELATIONS[relation].to
            if to == YEAR:
                assert fact.isdigit()
            elif to in VALUES:
                assert fact in VALUES[to]
            else:
                assert WORLD.things[fact].kind == to
        assert all(work in text for work in thing.works)


def test_spouses_are_married_to_each_other_and_creators_know_their_works() -> None:
    for name, thing in WORLD.things.items():
        if "spouse" in thing.facts:
            assert WORLD.things[thing.facts["spouse"]].facts["spouse"] == name != thing.facts["spouse"]
        if thing.kind == "work":
            assert name in WORLD.things[thing.facts["creator"]].works


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_gold_document_holds_the_answer_and_each_names_the_next(kind: str) -> None:
    by_id = {document.id: document for document in WORLD.documents}
    for question in draws(kind, 150):
        gold = [by_id[name] for name in question.gold]
        answer = question.answers[0]
        assert question.kind == kind and question.text.endswith("?") and len(set(question.gold)) == len(gold)
        assert question.queries == tuple(document.title for document in gold)
        if kind == "comparison":
            assert len(gold) == 2 and all(document.title in question.text for document in gold)
            assert answer in question.queries
        elif kind == "temporal":
            assert 3 <= len(gold) <= 5 and answer in question.queries[1:]
            assert all(title in gold[0].text for title in question.queries[1:])
        else:
            assert len(gold) == int(kind[0])
            assert gold[0].title.lower() in question.text.lower()
            for document, following in itertools.pairwise(gold):
                assert following.title in document.text and following.title not in question.text
            assert answer.lower() in gold[-1].text.lower() and answer.lower() not in question.text.lower()


def test_comparisons_and_temporal_questions_are_answered_by_the_years() -> None:
    year_facts = {"birth year", "founding year", "release year", "event year"}
    seen = set()
    for question in (*draws("comparison", 200), *draws("temporal", 200)):
        names = question.queries if question.kind == "comparison" else question.queries[1:]
        years = {
            name: next(int(fact) for key, fact in WORLD.things[name].facts.items() if key in year_facts)
            for name in names
        }
        is_late = "later" in question.text or "last?" in question.text or "last," in question.text
        assert question.answers[0] == (max if is_late else min)(years, key=years.__getitem__)
        seen.add((question.kind, is_late))
    assert len(seen) == 4


def test_nobody_can_guess_the_answers() -> None:
    """Knowing the words of the world but no document, the best constant guess for each form of question is far off."""
    right = 0
    questions = [question for kind in KINDS[:4] for question in draws(kind, 200)]
    by_form: dict[str, list[str]] = {}
    for question in questions:
        by_form.setdefault(" ".join(question.text.split()[:3]), []).append(question.answers[0])
    for answers in by_form.values():
        right += max(answers.count(answer) for answer in set(answers))
    assert right / len(questions) < 0.25


def test_a_question_survives_json() -> None:
    for kind in KINDS:
        question = draws(kind, 1)[0]
        assert Question.from_json(question.as_json()) == question
