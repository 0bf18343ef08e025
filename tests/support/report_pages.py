"""A report that tests read: made-up outcomes, and a reader of its page that checks the markup."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from page_reading import VOID

from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.run import write_report

BEFORE = [0, 0, 1, 0, 1] * 8  # 16 of 40
AFTER = [1, 0, 1, 1, 0] * 8  # 24 of 40: two of five gained, one of five lost
CONTROL = [0, 1, 1, 0, 0] * 8  # 16 of 40
ALL = {
    "warmup-sampled": BEFORE,
    "warmup-greedy": BEFORE,
    "final-sampled": AFTER,
    "final-greedy": [1] * 40,
    "control-sampled": CONTROL,
    "control-greedy": CONTROL,
}


class Page(HTMLParser):
    """Checks that every element is closed in order, and collects tables, texts and attributes."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.places: list[int] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.rows: list[list[str]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")
            self.places.append(len(self.texts[tag]) - 1)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag
        self.places.pop()

    def handle_data(self, data: str) -> None:
        for element, place in zip(self.open, self.places, strict=True):
            self.texts[element][place] += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.replace("\N{NO-BREAK SPACE}", " ")

    def row(self, first: str) -> list[str]:
        (found,) = [row[1:] for row in self.rows if row[0] == first]
        return found


def written(folder: RunFolder, draws: bool = False) -> tuple[str, Page]:
    """Write the report and read it; unless ``draws``, any bytes stand for the learning curve, which is slow to draw."""
    target = write_report(folder, curve=None if draws else Path(__file__))
    assert target == folder.path / "report.html"
    content = target.read_text("utf8")
    return content, Page(content)


def pair_interval(after: Sequence[int], before: Sequence[int]) -> tuple[float, float]:
    """Return the exact-enough interval of a mean difference by another bootstrap than the one under test."""
    differences = np.array(after, float) - np.array(before, float)
    means = np.random.default_rng(5).choice(differences, size=(20_000, len(differences))).mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def numbers(text: str) -> list[float]:
    return [float(found.replace("−", "-")) for found in re.findall(r"[+−]?\d+\.\d", text)]
