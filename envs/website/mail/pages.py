"""The pages of the web mail."""

from __future__ import annotations

from sqlite3 import Connection
from typing import Any

from turngym.envs.website.mail.data import DRAFTS, FIXED, ME, NAV, TRASH
from turngym.envs.website.page import ON, PageMaker, box, button, field, link, select
from turngym.envs.website.site import Get, Request, column, on_page, one, rows, turn_pages


def _list(maker: PageMaker, path: str, request: Request, found: list[Any], with_folder: bool = False) -> None:
    """Add the rows of a list of mails."""
    for number, sender, address, subject, unread, starred, folder in on_page(found, request):
        who = f"to {address or 'nobody'}" if sender == ME else sender
        marks = [name for name, mark in (("unread", unread), ("starred", starred)) if mark == ON]
        marks += [f"in {folder}"] if with_folder else []
        maker.row(link(f"{who}: {subject}", f"/mails/{number}"), ", ".join(marks))
    if not found:
        maker.row("no mails")
    turn_pages(maker, path, request, len(found))


_LISTED = "SELECT id, sender, address, subject, unread, starred, folder FROM mail"


def _folders(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("Folders", NAV)
    query = "SELECT id, name, (SELECT count(*) FROM mail WHERE folder = folder.name) FROM folder ORDER BY id"
    for number, name, count in rows(database, query):
        maker.row(link(name, f"/folders/{number}"), f"{count} mails")
    form = maker.form("/folders")
    maker.row(field("name", "", form), button("Add folder", form))
    return maker


def _folder(database: Connection, request: Request) -> PageMaker | None:
    found = one(database, "SELECT name FROM folder WHERE id = ?", *request.numbers)
    if found is None:
        return None
    maker = PageMaker(f"Folder {found[0]}", NAV)
    mails = rows(database, f"{_LISTED} WHERE folder = ? ORDER BY id", found[0])
    _list(maker, f"/folders/{request.numbers[0]}", request, mails)
    return maker


def _search(database: Connection, request: Request) -> PageMaker:
    maker, words = PageMaker("Search", NAV), request("search")
    form = maker.form("/search", is_search=True)
    maker.row(field("search", words, form), button("Find", form), "in senders and subjects")
    if words:
        query = f"{_LISTED} WHERE instr(lower(sender || ': ' || subject), lower(?)) > 0 ORDER BY id"
        _list(maker, "/search", request, rows(database, query, words), with_folder=True)
    return maker


def _mail(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    query = "SELECT folder, sender, address, subject, text, unread, starred FROM mail WHERE id = ?"
    found = one(database, query, number)
    if found is None:
        return None
    folder, sender, address, subject, text, unread, starred = found
    maker = PageMaker("Mail", NAV)
    maker.row(f"to {address or 'nobody'}" if sender == ME else f"from {sender}, {address}")
    maker.row(f"subject: {subject}")
    maker.row(text or "(no text)")
    if folder == DRAFTS:
        maker.row(link("Edit and send", f"/mails/{number}/edit"))
    else:
        maker.row(link("Reply", f"/mails/{number}/reply"), link("Forward", f"/mails/{number}/forward"))
    form = maker.form(f"/mails/{number}/move")
    folders = column(database, "SELECT name FROM folder ORDER BY id")
    maker.row(select("folder", folder, folders, form), button("Move", form))
    star, read = maker.form(f"/mails/{number}/star"), maker.form(f"/mails/{number}/read")
    buttons = [
        button("Remove star" if starred == ON else "Star", star),
        button("Mark as read" if unread == ON else "Mark as unread", read),
    ]
    if folder != TRASH:
        buttons.append(button("Delete", maker.form(f"/mails/{number}/delete")))
    maker.row(*buttons)
    return maker


def _reply(database: Connection, request: Request) -> PageMaker | None:
    found = one(database, "SELECT address, subject FROM mail WHERE id = ?", *request.numbers)
    if found is None:
        return None
    maker = PageMaker("Reply", NAV)
    form = maker.form(f"/mails/{request.numbers[0]}/reply")
    maker.row(f"to {found[0]}")
    maker.row(f"subject: Re: {found[1]}")
    maker.row(field("text", "", form))
    maker.row(button("Send", form), link("Cancel", f"/mails/{request.numbers[0]}"))
    return maker


def _forward(database: Connection, request: Request) -> PageMaker | None:
    found = one(database, "SELECT subject, text FROM mail WHERE id = ?", *request.numbers)
    if found is None:
        return None
    maker = PageMaker("Forward", NAV)
    form = maker.form(f"/mails/{request.numbers[0]}/forward")
    maker.row(f"subject: Fwd: {found[0]}")
    maker.row(f"text: {found[1]}")
    maker.row(field("to", "", form))
    maker.row(field("comment", "", form))
    maker.row(button("Send", form), link("Cancel", f"/mails/{request.numbers[0]}"))
    return maker


def _writing(maker: PageMaker, path: str, to: str, subject: str, text: str) -> PageMaker:
    form = maker.form(path)
    maker.row(field("to", to, form))
    maker.row(field("subject", subject, form))
    maker.row(field("text", text, form))
    maker.row(box("keep as draft", False, form), button("Send", form))
    return maker


def _compose(database: Connection, request: Request) -> PageMaker:
    return _writing(PageMaker("Compose", NAV), "/compose", "", "", "")


def _edit(database: Connection, request: Request) -> PageMaker | None:
    query = "SELECT address, subject, text FROM mail WHERE id = ? AND folder = ?"
    found = one(database, query, *request.numbers, DRAFTS)
    return found and _writing(PageMaker("Draft", NAV), f"/mails/{request.numbers[0]}/edit", *found)


def _contacts(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("Contacts", NAV)
    found = rows(database, "SELECT id, name FROM contact ORDER BY id")
    for number, name in on_page(found, request):
        maker.row(link(name, f"/contacts/{number}"))
    turn_pages(maker, "/contacts", request, len(found))
    maker.row(link("New contact", "/contacts/new"))
    return maker


def _contact(database: Connection, request: Request) -> PageMaker | None:
    found = one(database, "SELECT name, email, phone FROM contact WHERE id = ?", *request.numbers)
    if found is None:
        return None
    maker = PageMaker(f"Contact {found[0]}", NAV)
    maker.row(f"email {found[1]}")
    maker.row(f"phone {found[2] or 'unknown'}")
    number = request.numbers[0]
    maker.row(link("Edit", f"/contacts/{number}/edit"), button("Delete", maker.form(f"/contacts/{number}/delete")))
    return maker


def _contact_form(maker: PageMaker, path: str, name: str, email: str, phone: str) -> PageMaker:
    form = maker.form(path)
    maker.row(field("name", name, form))
    maker.row(field("email", email, form))
    maker.row(field("phone", phone, form))
    maker.row(button("Save", form))
    return maker


def _edit_contact(database: Connection, request: Request) -> PageMaker | None:
    found = one(database, "SELECT name, email, phone FROM contact WHERE id = ?", *request.numbers)
    path = f"/contacts/{request.numbers[0]}/edit"
    return found and _contact_form(PageMaker("Edit contact", NAV), path, *found)


def _new_contact(database: Connection, request: Request) -> PageMaker:
    return _contact_form(PageMaker("New contact", NAV), "/contacts/new", "", "", "")


def _rules(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("Rules", NAV)
    found = rows(database, "SELECT id, sender, folder FROM rule ORDER BY id")
    for number, sender, folder in on_page(found, request):
        delete = maker.form(f"/rules/{number}/delete")
        maker.row(f"new mails from {sender} go to {folder}", button("Delete", delete))
    turn_pages(maker, "/rules", request, len(found))
    form = maker.form("/rules")
    folders = column(database, "SELECT name FROM folder ORDER BY id")
    maker.row(field("sender", "", form), select("folder", FIXED[0], folders, form), button("Add rule", form))
    return maker


PAGES: dict[str, Get] = {
    "/folders": _folders,
    "/folders/#": _folder,
    "/search": _search,
    "/mails/#": _mail,
    "/mails/#/reply": _reply,
    "/mails/#/forward": _forward,
    "/mails/#/edit": _edit,
    "/compose": _compose,
    "/contacts": _contacts,
    "/contacts/new": _new_contact,
    "/contacts/#": _contact,
    "/contacts/#/edit": _edit_contact,
    "/rules": _rules,
}
"""Path -> what makes the page."""
