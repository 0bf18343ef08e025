"""Pages of the sites: rows of pieces, shown as text to an agent and as HTML to a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Literal, NamedTuple

Kind = Literal["text", "link", "button", "field", "select", "box"]
LONGEST = 120
"""Characters that a field takes."""
ON, OFF = "yes", "no"


class Piece(NamedTuple):
    """One thing on a page.

    Args:
        kind: What it is.
        label: Its text; for a field, list or box the name of its value.
        number: Its number on the page; 0 for text.
        href: Target of a link.
        form: Which form of the page it belongs to.
        value: Value; ``yes`` or ``no`` for a box.
        options: Options of a list.
    """

    kind: Kind
    label: str
    number: int = 0
    href: str = ""
    form: int = -1
    value: str = ""
    options: tuple[str, ...] = ()

    @property
    def is_entry(self) -> bool:
        """True if it holds something that a form sends."""
        return self.kind in ("field", "select", "box")


class Form(NamedTuple):
    """Values sent by a button of the page.

    Args:
        action: The path it is sent to.
        is_search: Whether it only asks for a page, and changes nothing.
    """

    action: str
    is_search: bool = False


class Page(NamedTuple):
    """A page as a site made it, or as a tab shows it with what has been entered.

    Args:
        title: Its title.
        rows: Its pieces, row by row.
        forms: Its forms.
        path: Its path and query within the site; set by the tab that shows it.
    """

    title: str
    rows: tuple[tuple[Piece, ...], ...]
    forms: tuple[Form, ...] = ()
    path: str = ""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All that has a number, in order: the one with number n stands at place n - 1."""
        return tuple([piece for row in self.rows for piece in row if piece.number])

    def holding(self, entered: Mapping[int, str]) -> Page:
        """Return the page with other values in its entries.

        Args:
            entered: Number of a piece -> its value.
        """
        if not entered:
            return self
        rows = [
            [piece._replace(value=entered[piece.number]) if piece.number in entered else piece for piece in row]
            for row in self.rows
        ]
        return self._replace(rows=tuple(map(tuple, rows)))

    def values_of(self, form: int) -> dict[str, str]:
        """Return what a form sends: name -> value, boxes only where they are checked."""
        return {
            piece.label: piece.value
            for piece in self.pieces
            if piece.form == form and piece.is_entry and (piece.kind != "box" or piece.value == ON)
        }


class PageMaker:
    """Puts a page together, and numbers what can be acted on.

    Args:
        title: The page's title.
        nav: Links that stand on top: label -> path.

    >>> page = PageMaker("Memo", {"All": "/memos"})
    >>> form = page.form("/memos/1")
    >>> page.row("memo 1", field("text", "milk", form), button("Save", form))
    >>> print(text_of(page.done()))
    Memo
    [1] All
    memo 1 [2] text = "milk" [3] (Save)
    """

    def __init__(self, title: str, nav: Mapping[str, str]) -> None:
        self._title = title
        self._rows: list[tuple[Piece, ...]] = []
        self._forms: list[Form] = []
        self._count = 0
        self.row(*[link(label, path) for label, path in nav.items()])

    def row(self, *pieces: Piece | str) -> None:
        """Add a row; a string is a piece of text. Empty strings are left out, and so are empty rows."""
        made = []
        for piece in pieces:
            if isinstance(piece, str):
                if piece:
                    made.append(Piece("text", piece))
            else:
                self._count += 1
                made.append(piece._replace(number=self._count))
        if made:
            self._rows.append(tuple(made))

    def form(self, action: str, *, is_search: bool = False) -> int:
        """Add a form, and return its number."""
        self._forms.append(Form(action, is_search))
        return len(self._forms) - 1

    def done(self) -> Page:
        """Return the page."""
        return Page(self._title, tuple(self._rows), tuple(self._forms))


def link(label: str, href: str) -> Piece:
    """Return a link to another page of the site."""
    return Piece("link", label, href=href)


