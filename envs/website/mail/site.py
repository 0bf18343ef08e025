"""The web mail: folders, mails, contacts and rules."""

from __future__ import annotations

from sqlite3 import Connection

from turngym.envs.website.mail.data import DRAFTS, ME, NAV, SCHEMA, SENT, TRASH, build
from turngym.envs.website.mail.pages import PAGES
from turngym.envs.website.page import OFF, ON
from turngym.envs.website.site import Post, Request, Site, address, column, insert, noted, one, steps_to


def way(database: Connection, path: str) -> tuple[str, ...]:
    """Return the paths that lead to a path: a mail is searched for by its subject."""
    steps = steps_to(path)
    if steps[0] == "/folders" and len(steps) > 1:
        return steps
    if steps[0] != "/mails":
        return steps
    found = one(database, "SELECT subject FROM mail WHERE id = ?", int(path.split("/")[2]))
    return ("/search", address("/search", {"search": found[0]}), *steps[1:]) if found else steps


def forwarded(comment: str, text: str) -> str:
    """Return the text of a mail that is passed on.

    >>> forwarded("look", "It rains.")
    'look > It rains.'
    """
    return f"{comment} > {text}".strip()


def _mail(database: Connection, request: Request) -> tuple[str, ...] | None:
    query = "SELECT folder, address, subject, text, unread, starred FROM mail WHERE id = ?"
    found: tuple[str, ...] | None = one(database, query, *request.numbers)
    return found


def _send(database: Connection, to: str, subject: str, text: str, folder: str = SENT) -> int:
    return insert(database, "mail", folder, ME, to, subject, text, OFF, OFF)


def _reply(database: Connection, request: Request) -> str | None:
    found, path = _mail(database, request), f"/mails/{request.numbers[0]}"
    if found is None:
        return None
    if not request("text"):
        return noted(f"{path}/reply", "empty")
    if "@" not in found[1]:
        return noted(f"{path}/reply", "to")
    _send(database, found[1], f"Re: {found[2]}", request("text"))
    return noted(path, "sent")


def _forward(database: Connection, request: Request) -> str | None:
    found, path = _mail(database, request), f"/mails/{request.numbers[0]}"
    if found is None:
        return None
    if "@" not in request("to"):
        return noted(f"{path}/forward", "to")
    _send(database, request("to"), f"Fwd: {found[2]}", forwarded(request("comment"), found[3]))
    return noted(path, "sent")


def _compose(database: Connection, request: Request) -> str:
    is_draft = request("keep as draft") == ON
    if not is_draft and "@" not in request("to"):
        return noted("/compose", "to")
    number = _send(database, request("to"), request("subject"), request("text"), DRAFTS if is_draft else SENT)
    return noted(f"/mails/{number}", "kept" if is_draft else "sent")


def _send_draft(database: Connection, request: Request) -> str | None:
    found, (number,) = _mail(database, request), request.numbers
    if found is None or found[0] != DRAFTS:
        return None
    is_draft = request("keep as draft") == ON
    if not is_draft and "@" not in request("to"):
        return noted(f"/mails/{number}/edit", "to")
    database.execute(
        "UPDATE mail SET folder = ?, address = ?, subject = ?, text = ? WHERE id = ?",
        (DRAFTS if is_draft else SENT, request("to"), request("subject"), request("text"), number),
    )
    return noted(f"/mails/{number}", "kept" if is_draft else "sent")


def _change(name: str, note: str) -> Post:
    """Return what changes one cell of a mail: its folder, or a mark that is turned over."""

    def change(database: Connection, request: Request) -> str | None:
        found, (number,) = _mail(database, request), request.numbers
        if found is None:
            return None
        value = request("folder") if name == "folder" else ON if found[4 if name == "unread" else 5] == OFF else OFF
        if name == "folder" and value not in column(database, "SELECT name FROM folder"):
            return noted(f"/mails/{number}", "folder")
        database.execute(f"UPDATE mail SET {name} = ? WHERE id = ?", (value, number))
        return noted(f"/mails/{number}", note)

    return change


def _delete(database: Connection, request: Request) -> str | None:
    found, (number,) = _mail(database, request), request.numbers
    if found is None:
        return None
    database.execute("UPDATE mail SET folder = ? WHERE id = ?", (TRASH, number))
    (folder,) = one(database, "SELECT id FROM folder WHERE name = ?", found[0])
    return noted(f"/folders/{folder}", "deleted")


def _add_folder(database: Connection, request: Request) -> str:
    name = request("name")
    if not name or one(database, "SELECT 1 FROM folder WHERE lower(name) = lower(?)", name):
        return noted("/folders", "name")
    insert(database, "folder", name)
    return noted("/folders", "saved")


def _fits(request: Request) -> bool:
    return bool(request("name")) and "@" in request("email")


def _add_contact(database: Connection, request: Request) -> str:
    if not _fits(request):
        return noted("/contacts/new", "contact")
    number = insert(database, "contact", request("name"), request("email"), request("phone"))
    return noted(f"/contacts/{number}", "saved")


def _save_contact(database: Connection, request: Request) -> str | None:
    (number,) = request.numbers
    if one(database, "SELECT 1 FROM contact WHERE id = ?", number) is None:
        return None
    if not _fits(request):
        return noted(f"/contacts/{number}/edit", "contact")
    cells = request("name"), request("email"), request("phone")
    database.execute("UPDATE contact SET name = ?, email = ?, phone = ? WHERE id = ?", (*cells, number))
    return noted(f"/contacts/{number}", "saved")


def _remove(table: str, path: str) -> Post:
    def remove(database: Connection, request: Request) -> str | None:
        if one(database, f"SELECT 1 FROM {table} WHERE id = ?", *request.numbers) is None:
            return None
        database.execute(f"DELETE FROM {table} WHERE id = ?", request.numbers)
        return noted(path, "removed")

    return remove


def _add_rule(database: Connection, request: Request) -> str:
    if not request("sender") or request("folder") not in column(database, "SELECT name FROM folder"):
        return noted("/rules", "rule")
    insert(database, "rule", request("sender"), request("folder"))
    return noted("/rules", "saved")


SITE = Site(
    name="mail",
    home="/folders/1",
    nav=NAV,
    schema=SCHEMA,
    gets=PAGES,
    posts={
        "/mails/#/reply": _reply,
        "/mails/#/forward": _forward,
        "/mails/#/edit": _send_draft,
        "/mails/#/move": _change("folder", "moved"),
        "/mails/#/star": _change("starred", "saved"),
        "/mails/#/read": _change("unread", "saved"),
        "/mails/#/delete": _delete,
        "/compose": _compose,
        "/folders": _add_folder,
        "/contacts/new": _add_contact,
        "/contacts/#/edit": _save_contact,
        "/contacts/#/delete": _remove("contact", "/contacts"),
        "/rules": _add_rule,
        "/rules/#/delete": _remove("rule", "/rules"),
    },
    notes={
        "sent": "Sent.",
        "kept": "Kept as a draft.",
        "moved": "Moved.",
        "saved": "Saved.",
        "deleted": "Moved to Trash.",
        "removed": "Deleted.",
        "empty": "Nothing done: the text is empty.",
        "to": "Nothing done: that is no address to send to.",
        "name": "Nothing done: the name is empty or taken.",
        "contact": "Nothing done: a contact needs a name and an address.",
        "folder": "Nothing done: there is no such folder.",
        "rule": "Nothing done: a rule needs a sender and a folder.",
    },
    build=build,
    way=way,
)
"""The site."""
