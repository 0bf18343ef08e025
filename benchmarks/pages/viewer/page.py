"""The page of the viewer, around data that a server gives or that stands in the page itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngym.benchmarks.pages.viewer.forms import as_json
from turngym.web.page import asset, page

_PLACE = "<!-- episodes -->"
DATA_START, DATA_END = '<script type="application/json" id="{}">', "</script>\n"
_DATA = "turngym.benchmarks.pages:"
_SCRIPTS = ("viewer_base.js", "viewer_turns.js", "viewer.js")


def viewer_page(title: str, subtitle: str, about: Mapping[str, Any]) -> str:
    """Return the page that asks its server for episodes.

    Args:
        title: Path to view.
        subtitle: Kind of the source.
        about: The initial data of the page.
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
        f"{_DATA}viewer.html",
        script=f"(() => {{\n{''.join(asset(_DATA + name) for name in _SCRIPTS)}}})();\n",
        style=asset(f"{_DATA}viewer.css"),
        subtitle=subtitle,
        policy=policy,
        data=inside + data_element("about", about),
    )
