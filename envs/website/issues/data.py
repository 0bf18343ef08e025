"""The issue tracker: its tables and their initial content."""

from __future__ import annotations

from sqlite3 import Connection

import numpy as np

from turngym.envs.website import words
from turngym.envs.website.site import Tables, column

NAV = {
    "Issues": "/issues",
    "New": "/issues/new",
    "Labels": "/labels",
    "Milestones": "/milestones",
    "People": "/people",
}
STATUSES = ("open", "closed")
PRIORITIES = ("low", "normal", "high", "urgent")
NOBODY, NONE, ANY = "nobody", "none", "any"
SCHEMA = {
    "person": ("name", "team"),
    "label": ("name",),
    "milestone": ("name",),
    "issue": ("title", "body", "status", "priority", "assignee", "milestone"),
    "issue_label": ("issue", "label"),
    "comment": ("issue", "author", "text"),
}
ME = "you"
_ISSUES = 24


def build(generator: np.random.Generator) -> Tables:
    """Make the content of a tracker."""

    def some(choices: tuple[str, ...], count: int) -> list[str]:
        return [choices[place] for place in generator.permutation(len(choices))[:count].tolist()]

    names, labels, milestones = some(words.FIRST_NAMES, 6), some(words.LABELS, 5), some(words.MILESTONES, 3)
    teams = [words.TEAMS[place % 3] for place in range(6)]
    devices, troubles = some(words.DEVICES, 8), some(words.TROUBLES, 10)
    titles = [f"{device} {trouble}" for device in devices for trouble in troubles]
    chosen = generator.permutation(len(titles))[:_ISSUES].tolist()
    draws = generator.random((_ISSUES, 6)).tolist()
    tables: Tables = {
        "person": [(number, *each) for number, each in enumerate(zip(names, teams, strict=True), 1)],
        "label": [(number, name) for number, name in enumerate(labels, 1)],
        "milestone": [(number, name) for number, name in enumerate(milestones, 1)],
        "issue": [],
        "issue_label": [],
        "comment": [],
    }
    for number, (place, draw) in enumerate(zip(chosen, draws, strict=True), 1):
        body = words.DETAILS[int(draw[0] * len(words.DETAILS))]
        status = STATUSES[draw[1] > 0.75]
        assignee = (*names, NOBODY, NOBODY)[int(draw[3] * 8)]
        milestone = (*milestones, NONE, NONE)[int(draw[4] * 5)]
        priority = PRIORITIES[int(draw[2] * 4)]
        tables["issue"].append((number, titles[place], body, status, priority, assignee, milestone))
        for label in sorted(generator.permutation(5)[: int(draw[5] * 2.6)].tolist()):
            tables["issue_label"].append((len(tables["issue_label"]) + 1, number, label + 1))
        for name in some(tuple(names), int(draw[0] * 2.2)):
            remark = words.REMARKS[int(generator.integers(len(words.REMARKS)))]
            tables["comment"].append((len(tables["comment"]) + 1, number, name, remark))
    return tables


def labels_of(database: Connection, issue: int) -> list[str]:
    """Return the labels of an issue."""
    query = "SELECT name FROM label WHERE id IN (SELECT label FROM issue_label WHERE issue = ?) ORDER BY id"
    return column(database, query, issue)


def people_and_milestones(database: Connection) -> tuple[list[str], list[str]]:
    """Return who an issue can be assigned to, and the milestones it can have."""
    names = column(database, "SELECT name FROM person ORDER BY id")
    return [NOBODY, *names], [NONE, *column(database, "SELECT name FROM milestone ORDER BY id")]
