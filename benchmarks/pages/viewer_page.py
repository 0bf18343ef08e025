"""The page of the viewer, around data that a server gives or that stands in the page itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from turngym.benchmarks.pages.episode_forms import as_json
from turngym.benchmarks.pages.shell import page
from turngym.html import Html

_DATA = Path(__file__).parent / "data"
_PLACE = "<!-- episodes -->"
DATA_START, DATA_END = '<script type="application/json" id="{}">', "</script>\n"
_SCRIPTS = ("viewer_base.js", "viewer_turns.js", "viewer.js")


@cache
def _part(name: str) -> str:
    return (_DATA / name).read_text("utf8")


def viewer_page(title: str, subtitle: str, about: Mapping[str, Any]) -> str:
    """Return the page that asks its server for episodes.

    Args:
        title: What is viewed.
        subtitle: What kind it is.
        about: What the page is told at first.
    """
    return _page(title, subtitle, {**about, "server": True}, "", "connect-src 'self'")


def page_in_two(title: str, subtitle: str, about: Mapping[str, Any]) -> tuple[str, str]:
    """Return what comes before and after the episodes of a page that holds them all, see :func:`data_element`."""
    before, _, after = _page(title, subtitle, {**about, "server": False}, _PLACE, "").partition(_PLACE)
    return before, after


def data_element(name: str, content: Any) -> str:
    r"""Return an element that holds data and is never run.

    >>> print(data_element("rows", ["</script>"]), end="")
    <script type="application/json" id="rows">["\u003c/script>"]</script>
    """
    return DATA_START.format(name) + as_json(content) + DATA_END


def _page(title: str, subtitle: str, about: Mapping[str, Any], inside: str, policy: str) -> str:
    return page(
        title,
        Html(_part("viewer.html")),
        Html(inside + data_element("about", about)),
        script=f"(() => {{\n{''.join(map(_part, _SCRIPTS))}}})();\n",
        style=_part("viewer.css"),
        subtitle=subtitle,
        policy=policy,
    )
