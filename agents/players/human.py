"""Agent played by a person at the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AGENTS, AgentSettings
from turngym.terminal.console import Console


class HumanAgent(Agent):
    """Shows each observation and reads the action from the keyboard.

    Args:
        read: Reads one line; ``input`` by default.
        console: Display of observations.
    """

    def __init__(self, read: Callable[[str], str] = input, console: Console | None = None) -> None:
        self.read = read
        self.console = console or Console()

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Ask for one action per request, in order."""
        return [Decision(self._ask(request)) for request in requests]

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Show a recorded turn."""
        self._show(request)
        self.console.print(f"action> {action}", markup=False, highlight=False)
        return Decision(action, completion)

    def _ask(self, request: Request) -> str:
        self._show(request)
        return self.read("action> ")

    def _show(self, request: Request) -> None:
        if request.turn == 0:
            self.console.print(request.instructions, style="dim", markup=False)
        self.console.rule(f"turn {request.turn + 1}")
        self.console.print(request.observation, markup=False, highlight=False)
        if request.info["legal_actions"]:
            self.console.print("Legal: " + ", ".join(request.info["legal_actions"]), style="cyan", markup=False)


@AGENTS.register("human")
def make(argument: str, settings: AgentSettings) -> HumanAgent:
    """Return an agent played by a person at the terminal."""
    return HumanAgent()
