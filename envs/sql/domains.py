"""Domains of databases: who does what to what, and where they come from. Plain words that schemas are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

PLACE, PERSON, THING, EVENT = "place", "person", "thing", "event"
ROLES = (PLACE, PERSON, THING, EVENT)
"""Roles of the four tables of every database, in the order in which they can be filled."""


class Domain(NamedTuple):
    """A domain.

    Args:
        nouns: Role -> singular and plural of what a row of its table is.
        amount: Name of the number that every event has.
        kinds: Kinds of things.
        statuses: States of events.
        levels: Levels of persons.
    """

    nouns: Mapping[str, tuple[str, str]]
    amount: str
    kinds: tuple[str, ...]
    statuses: tuple[str, ...]
    levels: tuple[str, ...]

    @property
    def name(self) -> str:
        """Noun of its events."""
        return self.nouns[EVENT][0]


def _domain(nouns: str, amount: str, kinds: str, statuses: str, levels: str) -> Domain:
    """Return a domain; ``nouns`` are singular and plural of place, person, thing and event."""
    words = nouns.split()
    pairs = {role: (words[2 * place], words[2 * place + 1]) for place, role in enumerate(ROLES)}
    return Domain(pairs, amount, tuple(kinds.split()), tuple(statuses.split()), tuple(levels.split()))


DOMAINS = (
    _domain(
        "city cities customer customers product products purchase purchases",
        *("units", "lamp chair desk shelf rug", "open paid sent returned", "bronze silver gold"),
    ),
    _domain(
        "branch branches reader readers book books loan loans",
        *("days", "novel poetry travel history comic", "out back late lost", "child student adult"),
    ),
    _domain(
        "ward wards patient patients treatment treatments visit visits",
        *("minutes", "scan therapy surgery checkup vaccine", "planned held missed billed", "public private staff"),
    ),
    _domain(
        "town towns pupil pupils course courses exam exams",
        *("points", "maths music physics latin sport", "set taken passed failed", "lower middle upper"),
    ),
    _domain(
        "district districts member members training trainings booking bookings",
        *("guests", "yoga boxing rowing spinning climbing", "asked booked attended cancelled", "basic plus family"),
    ),
    _domain(
        "country countries donor donors exhibit exhibits donation donations",
        *("euros", "coin vase mask map statue", "pledged received thanked refused", "friend patron sponsor"),
    ),
    _domain(
        "quarter quarters driver drivers service services repair repairs",
        *("hours", "brakes tyres engine paint battery", "waiting started finished collected", "trade fleet guest"),
    ),
    _domain(
        "suburb suburbs subscriber subscribers play plays ticket tickets",
        *("seats", "drama opera comedy ballet musical", "held bought used refunded", "stalls circle box"),
    ),
    _domain(
        "valley valleys grower growers crop crops delivery deliveries",
        *("crates", "apple barley carrot grape hop", "announced weighed stored rejected", "small medium large"),
    ),
    _domain(
        "state states passenger passengers route routes flight flights",
        *("bags", "short long night charter cargo", "reserved boarded flown dropped", "blue silver black"),
    ),
)
