"""What all pages share: one HTML file with both themes and a policy against everything from outside.

>>> "<h1>Results</h1>" in page("Results")
True
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from turngym.web.page import page

__all__ = ["asset", "page"]


@cache
def asset(name: str) -> str:
    """Return the text of a script or style sheet that comes with the package, to put into a page.

    >>> "aria-sort" in asset("tables.js")
    True
    """
    return (files(__package__ or "") / "data" / name).read_text("utf8")
