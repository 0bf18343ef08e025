"""Building HTML from small pure functions; everything that is not marked as HTML is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

VOID = frozenset({"img", "input", "meta", "br"})
SPARK_WIDTH, SPARK_HEIGHT = 160, 36

# Characters that a page may not hold, or that would change how the text around them is shown.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")
_UNSHOWABLE = re.compile("[\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class Html(str):
    """Text that is already HTML; all other text is escaped."""

    __slots__ = ()


def escape(text: str) -> Html:
    r"""Return text as HTML that shows it, control characters as their pictures.

    >>> escape('<script>"\x00')
    '&lt;script&gt;&quot;␀'
    """
    visible = _CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])), text)
    return Html(html.escape(_UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", visible)))


def join(parts: Sequence[str], separator: str = "") -> Html:
    """Return the parts one after another."""
    return Html(separator.join(part if isinstance(part, Html) else escape(part) for part in parts))


def tag(element: str, *children: str, **attributes: str) -> Html:
    """Return an element; a trailing underscore of an attribute's name is dropped, others become hyphens.

    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    >>> tag("img", alt="a curve")
    '<img alt="a curve">'
    """
    names = (f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    start = f"<{element}{''.join(names)}>"
    return Html(start) if element in VOID else Html(f"{start}{join(children)}</{element}>")


def verbatim(text: str) -> Html:
    r"""Return text that keeps its lines; a parser drops one line break after the opening tag, so one is put there.

    >>> verbatim("\n#@#")
    '<pre>\n\n#@#</pre>'
    """
    return Html(f"<pre>\n{escape(text)}</pre>")


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    """Return a table whose rows become cards on a narrow screen; the first column names the row.

    The roles repeat what the elements say, because laying a table out as blocks takes that away from screen readers.
    """
    header = tag("tr", *(tag("th", name, scope="col", role="columnheader") for name in head), role="row")
    body = []
    for first, *others in rows:
        cells = [
            tag("td", tag("span", cell), data_label=name, role="cell")
            for name, cell in zip(head[1:], others, strict=True)
        ]
        body.append(tag("tr", tag("th", first, scope="row", role="rowheader"), *cells, role="row"))
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", header, role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
    )


def details(summary: str, *children: str) -> Html:
    """Return a part that opens and closes, by mouse and by keyboard.

    >>> details("more", "text")
    '<details><summary>more</summary>text</details>'
    """
    return tag("details", tag("summary", summary), *children)


def sparkline(values: Sequence[float], label: str) -> Html:
    """Return a small line drawing of a series, with its meaning in words for those who do not see it."""
    low, high = min(values), max(values)
    across = SPARK_WIDTH / max(1, len(values) - 1)
    up = (SPARK_HEIGHT - 4) / (high - low) if high > low else 0.0
    middle = SPARK_HEIGHT / 2 if high == low else SPARK_HEIGHT - 2
    points = " ".join(f"{i * across:.1f},{middle - (value - low) * up:.1f}" for i, value in enumerate(values))
    drawing = (
        f'<svg role="img" viewBox="-3 0 {SPARK_WIDTH + 6} {SPARK_HEIGHT}" aria-label="{escape(label)}">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"></polyline>'
    )
    x, y = points.rpartition(" ")[2].split(",")
    return Html(f'{drawing}<circle cx="{x}" cy="{y}" r="2.5" fill="currentColor"></circle></svg>')


STYLE = Html("""
:root { color-scheme: light dark; --ink: light-dark(#1b1f24, #e6e9ed); --quiet: light-dark(#57606a, #a2abb5);
  --paper: light-dark(#ffffff, #14171b); --panel: light-dark(#f3f5f7, #1f242a); --line: light-dark(#d0d7de, #3a424b);
  --accent: light-dark(#0060a0, #7cc0ff); --bad: light-dark(#a5300c, #ff9d7a); --good: light-dark(#06663f, #6bd6a5); }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
pre, code, summary, details td { overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; } .quiet, caption { color: var(--quiet); font-size: .9rem; }
.headline { font-size: 1.15rem; padding: .8rem 1rem; background: var(--panel); border-left: .3rem solid var(--quiet); }
.better { border-color: var(--good); } .worse { border-color: var(--bad); }
.bad { color: var(--bad); font-weight: 600; }
figure { margin: 1rem 0; max-width: 46rem; } figure img { width: 100%; height: auto; border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; margin-top: 1rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--quiet); font-weight: 500; } tbody th { font-weight: 500; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: 0 .8rem; }
details[open] { padding-bottom: .8rem; } summary { cursor: pointer; padding: .5rem 0; }
summary:focus-visible, a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
pre { background: var(--panel); padding: .6rem .8rem; border-radius: .3rem; margin: .3rem 0; white-space: pre-wrap;
  font: .85rem/1.4 ui-monospace, monospace; } dl { margin: .4rem 0; } dt { color: var(--quiet); font-size: .85rem; }
dd { margin: 0 0 .4rem; } code { font-family: ui-monospace, monospace; font-size: .9em; white-space: pre-wrap; }
.sparks { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .8rem; }
.sparks > div { background: var(--panel); border-radius: .4rem; padding: .5rem .7rem; }
.sparks svg { width: 100%; height: 2.6rem; display: block; color: var(--accent); } .sparks b { font-weight: 600; }
@media (max-width: 40rem) {
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  table, caption, tbody, tr, th, td { display: block; } tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  th, td { border: 0; padding: .1rem 0; } td { display: flex; gap: .6rem; }
  td::before { content: attr(data-label); color: var(--quiet); flex: 0 0 7.5rem; } }
""")
