"""A counter that breaks once, at the next step after a marker file has appeared: what training must survive."""

import os
import signal
from typing import Any

import gymnasium
from toy_envs import Counter

from turngym.envs.core import Outcome

FAULTS = ("raise", "kill", "nan", "inf", "interrupt")


class Injected(Counter):
    """Whoever steps first takes the marker away and breaks; with ``always`` the marker stays and all break.

    Options:
        marker: Path of the marker.
        fault: What happens: an exception, the death of the process, a reward that is not a number or infinite, or an
            interrupt (Ctrl-C).
        always: Whether the marker stays.
    """

    def __init__(self, marker: str = "", fault: str = "raise", always: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.marker, self.fault, self.always = marker, fault, always

    def _strikes(self) -> bool:
        if not self.marker or not os.path.exists(self.marker):
            return False
        if not self.always:
            try:
                os.unlink(self.marker)
            except FileNotFoundError:  # another process was faster
                return False
        return True

    def apply_action(self, action: str) -> Outcome[str]:
        outcome = super().apply_action(action)
        if not self._strikes():
            return outcome
        if self.fault == "raise":
            raise RuntimeError("the floor gave way")
        if self.fault in ("kill", "interrupt"):
            os.kill(os.getpid(), signal.SIGKILL if self.fault == "kill" else signal.SIGINT)
            return outcome
        return outcome._replace(reward=float(self.fault))


gymnasium.register("test/Injected-v0", entry_point="injected:Injected", disable_env_checker=True)
