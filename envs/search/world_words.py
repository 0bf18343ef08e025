"""Words of the generated world: names, values of facts, and the sentences that tell them."""

from __future__ import annotations

from typing import NamedTuple


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


class Relation(NamedTuple):
    """A kind of fact.

    Args:
        of: Kind of thing that it is a fact of.
        to: Kind of thing that it names, or the name of a list of values.
        sentences: Ways to tell it: ``{s}`` is the thing, ``{o}`` the fact.
        phrase: A phrase that stands for the fact: ``{s}`` is the thing; empty where the fact is not a thing.
        question: The question for the fact.
    """

    of: str
    to: str
    sentences: tuple[str, ...]
    phrase: str
    question: str


YEAR = "year"
VALUES = {
    "profession": _split(
        "painter, engineer, surgeon, composer, cartographer, botanist, judge, architect, chemist, sailor, poet, "
        "weaver, astronomer, publisher, sculptor, translator, geologist, printer, violinist, historian"
    ),
    "language": _split(
        "Ardic, Belmish, Corvan, Dorrish, Elvenian, Fennic, Gorlish, Hestian, Ilmaric, Jorvish, Kestrian, Lunish, "
        "Morvic, Nordelian, Ostric, Pelvish, Quorian, Ristic, Solvenian, Tarnish, Ulmic, Vestrian, Wolmish, Yarric"
    ),
    "currency": _split(
        "aldor, brass mark, corvel, dinet, elling, florat, gulter, helm, ingot mark, jorin, korun, lira nova, marek, "
        "norin, ostel, penda, quill, rond, silver tal, tolar, ulder, vent, wenn, zarin"
    ),
    "river": _split(
        "Alder, Brune, Cael, Dorn, Esk, Farrow, Glim, Hesper, Isk, Jarl, Kell, Lorn, Mirren, Nahe, Orrin, Pell, Quern, "
        "Rhame, Silt, Tarn, Urd, Veil, Wend, Yarrow"
    ),
    "kind": _split("novel, opera, painting, film, symphony, play, sculpture, ballet"),
}
"""Facts that are words."""

