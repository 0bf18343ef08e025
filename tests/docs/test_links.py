"""Links of the repository's pages: each leads to a file of a clone, and to a heading of it."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"(?:id|name)=\"([^\"]+)\"")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | set(_ID.findall(text))


def links() -> Iterator[tuple[Path, str, str]]:
    call = ["git", "ls-files", "--", "*.md"]
    for name in subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split():
        page = ROOT / name
        for path, anchor in _LINK.findall(_CODE.sub("", page.read_text("utf8"))):
            yield page, path, anchor


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    found = [each for each in links() if ":" not in each[1]]
    assert len(found) > 200
    broken = []
    for page, path, anchor in found:
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{page.relative_to(ROOT)}: {path}#{anchor}")
    assert broken == []
