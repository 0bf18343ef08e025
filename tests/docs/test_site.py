"""The built site in a real browser: search, links, both themes, a phone's width, and nothing asked from anywhere."""

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest
from browser import DESKTOP, PHONE, OpenPage, Scheme, browser, open_page, wider_than_the_screen

ROOT = Path(__file__).parents[2]
MKDOCS = ROOT / ".venvs" / "docs" / "bin" / "mkdocs"
SHOWN = [
    "index.html",
    "start/environment.html",
    "environments/sokoban.html",
    "methods/gigpo.html",
    "reference/api.html",
]
pytestmark = pytest.mark.integration
__all__ = ["browser", "open_page"]  # fixtures


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` builds it: a warning is an error."""
    if not MKDOCS.exists():
        pytest.skip("there is no MkDocs in .venvs/docs: make docs")
    target = tmp_path_factory.mktemp("site")
    call = [str(MKDOCS), "build", "--strict", "--quiet", "--site-dir", str(target)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    """The site's address on the loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def open_at(open_page: OpenPage, site: str, path: str, size: tuple[int, int] = DESKTOP, scheme: Scheme = "light"):  # type: ignore[no-untyped-def]
    return open_page(site + path, size=size, scheme=scheme, allow=(site,))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", SHOWN)
def test_a_page_fits_a_phone_and_asks_nothing_of_other_hosts(
    open_page: OpenPage, site: str, path: str, scheme: Scheme
) -> None:
    opened = open_at(open_page, site, path, PHONE, scheme)
    assert opened.locator("h1").first.is_visible()
    assert wider_than_the_screen(opened) == []


def test_every_formula_is_typeset_and_fits(open_page: OpenPage, site: str) -> None:
    """Those of all pages in the column of one page, by the script that typesets them in each."""
    names = sorted(path.stem for path in (ROOT / "trainers" / "algorithms").glob("*.md") if path.stem != "README")
    opened = open_at(open_page, site, "methods/gigpo.html")
    assert opened.locator("article div.math .katex-display").count() >= 1, "the page does so itself"
    opened.evaluate(GATHER_FORMULAS, names)
    assert opened.locator(".katex-display").count() == 0
    opened.evaluate('document.dispatchEvent(new Event("DOMContentLoaded"))')
    for name in names:
        formulas = opened.locator(f"section#{name} > div.math > .katex-display")
        assert formulas.count() == opened.locator(f"section#{name} > *").count() >= 1, name
        assert opened.locator(f"section#{name} .katex-error").count() == 0, name
        too_wide = formulas.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).length")
        assert too_wide == 0, name


GATHER_FORMULAS = """async names => {
  const parts = await Promise.all(names.map(async name => {
    const page = new DOMParser().parseFromString(await (await fetch(`${name}.html`)).text(), "text/html");
    const part = Object.assign(document.createElement("section"), { id: name });
    part.append(...page.querySelectorAll("article div.math"));
    return part;
  }));
  document.querySelector("article").replaceChildren(...parts);
}"""
"""Replaces the content of a page by the formulas of several pages, in a section for each."""


@pytest.mark.parametrize("words, expected", [("sokoban", "environments/sokoban.html"), ("gigpo", "methods/gigpo.html")])
def test_the_search_finds_a_page(open_page: OpenPage, site: str, words: str, expected: str) -> None:
    opened = open_at(open_page, site, "index.html")
    opened.locator("input.md-search__input").click()
    opened.keyboard.type(words)
    found = opened.locator(".md-search-result__link")
    found.first.wait_for(timeout=120_000)
    addresses = found.evaluate_all("links => links.map(each => each.href)")
    assert any(expected in address for address in addresses)


def test_no_link_or_picture_of_any_page_is_broken(folder: Path) -> None:
    from html.parser import HTMLParser

    class Links(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[str] = []
            self.ids: set[str] = set()

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            given = dict(attrs)
            self.found += [str(given[key]) for key in ("href", "src") if given.get(key)]
            self.ids |= {str(given[key]) for key in ("id", "name") if given.get(key)}

    pages: dict[str, Links] = {}
    for path in folder.rglob("*.html"):
        pages[str(path.relative_to(folder))] = Links()
        pages[str(path.relative_to(folder))].feed(path.read_text("utf8"))
    broken, hosts = [], set()
    for page, links in pages.items():
        if page == "404.html":
            continue
        for link in links.found:
            address = urljoin(f"file:///{page}", link)
            if not address.startswith("file:///"):
                hosts.add(address.split("/")[2] if "//" in address else address.split(":")[0])
                continue
            place, anchor = urldefrag(address.removeprefix("file:///"))
            if not (folder / place).exists() or (anchor and place in pages and anchor not in pages[place].ids):
                broken.append(f"{page}: {link}")
    assert broken == []
    assert len(pages) > 120
    assert not any("cdn" in host or "google" in host for host in hosts), hosts
