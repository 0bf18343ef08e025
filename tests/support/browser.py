"""A real browser for the tests of pages: Chromium without a window, driven by Playwright, nothing of it downloaded.

A test module takes the fixtures by ``from browser import browser, open_page`` and names them in its ``__all__``.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

COMMAND = "chromium-headless-shell"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = (1280, 900), (400, 800)
Scheme = Literal["light", "dark"]


class TooFaint(TypedDict):
    """A text whose contrast with what is behind it is below what WCAG 2.2 asks for at level AA."""

    text: str
    element: str
    ratio: float
    needed: float


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A browser; the test is skipped where there is none."""
    executable = shutil.which(COMMAND)
    if executable is None:
        pytest.skip(f"there is no {COMMAND}: apt-get install {COMMAND}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, headless=True, args=FLAGS)
        yield running
        running.close()


class OpenPage:
    """Opens pages and takes down what they do wrong: errors that they tell, and whatever they ask for.

    Args:
        running: The browser.
        folder: Where the text of a page becomes a file.
    """

    def __init__(self, running: "Browser", folder: Path) -> None:
        self.problems: list[str] = []
        self._browser, self._folder = running, folder
        self._contexts: list[BrowserContext] = []

    def __call__(
        self,
        target: str | Path,
        *,
        size: tuple[int, int] = DESKTOP,
        scheme: Scheme = "light",
        javascript: bool = True,
        allow: tuple[str, ...] = (),
    ) -> "Page":
        """Return an open page.

        Args:
            target: A file, an address, or the text of a page.
            size: Width and height of the window.
            scheme: Theme of the system.
            javascript: Whether scripts run.
            allow: Starts of addresses that the page may ask for, beside its own.
        """
        if isinstance(target, str) and not target.startswith(("http://", "file://")):
            file = self._folder / f"page{len(self._contexts)}.html"
            file.write_text(target, "utf8")
            target = file
        address = target.resolve().as_uri() if isinstance(target, Path) else target
        may_ask = (address, "data:", "blob:", *allow)
        view: ViewportSize = {"width": size[0], "height": size[1]}
        context = self._browser.new_context(viewport=view, color_scheme=scheme, java_script_enabled=javascript)
        self._contexts.append(context)
        page = context.new_page()
        page.on("request", lambda each: None if each.url.startswith(may_ask) else self._note(f"asks {each.url}"))
        page.on("console", lambda each: self._note(each.text) if each.type in ("error", "warning") else None)
        page.on("pageerror", lambda each: self._note(f"script: {each}"))
        page.goto(address)
        return page

    def _note(self, problem: str) -> None:
        self.problems.append(problem)

    def close(self) -> None:
        """Close all pages."""
        for context in self._contexts:
            context.close()


@pytest.fixture
def open_page(browser: "Browser", tmp_path: Path) -> Iterator[OpenPage]:
    """Open pages, and demand in the end that none told an error or asked for anything."""
    pages = OpenPage(browser, tmp_path)
    yield pages
    pages.close()
    assert pages.problems == []


def wider_than_the_screen(page: "Page") -> list[str]:
    """Return what makes a page scroll sideways; what scrolls inside of a box of its own does not count."""
    found: list[str] = page.evaluate(_WIDE)
    return found


def too_faint(page: "Page") -> list[TooFaint]:
    """Return the visible texts whose contrast is below 4.5, or 3 for large text."""
    found: list[TooFaint] = page.evaluate(_FAINT)
    return found


def small_png(page: "Page", path: Path, **options: Any) -> Path:
    """Write a screenshot of a page from its top to its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, **{"full_page": True, **options})
    return path


_WIDE = """() => {
  const screen = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= screen) return [];
  const scrolls = element => {
    for (let each = element.parentElement; each; each = each.parentElement)
      if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(each).overflowX)) return true;
    return false;
  };
  const wide = [...document.querySelectorAll("body *")].filter(
    each => each.getBoundingClientRect().right > screen + 0.5 && !scrolls(each));
  return wide.map(each => `${each.tagName}.${each.className}: ${each.getBoundingClientRect().right} of ${screen}`)
    .concat(`the page: ${document.documentElement.scrollWidth} of ${screen}`);
}"""

# Relative luminance and contrast as WCAG 2.2 defines them; backgrounds are laid over one another from the root on.
_FAINT = """() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const parse = text => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = text; pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
  const behind = element => {
    const chain = [];
    for (let each = element; each; each = each.parentElement) chain.unshift(each);
    return chain.reduce((below, each) => over(parse(getComputedStyle(each).backgroundColor), below), [255, 255, 255]);
  };
  const luminance = colour => {
    const [r, g, b] = colour.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement, text = node.textContent.trim();
    if (!text || !element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    if (["SCRIPT", "STYLE", "OPTION"].includes(element.tagName)) continue;
    const style = getComputedStyle(element), back = behind(element);
    const ink = parse(element.closest("svg") ? style.fill : style.color);
    const [one, other] = [luminance(over(ink, back)), luminance(back)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const needed = isLarge ? 3 : 4.5;
    if (ratio < needed)
      faint.push({ text: text.slice(0, 40), element: `${element.tagName}.${element.className}`, ratio, needed });
  }
  return faint;
}"""
