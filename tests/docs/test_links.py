"""Links and scripts that the repository's pages name: each is a file of a clone, or says of which commit it is."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_SCRIPT = re.compile(r"(benchmarks/studies/[\w/]+\.(?:py|toml))[^`\n]*(`?(?: of [0-9a-f]{7,40}\b)?)")
_ID = re.compile(r"(?:id|name)=\"([^\"]+)\"")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | set(_ID.findall(text))


def pages() -> list[Path]:
    call = ["git", "ls-files", "--", "*.md"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.split()]


def links() -> Iterator[tuple[Path, str, str]]:
    for page in pages():
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


def test_every_script_of_a_study_is_there_or_names_its_commit() -> None:
    found = [(page, *each) for page in pages() for each in _SCRIPT.findall(page.read_text("utf8"))]
    assert len(found) > 100
    missing = [
        f"{page.relative_to(ROOT)}: {script}"
        for page, script, end in found
        if not (ROOT / script).is_file() and " of " not in end
    ]
    assert missing == []
