"""One self-contained HTML file from a template: no network, no other file, and only the scripts it was made with."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jinja2 import Environment

LAYOUT = "turngym.web:page.html"
_CLOSES = re.compile("</script|<!--", re.IGNORECASE)
# Characters that a page may not hold, or that would change how the text around them is shown.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")
_UNSHOWABLE = re.compile("[\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_SPARK_WIDTH, _SPARK_HEIGHT = 160, 36


@cache
def environment() -> Environment:
    """Return the environment of all templates, which are named ``PACKAGE:FILE``, a file in the package's ``data``.

    Everything that a template shows is escaped, and control characters are replaced by their symbols.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )


@cache
def asset(name: str) -> str:
    """Return the text of a template, script or style sheet that comes with a package.

    >>> "<h1>" in asset(LAYOUT)
    True
    """
    package, _, file = name.partition(":")
    return (files(package) / "data" / file).read_text("utf8")


def page(
    title: str,
    template: str = LAYOUT,
    *,
    script: str = "",
    style: str = "",
    subtitle: str = "",
    window: str = "",
    policy: str = "",
    **values: Any,
) -> str:
    """Return a whole page: a heading with a button for the light and the dark theme, and the template's block ``main``.

    The page follows the theme of the system until the button is used. It may not reach the network, and of scripts it
    runs only its own, which are named by their hashes.

    Args:
        title: Heading of the page.
        template: Name of a template that extends :data:`LAYOUT`.
        script: JavaScript that runs after the page is loaded.
        style: CSS in addition to that of all pages.
        subtitle: A line below the heading.
        window: Title of the window; that of the page unless given.
        policy: Further directives of the Content-Security-Policy, such as ``"connect-src 'self'"``.
        values: Variables of the template.

    Raises:
        ValueError: The script contains ``</script`` or ``<!--``, which would end it.

    >>> content = page("1 < 2", main="<i>")
    >>> content[:15], "<h1>1 &lt; 2</h1>" in content, "&lt;i&gt;" in content
    ('<!doctype html>', True, True)
    """
    from markupsafe import Markup

    scripts = [_script(each) for each in (asset("turngym.web:theme.js"), script) if each]
    return (
        environment()
        .get_template(template)
        .render(
            {"main": "", **values},
            title=title,
            subtitle=subtitle,
            window=window,
            policy=_policy(scripts, policy),
            style=Markup(asset("turngym.web:page.css") + style),
            scripts=[Markup(each) for each in scripts],
        )
    )


def _visible(value: Any) -> Any:
    r"""Return text with control characters as their symbols; HTML and numbers as they are.

    >>> _visible("a\x00"), _visible(1)
    ('a␀', 1)
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    symbols = _CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])), value)
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", symbols)


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


class Spark(NamedTuple):
    """Coordinates of a small line drawing.

    Args:
        box: Its view box.
        points: The line.
        end: Its last point.
    """

    box: str
    points: str
    end: Sequence[str]


def spark(values: Sequence[float]) -> Spark:
    """Return the drawing of a series, for the macro ``sparkline``.

    >>> spark([1.0, 3.0]).points
    '0.0,34.0 160.0,2.0'
    """
    low, high = min(values), max(values)
    across = _SPARK_WIDTH / max(1, len(values) - 1)
    up = (_SPARK_HEIGHT - 4) / (high - low) if high > low else 0.0
    middle = _SPARK_HEIGHT / 2 if high == low else _SPARK_HEIGHT - 2
    points = [f"{i * across:.1f},{middle - (value - low) * up:.1f}" for i, value in enumerate(values)]
    return Spark(f"-3 0 {_SPARK_WIDTH + 6} {_SPARK_HEIGHT}", " ".join(points), points[-1].split(","))
