"""The pages of the issue tracker."""

from __future__ import annotations

from sqlite3 import Connection

from turngym.envs.website.issues.data import (
    ANY,
    NAV,
    NOBODY,
    NONE,
    PRIORITIES,
    STATUSES,
    labels_of,
    people_and_milestones,
)
from turngym.envs.website.page import PageMaker, box, button, field, link, select
from turngym.envs.website.site import Get, Request, column, on_page, one, rows, turn_pages


def _list(maker: PageMaker, path: str, request: Request, found: list[tuple[int, str, str, str, str]]) -> None:
    """Add the rows of a list of issues."""
    for number, title, status, priority, assignee in on_page(found, request):
        maker.row(link(f"#{number} {title}", f"/issues/{number}"), f"{status} {priority} {assignee}")
    if not found:
        maker.row("no issues")
    turn_pages(maker, path, request, len(found))


def _issues(database: Connection, request: Request) -> PageMaker:
    query, status = request("search"), request("status", ANY)
    found = rows(
        database,
        "SELECT id, title, status, priority, assignee FROM issue WHERE instr(lower(title), lower(?)) > 0"
        " AND ? IN (status, 'any') ORDER BY id",
        query,
        status,
    )
    maker = PageMaker("Issues", NAV)
    form = maker.form("/issues", is_search=True)
    maker.row(field("search", query, form), select("status", status, (ANY, *STATUSES), form), button("Find", form))
    _list(maker, "/issues", request, found)
    return maker


def _issue(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT title, body, status, priority, assignee, milestone FROM issue WHERE id = ?", number)
    if found is None:
        return None
    title, body, status, priority, assignee, milestone = found
    labels = ", ".join(labels_of(database, number)) or NONE
    maker = PageMaker(f"Issue #{number}", NAV)
    maker.row(title)
    maker.row(body)
    maker.row(f"status {status}, priority {priority}, assignee {assignee}, milestone {milestone}")
    maker.row(f"labels: {labels}")
    maker.row(link("Edit", f"/issues/{number}/edit"), link("Set labels", f"/issues/{number}/labels"))
    for author, text in rows(database, "SELECT author, text FROM comment WHERE issue = ? ORDER BY id", number)[-4:]:
        maker.row(f"{author}: {text}")
    form = maker.form(f"/issues/{number}/comment")
    maker.row(field("comment", "", form), button("Add comment", form))
    return maker


def _edit(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT title, status, priority, assignee, milestone FROM issue WHERE id = ?", number)
    if found is None:
        return None
    names, milestones = people_and_milestones(database)
    title, status, priority, assignee, milestone = found
    maker = PageMaker(f"Edit issue #{number}", NAV)
    form = maker.form(f"/issues/{number}/edit")
    maker.row(field("title", title, form))
    maker.row(select("status", status, STATUSES, form))
    maker.row(select("priority", priority, PRIORITIES, form))
    maker.row(select("assignee", assignee, names, form))
    maker.row(select("milestone", milestone, milestones, form))
    maker.row(button("Save", form), link("Cancel", f"/issues/{number}"))
    return maker


def _labelling(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT title FROM issue WHERE id = ?", number)
    if found is None:
        return None
    maker = PageMaker(f"Labels of issue #{number}", NAV)
    maker.row(found[0])
    form, held = maker.form(f"/issues/{number}/labels"), labels_of(database, number)
    for name in column(database, "SELECT name FROM label ORDER BY id"):
        maker.row(box(name, name in held, form))
    maker.row(button("Save", form), link("Cancel", f"/issues/{number}"))
    return maker


def _new(database: Connection, request: Request) -> PageMaker:
    names, milestones = people_and_milestones(database)
    maker = PageMaker("New issue", NAV)
    form = maker.form("/issues/new")
    maker.row(field("title", "", form))
    maker.row(field("body", "", form))
    maker.row(select("priority", "normal", PRIORITIES, form))
    maker.row(select("assignee", NOBODY, names, form))
    maker.row(select("milestone", NONE, milestones, form))
    maker.row(button("Create", form))
    return maker


def _labels(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("Labels", NAV)
    query = "SELECT id, name, (SELECT count(*) FROM issue_label WHERE label = label.id) FROM label ORDER BY id"
    for number, name, count in rows(database, query):
        maker.row(link(name, f"/labels/{number}"), f"{count} issues")
    form = maker.form("/labels")
    maker.row(field("name", "", form), button("Add label", form))
    return maker


def _label(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT name FROM label WHERE id = ?", number)
    if found is None:
        return None
    maker = PageMaker(f"Label {found[0]}", NAV)
    form = maker.form(f"/labels/{number}")
    maker.row(field("name", found[0], form), button("Rename", form))
    delete = maker.form(f"/labels/{number}/delete")
    maker.row(button("Delete this label", delete))
    query = "SELECT id, title, status, priority, assignee FROM issue WHERE id IN"
    held = rows(database, f"{query} (SELECT issue FROM issue_label WHERE label = ?) ORDER BY id", number)
    _list(maker, f"/labels/{number}", request, held)
    return maker


def _milestones(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("Milestones", NAV)
    query = "SELECT id, name, (SELECT count(*) FROM issue WHERE milestone = milestone.name) FROM milestone ORDER BY id"
    for number, name, count in rows(database, query):
        maker.row(link(name, f"/milestones/{number}"), f"{count} issues")
    form = maker.form("/milestones")
    maker.row(field("name", "", form), button("Add milestone", form))
    return maker


def _milestone(database: Connection, request: Request) -> PageMaker | None:
    found = one(database, "SELECT name FROM milestone WHERE id = ?", *request.numbers)
    return found and _filtered(database, request, f"Milestone {found[0]}", "milestone", found[0])


def _people(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("People", NAV)
    query = (
        "SELECT id, name, team, (SELECT count(*) FROM issue WHERE assignee = person.name AND status = 'open')"
        " FROM person ORDER BY id"
    )
    for number, name, team, count in rows(database, query):
        maker.row(link(name, f"/people/{number}"), f"team {team}, {count} open issues")
    return maker


def _person(database: Connection, request: Request) -> PageMaker | None:
    found = one(database, "SELECT name FROM person WHERE id = ?", *request.numbers)
    return found and _filtered(database, request, found[0], "assignee", found[0])


def _filtered(database: Connection, request: Request, title: str, name: str, value: str) -> PageMaker:
    """Return the page that lists the issues of one person or milestone."""
    maker = PageMaker(title, NAV)
    query = f"SELECT id, title, status, priority, assignee FROM issue WHERE {name} = ? ORDER BY status DESC, id"
    path = {"assignee": "people", "milestone": "milestones"}[name]
    _list(maker, f"/{path}/{request.numbers[0]}", request, rows(database, query, value))
    return maker


PAGES: dict[str, Get] = {
    "/issues": _issues,
    "/issues/new": _new,
    "/issues/#": _issue,
    "/issues/#/edit": _edit,
    "/issues/#/labels": _labelling,
    "/labels": _labels,
    "/labels/#": _label,
    "/milestones": _milestones,
    "/milestones/#": _milestone,
    "/people": _people,
    "/people/#": _person,
}
"""Path -> what makes the page."""
