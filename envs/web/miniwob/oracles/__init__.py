"""Solvers of the tasks of MiniWoB++, by task, and why the other tasks have none."""

from turngym.envs.web.miniwob.oracles import click, form, mail, mouse, widget
from turngym.envs.web.miniwob.oracles.base import Oracle

ORACLES: dict[str, Oracle] = {
    **click.SOLVERS,
    **form.SOLVERS,
    **mail.SOLVERS,
    **mouse.SOLVERS,
    **widget.SOLVERS,
}
_FINER = "it asks for a reaction within a turn"
_UNSEEN = "the page does not say in words what it shows"
_WORDS = "it takes an understanding of words"
WITHOUT_ORACLE: dict[str, str] = {
    "chase-circle": _FINER,
    "click-checkboxes-soft": _WORDS,
    "click-menu-2": "half of its tasks show an icon only",
    "click-pie": "its menu opens by an animation on rings that overlap",
    "click-pie-nodelay": "its menu opens by an animation on rings that overlap",
    "count-sides": "the figure is painted on a canvas",
    "daily-calendar": "it takes a drag over a time span, scrolled into view",
    "drag-cube": "the sides of a turning cube cannot be told from the elements",
    "draw-circle": "a drag is straight",
    "email-inbox-forward-nl-turk": _WORDS,
    "email-inbox-nl-turk": _WORDS,
    "find-greatest": _UNSEEN,
    "hot-cold": "it is a search over the whole area, longer than an episode",
    "hover-shape": _FINER,
    "moving-items": _FINER,
    "simon-says": _FINER,
    "stock-market": "the price may be low enough for less than a turn",
    "text-editor": "it takes marking words within a line",
    "tic-tac-toe": "the other player may reach a draw, whatever one does",
    "use-colorwheel-2": _UNSEEN,
}
"""Why a task has no oracle; every task is here or in :data:`ORACLES`."""
