"""Reads a page as a browser would, for tests that need no browser."""

from html.parser import HTMLParser
from typing import Any

from turngym.web.page import environment

VOID = frozenset({"img", "input", "meta", "br"})


def macros(template: str) -> Any:
    """Return the macros of a template."""
    return environment().get_template(template).module


class Reading(HTMLParser):
    """Checks that every element is closed in order, and collects elements, attributes and the text of table rows.

    Args:
        content: The page.
    """

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            return
        self.text += data + " "
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] = f"{self.rows[-1][-1]} {data}".strip()

    def row(self, *starts: str) -> list[str]:
        """Return the only row that has these words at the start of its first cells."""
        found = [row for row in self.rows if all(c.startswith(s) for c, s in zip(row, starts, strict=False))]
        assert len(found) == 1, found
        return found[0]

    def values(self, name: str) -> list[str]:
        """Return every value of an attribute."""
        return [value for _, key, value in self.attributes if key == name]


def assert_harmless(page: Reading, scripts: int) -> None:
    """Demand that a page asks for nothing and runs only its own scripts."""
    assert page.tags.count("script") == scripts
    assert not {"link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert all(value.startswith("data:") for value in page.values("src"))
    assert all(value.startswith("#") for value in page.values("href"))
    assert any(value.startswith("default-src 'none'") for value in page.values("content"))
