"""The 130 pages of MiniWoB++ and where the package has them."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

from turngym.errors import missing_extra

_STYLE_SHEET = re.compile(r'href=["\']([^"\']+\.css)["\']')
_PICTURE = re.compile(r"url\(['\"]?([^)'\"]+\.(?:png|gif|jpg|svg))['\"]?\)")

TASKS: tuple[str, ...] = (
    "ascending-numbers", "bisect-angle", "book-flight", "book-flight-nodelay", "button-delay", "buy-ticket",
    "chase-circle", "choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay", "choose-list",
    "circle-center", "click-button", "click-button-sequence", "click-checkboxes", "click-checkboxes-large",
    "click-checkboxes-soft", "click-checkboxes-transfer", "click-collapsible", "click-collapsible-2",
    "click-collapsible-2-nodelay", "click-collapsible-nodelay", "click-color", "click-dialog", "click-dialog-2",
    "click-link", "click-menu", "click-menu-2", "click-option", "click-pie", "click-pie-nodelay", "click-scroll-list",
    "click-shades", "click-shape", "click-tab", "click-tab-2", "click-tab-2-easy", "click-tab-2-hard",
    "click-tab-2-medium", "click-test", "click-test-2", "click-test-transfer", "click-widget", "copy-paste",
    "copy-paste-2", "count-shape", "count-sides", "daily-calendar", "drag-box", "drag-circle", "drag-cube",
    "drag-items", "drag-items-grid", "drag-shapes", "drag-shapes-2", "drag-single-shape", "drag-sort-numbers",
    "draw-circle", "draw-line", "email-inbox", "email-inbox-delete", "email-inbox-forward", "email-inbox-forward-nl",
    "email-inbox-forward-nl-turk", "email-inbox-important", "email-inbox-nl-turk", "email-inbox-noscroll",
    "email-inbox-reply", "email-inbox-star-reply", "enter-date", "enter-password", "enter-text", "enter-text-2",
    "enter-text-dynamic", "enter-time", "find-greatest", "find-midpoint", "find-word", "focus-text", "focus-text-2",
    "form-sequence", "form-sequence-2", "form-sequence-3", "generate-number", "grid-coordinate", "guess-number",
    "highlight-text", "highlight-text-2", "hot-cold", "hover-shape", "identify-shape", "login-user",
    "login-user-popup", "moving-items", "multi-layouts", "multi-orderings", "navigate-tree", "number-checkboxes",
    "odd-or-even", "order-food", "phone-book", "read-table", "read-table-2", "resize-textarea", "right-angle",
    "scroll-text", "scroll-text-2", "search-engine", "sign-agreement", "simon-says", "simple-algebra",
    "simple-arithmetic", "social-media", "social-media-all", "social-media-some", "stock-market", "terminal",
    "text-editor", "text-transform", "tic-tac-toe", "unicode-test", "use-autocomplete", "use-autocomplete-nodelay",
    "use-colorwheel", "use-colorwheel-2", "use-slider", "use-slider-2", "use-spinner", "visual-addition",
)  # fmt: skip


RELOADED: frozenset[str] = frozenset({
    "book-flight", "book-flight-nodelay", "chase-circle", "choose-date", "choose-date-easy", "choose-date-medium",
    "choose-date-nodelay", "click-menu", "click-menu-2", "click-pie", "click-pie-nodelay", "draw-circle",
    "draw-line", "email-inbox", "email-inbox-delete", "email-inbox-forward", "email-inbox-forward-nl",
    "email-inbox-forward-nl-turk", "email-inbox-important", "email-inbox-nl-turk", "email-inbox-noscroll",
    "email-inbox-reply", "email-inbox-star-reply", "form-sequence", "form-sequence-3", "moving-items",
    "sign-agreement", "use-autocomplete", "use-autocomplete-nodelay", "use-colorwheel", "use-colorwheel-2",
    "use-slider", "use-slider-2", "use-spinner",
})  # fmt: skip
"""Tasks whose page is loaded again at every reset: rewound, it shows something else."""
REWOUND: frozenset[str] = frozenset(TASKS) - RELOADED
"""Tasks whose page is rewound at a reset: what it shows then equals what a fresh load shows, as the tests show."""


@cache
def pages_folder() -> Path:
    """Return the folder ``html`` of the package miniwob, without importing the package.

    Raises:
        MissingExtra: The package is not installed, or has no pages.
    """
    spec = importlib.util.find_spec("miniwob")
    folder = Path(spec.origin).parent / "html" if spec is not None and spec.origin else None
    if folder is None or not (folder / "miniwob" / f"{TASKS[0]}.html").is_file():
        raise missing_extra("MiniWoB", "miniwob", "web")
    return folder.resolve()


@cache
def style_images(task: str) -> tuple[str, ...]:
    """Return the addresses of the images that a page's styles name; they have a size only once they are loaded."""
    page = pages_folder() / "miniwob" / f"{task}.html"
    text = page.read_text("utf8")
    sheets = [page, *((page.parent / link).resolve() for link in _STYLE_SHEET.findall(text))]
    found = [
        (sheet.parent / name).resolve()
        for sheet in sheets
        if sheet.is_file() and "jquery-ui" not in sheet.name
        for name in _PICTURE.findall(sheet.read_text("utf8", errors="replace"))
    ]
    return tuple(sorted({each.as_uri() for each in found if each.is_file()}))


def address(task: str) -> str:
    """Return the address of a task's page."""
    return (pages_folder() / "miniwob" / f"{task}.html").as_uri()
