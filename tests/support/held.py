"""An environment that holds something from its first reset to its close, and has a turn limit of three."""

from __future__ import annotations

from typing import Any

from turngym.envs.core import Outcome, TextEnv
from turngym.types import JSONValue

OPEN: set[int] = set()
"""What is held now."""


class Held(TextEnv[str]):
    """Pays 1 for "go"; "stop" ends the episode by the rules."""

    instructions = "Say go or stop."

    def __init__(self, max_turns: int = 3, **options: Any) -> None:
        super().__init__(max_turns=max_turns, **options)

    def begin(self, task: str | int | None) -> str:
        OPEN.add(id(self))
        return "Ready."

    def apply_action(self, action: str) -> Outcome[str]:
        return Outcome(f"You said {action}.", float(action == "go"), action == "stop", action == "stop")

    def legal_actions(self) -> tuple[str, ...]:
        return "go", "stop"

    def anchor(self) -> str:
        return str(self.turn)

    def close(self) -> None:
        OPEN.discard(id(self))
        super().close()

    def save_state(self) -> JSONValue:
        return None

    def load_state(self, state: JSONValue) -> None:
        OPEN.add(id(self))


class ClosesBadly(Held):
    """Fails to close, after it has let go."""

    def close(self) -> None:
        super().close()
        raise RuntimeError("the browser is gone")