RELATIONS = {
    "birthplace": Relation(
        "person",
        "city",
        ("{s} was born in {o}.", "{s} came into the world in {o}.", "The birthplace of {s} is {o}."),
        "the city where {s} was born",
        "In which city was {s} born?",
    ),
    "birth year": Relation(
        "person",
        YEAR,
        (
            "{s} was born in the year {o}.",
            "The year of birth was {o}.",
            "Records give {o} as the year of birth of {s}.",
        ),
        "",
        "In which year was {s} born?",
    ),
    "profession": Relation(
        "person",
        "profession",
        ("{s} worked as a {o}.", "By profession {s} was a {o}.", "{s} earned a living as a {o}."),
        "",
        "What was the profession of {s}?",
    ),
    "school": Relation(
        "person",
        "university",
        ("{s} studied at {o}.", "{s} took a degree at {o}.", "As a student {s} attended {o}."),
        "the university that {s} attended",
        "Which university did {s} attend?",
    ),
    "spouse": Relation(
        "person",
        "person",
        ("{s} was married to {o}.", "{s} spent a long life with {o}, to whom {s} was married.", "{o} married {s}."),
        "the spouse of {s}",
        "Who was the spouse of {s}?",
    ),
    "country": Relation(
        "city",
        "country",
        ("{s} is a city in {o}.", "{s} lies in {o}.", "The city of {s} belongs to {o}."),
        "the country to which {s} belongs",
        "To which country does {s} belong?",
    ),
    "founding year": Relation(
        "city",
        YEAR,
        (
            "{s} was founded in {o}.",
            "Its oldest record, of {o}, is that of its founding.",
            "{o} is the year of its founding.",
        ),
        "",
        "In which year was {s} founded?",
    ),
    "river": Relation(
        "city",
        "river",
        ("The river {o} runs through {s}.", "{s} stands on the river {o}.", "Its bridges cross the river {o}."),
        "",
        "Which river runs through {s}?",
    ),
    "capital": Relation(
        "country",
        "city",
        (
            "The capital of {s} is {o}.",
            "{s} is governed from {o}, its capital.",
            "{o} is the seat of the government of {s}.",
        ),
        "the capital of {s}",
        "What is the capital of {s}?",
    ),
    "language": Relation(
        "country",
        "language",
        ("People in {s} speak {o}.", "The language of {s} is {o}.", "{o} is the language spoken in {s}."),
        "",
        "Which language is spoken in {s}?",
    ),
    "currency": Relation(
        "country",
        "currency",
        ("{s} pays with the {o}.", "The currency of {s} is the {o}.", "Its coin is the {o}."),
        "",
        "What is the currency of {s}?",
    ),
    "creator": Relation(
        "work",
        "person",
        ("{s} was created by {o}.", "{o} is the creator of {s}.", "{s} is a work of {o}."),
        "the creator of {s}",
        "Who created {s}?",
    ),
    "kind": Relation(
        "work",
        "kind",
        ("{s} is a {o}.", "Critics know {s} as a {o}.", "In form {s} is a {o}."),
        "",
        "What kind of work is {s}?",
    ),
    "release year": Relation(
        "work",
        YEAR,
        ("{s} first appeared in {o}.", "The public saw {s} in {o}.", "It dates from {o}."),
        "",
        "In which year did {s} appear?",
    ),
    "setting": Relation(
        "work",
        "city",
        ("{s} is set in {o}.", "Its story takes place in {o}.", "{o} is the scene of {s}."),
        "the city in which {s} is set",
        "In which city is {s} set?",
    ),
    "seat": Relation(
        "university",
        "city",
        ("{s} stands in {o}.", "Its halls are in {o}.", "{o} is home to {s}."),
        "the city of {s}",
        "In which city is {s}?",
    ),
    "founder": Relation(
        "university",
        "person",
        ("{s} was founded by {o}.", "{o} founded {s}.", "It owes its founding to {o}."),
        "the founder of {s}",
        "Who founded {s}?",
    ),
    "place": Relation(
        "event",
        "city",
        ("{s} took place in {o}.", "{o} was the scene of {s}.", "It was held in {o}."),
        "the city where {s} took place",
        "In which city did {s} take place?",
    ),
    "event year": Relation(
        "event",
        YEAR,
        ("{s} took place in the year {o}.", "It was the year {o}.", "The date was {o}."),
        "",
        "In which year did {s} take place?",
    ),
    "winner": Relation(
        "event",
        "person",
        ("{s} was won by {o}.", "{o} won {s}.", "The prize went to {o}."),
        "the winner of {s}",
        "Who won {s}?",
    ),
}
"""Every kind of fact by its name."""

FIRST = _split(
    "Al, Bre, Cor, Dan, El, Fir, Gal, Hes, Ir, Jon, Kal, Lor, Mar, Nev, Or, Per, Quin, Ros, Sel, Tor, Ul, Ver"
)
MIDDLE = _split("a, e, i, o, u, an, en, ol, ar, il")
LAST = _split("dric, lin, mond, nor, sha, tis, veth, wyn, bert, gard, mir, ren, thea, dora, vane")
PLACE = _split("burg, ford, haven, mouth, stead, wick, bridge, mere, fell, port, gate, holm")
LAND = _split("ia, land, mark, or, una, esh, avia, onia")
WORK_FIRST = _split("Silent, Golden, Broken, Distant, Hidden, Winter, Crimson, Last, Hollow, Burning, Quiet, Seventh")
WORK_SECOND = _split(
    "Harbour, Mirror, Orchard, Lantern, Garden, Letter, Tower, Compass, Voyage, Shadow, Bell, Threshold"
)
EVENT = _split("Regatta, Debate, Exhibition, Tournament, Rally, Fair")

COMPARISONS = {
    "birth year": ("Who was born earlier, {a} or {b}?", "Who was born later, {a} or {b}?"),
    "founding year": ("Which city was founded earlier, {a} or {b}?", "Which city was founded later, {a} or {b}?"),
    "release year": ("Which appeared first, {a} or {b}?", "Which appeared last, {a} or {b}?"),
    "event year": ("Which took place first, {a} or {b}?", "Which took place last, {a} or {b}?"),
}
"""Fact that is a year -> the questions for the smaller and for the larger one."""

WORKS = ("Among the works of {s} are {o}.", "{s} left {o}.", "The name of {s} stands for {o}.")
TEMPORAL = ("Which of the works of {s} appeared first?", "Which of the works of {s} appeared last?")