def button(label: str, form: int) -> Piece:
    """Return the button that sends a form."""
    return Piece("button", label, form=form)


def field(name: str, value: str, form: int) -> Piece:
    """Return a field for one line of text."""
    return Piece("field", name, form=form, value=value)


def select(name: str, value: str, options: Sequence[str], form: int) -> Piece:
    """Return a list of which one option is selected, the first where ``value`` is none of them."""
    return Piece("select", name, form=form, value=value if value in options else options[0], options=tuple(options))


def box(name: str, is_checked: bool, form: int) -> Piece:
    """Return a box that is checked or not."""
    return Piece("box", name, form=form, value=ON if is_checked else OFF)


def one_line(text: str) -> str:
    r"""Return a text as a field takes it: one line, only what can be printed, not too long.

    >>> one_line("  two\nwords\x00 ")
    'two words'
    """
    return "".join(char for char in " ".join(text.split()) if char.isprintable())[:LONGEST].strip()


# As text.


def piece_text(piece: Piece) -> str:
    """Return a piece as text.

    >>> piece_text(Piece("select", "status", 4, value="open", options=("open", "closed")))
    '[4] status = open {open, closed}'
    """
    kind, label, number = piece.kind, piece.label, piece.number
    if kind == "text":
        return label
    if kind == "link":
        return f"[{number}] {label}"
    if kind == "button":
        return f"[{number}] ({label})"
    if kind == "field":
        return f'[{number}] {label} = "{piece.value}"'
    if kind == "box":
        return f"[{number}] {label} = {piece.value}"
    return f"[{number}] {label} = {piece.value} {{{', '.join(piece.options)}}}"


def text_of(page: Page) -> str:
    """Return a page as text, a line for its title and one for each row."""
    return "\n".join([page.title, *[" ".join([piece_text(piece) for piece in row]) for row in page.rows]])


# As HTML.

_STYLE = """body{font:14px/1.5 sans-serif;margin:8px 14px;color:#1b1f24}main>div{padding:2px 0}main>div:first-of-type
{border-bottom:1px solid #ccd;margin-bottom:6px}h1{font-size:18px;margin:4px 0}a{color:#0b57a4;margin-right:8px}
label{margin-right:8px}button{font:inherit}input[type=text]{font:inherit;width:24em;max-width:60vw}"""


def html_of(page: Page, base: str) -> str:
    """Return a page as HTML; everything that a site or an agent wrote is escaped.

    Args:
        page: The page.
        base: Prefix of every path of the site in its addresses.
    """
    title = escape(page.title)
    rows = "\n".join(f"<div>{''.join([_piece_html(piece, base) for piece in row])}</div>" for row in page.rows)
    forms = "".join(
        f'<form id="f{number}" method="{"get" if form.is_search else "post"}" action="{escape(base + form.action)}" '
        'autocomplete="off"></form>'
        for number, form in enumerate(page.forms)
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head><body><main><h1>{title}</h1>\n{rows}\n</main>'
        f"{forms}</body></html>"
    )


def _piece_html(piece: Piece, base: str) -> str:
    label, value, form = escape(piece.label), escape(piece.value), f'form="f{piece.form}"'
    if piece.kind == "text":
        return f"<span>{label}</span> "
    number = f'data-n="{piece.number}"'
    if piece.kind == "link":
        return f'<a {number} href="{escape(base + piece.href)}">{label}</a> '
    if piece.kind == "button":
        return f"<button {number} {form}>{label}</button> "
    if piece.kind == "field":
        entry = f'<input type="text" {number} name="{label}" {form} value="{value}">'
    elif piece.kind == "box":
        checked = " checked" if piece.value == ON else ""
        entry = f'<input type="checkbox" {number} name="{label}" {form} value="{ON}"{checked}>'
    else:
        options = "".join(
            f"<option{' selected' if option == piece.value else ''}>{escape(option)}</option>"
            for option in piece.options
        )
        entry = f'<select {number} name="{label}" {form}>{options}</select>'
    return f"<label>{label} {entry}</label> "
