"""One self-contained HTML file: no network, no other file, and only the scripts it was made with."""

from __future__ import annotations

import base64
import hashlib
import re

from turngym.web.html import STYLE, Html, join, tag

_STYLE = """
:root[data-theme="light"] { color-scheme: light; } :root[data-theme="dark"] { color-scheme: dark; }
body > header { display: flex; gap: 1rem; align-items: flex-start; justify-content: space-between; }
body > header > div { min-width: 0; overflow-wrap: anywhere; }
button, input, select { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line);
  border-radius: .4rem; padding: .25rem .7rem; } button { cursor: pointer; } [hidden] { display: none !important; }
button:hover { border-color: var(--accent); }
:is(button, input, select, [tabindex]):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
#theme { flex: none; margin-top: .5rem; font-size: .9rem; }
:root[data-theme="dark"] .chart { filter: invert(.92) hue-rotate(180deg); }
@media (prefers-color-scheme: dark) { :root:not([data-theme]) .chart { filter: invert(.92) hue-rotate(180deg); } }
@media (max-width: 40rem) { body > header h1 { font-size: 1.35rem; } }
@media print { #theme { display: none; } }
"""

# The choice is kept for other pages of the same place; choosing what the system has follows the system again.
_THEME = """
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)"), key = "turngym-theme";
  const stored = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const store = value => {
    try { value ? localStorage.setItem(key, value) : localStorage.removeItem(key); } catch { }
  };
  const current = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const other = () => current() === "dark" ? "light" : "dark";
  const label = () => { button.textContent = other() === "dark" ? "Dark theme" : "Light theme"; };
  const choose = theme => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme; else delete root.dataset.theme;
    label();
  };
  choose(stored());
  button.hidden = false;
  system.addEventListener("change", label);
  button.addEventListener("click", () => {
    const wanted = other(), follows = (wanted === "dark") === system.matches;
    store(follows ? null : wanted);
    choose(follows ? null : wanted);
  });
})();
"""

_CLOSES = re.compile("</script|<!--", re.IGNORECASE)


def page(
    title: str,
    *sections: str,
    script: str = "",
    style: str = "",
    subtitle: str = "",
    window: str = "",
    policy: str = "",
) -> str:
    """Return a whole page: a heading with a button for the light and the dark theme, and the sections below it.

    The page follows the theme of the system until the button is used. It may not reach the network, and of scripts it
    runs only its own, which are named by their hashes.

    Args:
        title: Heading of the page.
        sections: What the page shows; what is not :class:`turngym.web.html.Html` is escaped.
        script: JavaScript that runs after the page is there.
        style: More CSS, after that of all pages.
        subtitle: A line below the heading.
        window: Title of the window; that of the page unless given.
        policy: More directives of the Content-Security-Policy, such as ``"connect-src 'self'"``.

    Raises:
        ValueError: The script holds what would end it: ``</script`` or ``<!--``.

    >>> content = page("1 < 2", tag("p", "text"))
    >>> content[:15], "<h1>1 &lt; 2</h1>" in content, "<main><p>text</p></main>" in content
    ('<!doctype html>', True, True)
    """
    scripts = [_script(each) for each in (_THEME, script) if each]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts, policy)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", window or title),
        tag("style", Html(STYLE + _STYLE + style)),
    )
    below = tag("p", subtitle, class_="quiet") if subtitle else Html()
    button = tag("button", "Dark theme", id="theme", type="button", hidden="")
    header = tag("header", tag("div", tag("h1", title), below), button)
    body = tag("body", header, tag("main", *sections), join([tag("script", Html(each)) for each in scripts]))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _script(text: str) -> str:
    """Return a script with the line ends that a browser hashes."""
    found = _CLOSES.search(text)
    if found:
        raise ValueError(f"a script in a page may not hold {found[0]!r}: write it in two parts.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _policy(scripts: list[str], more: str) -> str:
    hashes = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    parts = ["default-src 'none'", "img-src data:", "style-src 'unsafe-inline'", f"script-src {allowed}", more]
    return "; ".join(part for part in parts if part)
