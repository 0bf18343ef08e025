"""The viewer as one file that needs no server: episodes are written into it one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from turngym.benchmarks.pages.viewer.data import Viewer
from turngym.benchmarks.pages.viewer.forms import as_json
from turngym.benchmarks.pages.viewer.page import DATA_END, DATA_START, data_element, page_in_two


def write_page(viewer: Viewer, path: Path, query: str = "", most: int | None = None) -> tuple[int, int]:
    """Write a page with episodes inside; a kill leaves the file as it was.

    Args:
        viewer: Content.
        path: The file.
        query: Words that have to occur in what is known of an episode.
        most: Maximum number of episodes to write; None for no limit.

    Returns:
        How many were written, and how many there were.
    """
    viewer.search()
    for run in viewer.runs:
        run.wait_for()
    chosen: list[int] = []
    found = sum(1 for _ in viewer.all_rows(query))
    about = {**viewer.about(), "query": "", "left_out": max(0, found - (found if most is None else most))}
    before, after = page_in_two(viewer.title, viewer.subtitle, about)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("w", encoding="utf8") as file:
            file.write(before)
            file.write(DATA_START.format("all-rows") + "[")
            for row in islice(viewer.all_rows(query), most):
                file.write(("," if chosen else "") + as_json(row))
                chosen.append(row["n"])
            file.write("]" + DATA_END)
            for index in chosen:
                file.writelines(_elements(viewer, index))
            file.write(after)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return len(chosen), found


def _elements(viewer: Viewer, index: int) -> Iterator[str]:
    """Yield an episode, with its images where the agent saw pictures."""
    episode = viewer.episode(index)
    assert episode is not None
    yield data_element(f"episode-{index}", episode)
    for side, form in enumerate(episode["sides"]):
        if form is not None and form["replay"] is not None and form["replay"]["has_pictures"]:
            yield data_element(f"replayed-{index}-{side}", viewer.replayed(index, side))
