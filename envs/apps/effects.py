"""Effects of functions on the tables: reading with pages, changing, adding and removing rows of one account."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from turngym.envs.service.tables import Record, Tables
from turngym.envs.website.store import Cell

SCHEMA: Mapping[str, tuple[str, ...]] = {
    "accounts": ("app", "name", "address"),
    "contacts": ("account", "name", "role", "email", "phone", "handle", "group", "birthday"),
    "mails": ("account", "folder", "sender", "to", "subject", "text", "day", "starred", "label"),
    "events": ("account", "title", "day", "start", "minutes", "place"),
    "guests": ("event", "email"),
    "notes": ("account", "title", "text", "tag", "pinned"),
    "wallets": ("account", "cents"),
    "payments": ("account", "direction", "handle", "cents", "note", "day"),
    "requests": ("account", "direction", "handle", "cents", "note", "status"),
    "files": ("account", "folder", "name", "text", "day"),
    "shares": ("file", "email"),
    "songs": ("account", "title", "artist", "album", "year", "seconds"),
    "playlists": ("account", "name"),
    "tracks": ("playlist", "song"),
    "likes": ("account", "song"),
}
"""Table -> columns after the id; songs are in the catalogue, account 0."""
PARENTS: Mapping[str, tuple[str, str]] = {
    "guests": ("event", "events"),
    "shares": ("file", "files"),
    "tracks": ("playlist", "playlists"),
}
"""Table of parts -> the column that names what they belong to, and its table."""
TODAY = "2031-06-16"
PAGE = 6
"""Rows on a page."""
CATALOGUE = 0
Given: TypeAlias = Mapping[str, Any]
"""Arguments of a call, by the names of ``functions``."""
Effect: TypeAlias = Callable[[Tables, int, Given], str]
"""What a function does with tables, account and arguments; returns what its caller reads."""
_OF_ACCOUNT = "account"
_LONGEST_CELL = 4000


as_json = json.JSONEncoder(ensure_ascii=False).encode
"""Writes a value as JSON on one line."""


class Refused(Exception):
    """A call that an app does not carry out."""


def _shown(record: Record, columns: Sequence[str] = ()) -> str:
    names = ("id", *columns) if columns else (name for name in record if name != _OF_ACCOUNT)
    return as_json({name: record[name] for name in names})


def paged(rows: Sequence[Record], columns: Sequence[str], page: int) -> str:
    """Return a page of rows as text, with the numbers of rows and pages."""
    pages = max(1, -(-len(rows) // PAGE))
    if page > pages:
        raise Refused(f"there is no page {page}, the last one is {pages}")
    first = (page - 1) * PAGE
    lines = [f"{len(rows)} found, page {page} of {pages}"]
    return "\n".join([*lines, *(_shown(each, columns) for each in rows[first : first + PAGE])])


def own(tables: Tables, table: str, number: Any, account: int) -> Record:
    """Return a row that belongs to an account.

    Raises:
        Refused: There is none with this id.
    """
    found = tables.get(table, number)
    if found is None or found["account"] not in (account, CATALOGUE):
        raise Refused(f"this account has no {table[:-1]} {number}")
    return found


def lists(table: str, *columns: str, where: Sequence[str] = (), part_of: str = "", catalogue: bool = False) -> Effect:
    """Return the effect of listing rows: those with the given cells, or the parts of a given row."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        cells: dict[str, Cell] = {name: given[name] for name in where}
        if part_of:
            own(tables, PARENTS[table][1], given[part_of], account)
            cells[part_of] = given[part_of]
        else:
            cells["account"] = CATALOGUE if catalogue else account
        return paged(tables.where(table, **cells), columns, given.get("page", 1))

    return effect


def songs_of(table: str) -> Effect:
    """Return the effect of listing the songs that rows of a table name."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        if table == "tracks":
            own(tables, "playlists", given["playlist"], account)
            rows = tables.where(table, playlist=given["playlist"])
        else:
            rows = tables.where(table, account=account)
        songs = [song for song in (tables.get("songs", each["song"]) for each in rows) if song]
        return paged(songs, ("title", "artist", "year", "seconds"), given.get("page", 1))

    return effect


def searches(table: str, inside: Sequence[str], *columns: str, catalogue: bool = False) -> Effect:
    """Return the effect of searching a text, in any case of its letters, in some columns."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        text = given["query"].lower()
        rows = tables.where(table, account=CATALOGUE if catalogue else account)
        found = [each for each in rows if any(text in str(each[name]).lower() for name in inside)]
        return paged(found, columns, given.get("page", 1))

    return effect


def names(table: str, column: str) -> Effect:
    """Return the effect of listing the different values of a column."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        return as_json(sorted({each[column] for each in tables.where(table, account=account)}, key=str))

    return effect


def shows(table: str, key: str) -> Effect:
    """Return the effect of showing a whole row."""
    return lambda tables, account, given: _shown(own(tables, table, given[key], account))


def sets(table: str, key: str, **cells: Cell) -> Effect:
    """Return the effect of changing cells: ``"{name}"`` stands for an argument, anything else for itself."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        own(tables, table, given[key], account)
        return _shown(tables.set(table, given[key], **_filled(cells, given)))

    return effect


