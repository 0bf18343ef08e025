"""The issue tracker: issues with labels, milestones, people and comments."""

from __future__ import annotations

from sqlite3 import Connection

from turngym.envs.website.issues.data import (
    ANY,
    ME,
    NAV,
    PRIORITIES,
    SCHEMA,
    STATUSES,
    build,
    labels_of,
    people_and_milestones,
)
from turngym.envs.website.issues.pages import PAGES
from turngym.envs.website.page import ON
from turngym.envs.website.site import Post, Request, Site, address, insert, noted, one, rows, steps_to


def way(database: Connection, path: str) -> tuple[str, ...]:
    """Return the paths that lead to a path: an issue is searched for by its title."""
    steps = steps_to(path)
    if steps[0] != "/issues" or len(steps) < 2 or steps[1] == "/issues/new":
        return steps
    title = one(database, "SELECT title FROM issue WHERE id = ?", int(steps[1].rpartition("/")[2]))[0]
    return ("/issues", address("/issues", {"search": title, "status": ANY}), *steps[1:])


def _exists(database: Connection, table: str, number: int) -> bool:
    return one(database, f"SELECT 1 FROM {table} WHERE id = ?", number) is not None


def _choices(database: Connection, request: Request) -> dict[str, str]:
    """Return what a form chose from lists, as far as the lists offer it."""
    names, milestones = people_and_milestones(database)
    lists = {"status": STATUSES, "priority": PRIORITIES, "assignee": names, "milestone": milestones}
    return {name: request(name) for name, offered in lists.items() if request(name) in offered}


def _save(database: Connection, request: Request) -> str | None:
    (number,) = request.numbers
    if not _exists(database, "issue", number):
        return None
    cells = _choices(database, request)
    if not request("title") or len(cells) < 4:
        return noted(f"/issues/{number}/edit", "title")
    cells["title"] = request("title")
    assigned = ", ".join(f"{name} = ?" for name in cells)
    database.execute(f"UPDATE issue SET {assigned} WHERE id = ?", (*cells.values(), number))
    return noted(f"/issues/{number}", "saved")


def _save_labels(database: Connection, request: Request) -> str | None:
    (number,) = request.numbers
    if not _exists(database, "issue", number):
        return None
    held = labels_of(database, number)
    for label, name in rows(database, "SELECT id, name FROM label ORDER BY id"):
        is_wanted = request(name) == ON
        if is_wanted and name not in held:
            insert(database, "issue_label", number, label)
        elif not is_wanted and name in held:
            database.execute("DELETE FROM issue_label WHERE issue = ? AND label = ?", (number, label))
    return noted(f"/issues/{number}", "saved")


def _comment(database: Connection, request: Request) -> str | None:
    (number,) = request.numbers
    if not _exists(database, "issue", number):
        return None
    if not request("comment"):
        return noted(f"/issues/{number}", "empty")
    insert(database, "comment", number, ME, request("comment"))
    return noted(f"/issues/{number}", "said")


def _create(database: Connection, request: Request) -> str:
    cells = {"status": "open"} | _choices(database, request)
    if not request("title") or len(cells) < 4:
        return noted("/issues/new", "title")
    chosen = [cells[name] for name in ("status", "priority", "assignee", "milestone")]
    return noted(f"/issues/{insert(database, 'issue', request('title'), request('body'), *chosen)}", "created")


def _add_named(table: str, path: str) -> Post:
    def add(database: Connection, request: Request) -> str:
        name = request("name")
        if not name or one(database, f"SELECT 1 FROM {table} WHERE lower(name) = lower(?)", name):
            return noted(path, "name")
        insert(database, table, name)
        return noted(path, "created")

    return add


def _rename_label(database: Connection, request: Request) -> str | None:
    (number,) = request.numbers
    if not _exists(database, "label", number):
        return None
    name = request("name")
    if not name or one(database, "SELECT 1 FROM label WHERE lower(name) = lower(?) AND id <> ?", name, number):
        return noted(f"/labels/{number}", "name")
    database.execute("UPDATE label SET name = ? WHERE id = ?", (name, number))
    return noted(f"/labels/{number}", "saved")


def _delete_label(database: Connection, request: Request) -> str:
    database.execute("DELETE FROM issue_label WHERE label = ?", request.numbers)
    database.execute("DELETE FROM label WHERE id = ?", request.numbers)
    return noted("/labels", "deleted")


SITE = Site(
    name="issues",
    home="/issues",
    nav=NAV,
    schema=SCHEMA,
    gets=PAGES,
    posts={
        "/issues/new": _create,
        "/issues/#/edit": _save,
        "/issues/#/labels": _save_labels,
        "/issues/#/comment": _comment,
        "/labels": _add_named("label", "/labels"),
        "/labels/#": _rename_label,
        "/labels/#/delete": _delete_label,
        "/milestones": _add_named("milestone", "/milestones"),
    },
    notes={
        "saved": "Saved.",
        "said": "Comment added.",
        "created": "Created.",
        "deleted": "Deleted.",
        "empty": "Nothing done: the comment is empty.",
        "title": "Nothing done: an issue needs a title.",
        "name": "Nothing done: the name is empty or taken.",
    },
    build=build,
    way=way,
)
"""The site."""
