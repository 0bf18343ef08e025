"""The oracles of MiniWoB++ tasks, by task, and why the others have none."""

from __future__ import annotations

from turngym.envs.web import oracles_click, oracles_form, oracles_mail, oracles_mouse
from turngym.envs.web.oracle import Oracle

ORACLES: dict[str, Oracle] = {
    **oracles_click.SOLVERS,
    **oracles_form.SOLVERS,
    **oracles_mail.SOLVERS,
    **oracles_mouse.SOLVERS,
}
WITHOUT_ORACLE: dict[str, str] = {}