def appends(table: str, key: str) -> Effect:
    """Return the effect of adding a line to a text."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        text = f"{own(tables, table, given[key], account)['text']}\n{given['text']}".lstrip("\n")
        if len(text) > _LONGEST_CELL:
            raise Refused(f"a text has at most {_LONGEST_CELL} characters")
        return _shown(tables.set(table, given[key], text=text))

    return effect


def adds(table: str, **cells: Cell) -> Effect:
    """Return the effect of adding a row of the account."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        return _shown(tables.add(table, account=account, **_filled(cells, given)))

    return effect


def removes(table: str, key: str) -> Effect:
    """Return the effect of removing a row with all its parts."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        own(tables, table, given[key], account)
        for parts, (column, parent) in PARENTS.items():
            if parent == table:
                for each in tables.where(parts, **{column: given[key]}):
                    tables.remove(parts, int(each["id"]))
        tables.remove(table, given[key])
        return f"{table[:-1]} {given[key]} is gone"

    return effect


def joins(table: str, column: str) -> Effect:
    """Return the effect of adding a part to a row, or a song to those liked."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        cells = _part(tables, table, column, account, given)
        if tables.where(table, **cells):
            raise Refused(f"{column} {given[column]} is there already")
        return _shown(tables.add(table, **cells))

    return effect


def parts(table: str, column: str) -> Effect:
    """Return the effect of removing a part from a row, or a song from those liked."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        found = tables.where(table, **_part(tables, table, column, account, given))
        if not found:
            raise Refused(f"{column} {given[column]} is not there")
        tables.remove(table, int(found[0]["id"]))
        return f"{column} {given[column]} is taken out"

    return effect


def _part(tables: Tables, table: str, column: str, account: int, given: Given) -> dict[str, Cell]:
    if column == "song":
        own(tables, "songs", given["song"], account)
    if table not in PARENTS:
        return {"account": account, column: given[column]}
    key, parent = PARENTS[table]
    own(tables, parent, given[key], account)
    return {key: given[key], column: given[column]}


def _filled(cells: Mapping[str, Cell], given: Given) -> dict[str, Cell]:
    return {
        name: given[value[1:-1]] if isinstance(value, str) and value.startswith("{") else value
        for name, value in cells.items()
    }


# Mail.


def sends(tables: Tables, account: int, given: Given) -> str:
    """Send a mail: it is then in the folder sent."""
    return _sent(tables, account, given["to"], given["subject"], given["text"])


def replies(tables: Tables, account: int, given: Given) -> str:
    """Answer a mail to its sender."""
    mail = own(tables, "mails", given["mail"], account)
    return _sent(tables, account, str(mail["sender"]), f"Re: {mail['subject']}", given["text"])


def forwards(tables: Tables, account: int, given: Given) -> str:
    """Send a received mail to somebody else, as it is."""
    mail = own(tables, "mails", given["mail"], account)
    return _sent(tables, account, given["to"], f"Fwd: {mail['subject']}", str(mail["text"]))


def _sent(tables: Tables, account: int, to: str, subject: str, text: str) -> str:
    owner = tables.get("accounts", account)
    sender = str(owner["address"]) if owner else ""
    cells: dict[str, Cell] = {
        "sender": sender,
        "to": to,
        "subject": subject,
        "text": text,
        "day": TODAY,
        "starred": "no",
        "label": "",
    }
    return _shown(tables.add("mails", account=account, folder="sent", **cells))


# Payments.


def pays(tables: Tables, account: int, given: Given) -> str:
    """Pay a sum."""
    return _paid(tables, account, given["handle"], given["cents"], given["note"])


def accepts(tables: Tables, account: int, given: Given) -> str:
    """Pay what somebody requests."""
    found = _open_request(tables, account, given["request"], "in")
    shown = _paid(tables, account, str(found["handle"]), int(found["cents"]), str(found["note"]))
    tables.set("requests", given["request"], status="paid")
    return shown


def closes(direction: str, status: str) -> Effect:
    """Return the effect of ending an open request without a payment."""

    def effect(tables: Tables, account: int, given: Given) -> str:
        _open_request(tables, account, given["request"], direction)
        return _shown(tables.set("requests", given["request"], status=status))

    return effect


def _open_request(tables: Tables, account: int, number: int, direction: str) -> Record:
    found = own(tables, "requests", number, account)
    if found["status"] != "open" or found["direction"] != direction:
        raise Refused(f"request {number} is not an open one of direction {direction}")
    return found


def _paid(tables: Tables, account: int, handle: str, cents: int, note: str) -> str:
    wallet = tables.where("wallets", account=account)[0]
    if cents > int(wallet["cents"]):
        raise Refused(f"the balance is {wallet['cents']} cents")
    tables.set("wallets", int(wallet["id"]), cents=int(wallet["cents"]) - cents)
    cells: dict[str, Cell] = {"handle": handle, "cents": cents, "note": note, "day": TODAY}
    return _shown(tables.add("payments", account=account, direction="out", **cells))
