"""The desktop of one environment: started on demand, replaced after a fault, set up for each goal."""

from __future__ import annotations

import contextlib
import shutil
import weakref
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from turngym.envs.desktop.actions import Action
from turngym.envs.desktop.folder import Folder
from turngym.envs.desktop.goals.base import Goal
from turngym.envs.desktop.session import DesktopFault, DesktopSession, Window
from turngym.envs.tools.sandbox.system import started

_MOUSEPAD = """[org/xfce/mousepad/preferences/view]
font-name='DejaVu Sans Mono 10'
use-default-monospace-font=false
[org/xfce/mousepad/preferences/window]
remember-size=false
remember-position=false
remember-state=false
"""
_NO_TOOLTIPS = (
    "tooltip, tooltip * { font-size: 0; padding: 0; margin: 0; border: none; min-width: 0; min-height: 0; }\n"
)
_CONFIGURATION: Mapping[str, bytes] = {
    ".config/glib-2.0/settings/keyfile": _MOUSEPAD.encode(),
    ".config/gtk-3.0/gtk.css": _NO_TOOLTIPS.encode(),
}
"""A tooltip that appears after half a second would depend on the speed of the machine."""


class DesktopSlot:
    """A desktop and the files on it.

    Args:
        width: Width of the display.
        height: Its height.
        limit_seconds: Time limit of any operation.
    """

    def __init__(self, width: int, height: int, limit_seconds: float) -> None:
        self._size = width, height
        self._limit = limit_seconds
        self._session: DesktopSession | None = None
        self.windows: tuple[Window, ...] = ()
        self.folder: Folder | None = None
        self.starts = 0
        """Number of starts of a display."""

    @property
    def session(self) -> DesktopSession | None:
        """The running desktop, None before the first episode and after a fault."""
        return self._session

    @property
    def digest(self) -> str:
        """Digest of the image on the screen."""
        return self._session.digest if self._session else ""

    def begin(self, goal: Goal) -> None:
        """Set up the initial state of a goal; a desktop that has died since the last episode is replaced.

        Raises:
            DesktopFault: A new desktop fails as well.
        """
        if self._session is not None:
            with contextlib.suppress(DesktopFault):
                return self._begin(self._session, goal)
            self.close()
        self._session = started(lambda: DesktopSession(*self._size, self._limit), DesktopFault)
        weakref.finalize(self, DesktopSession.close, self._session)
        self.starts += 1
        self._begin(self._session, goal)

    def _begin(self, session: DesktopSession, goal: Goal) -> None:
        session.stop_programs()
        for path in session.home.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        self.folder = Folder(session.home, session.tables)
        self.folder.fill({**_CONFIGURATION, **goal.files})
        self.windows = session.start_programs(goal.programs)

    def act(self, action: Action) -> None:
        """Carry out a mouse or keyboard action.

        Raises:
            DesktopFault: The desktop or a program failed.
        """
        if self._session is None:
            raise DesktopFault("the desktop is closed")
        self.windows = self._session.act(action.order())

    def picture(self) -> NDArray[np.uint8]:
        """Return the screen, black if there is none."""
        width, height = self._size
        return np.zeros((height, width, 3), np.uint8) if self._session is None else self._session.picture()

    def close(self) -> None:
        """End the desktop."""
        session, self._session, self.folder = self._session, None, None
        if session is not None:
            session.close()
