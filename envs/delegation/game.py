"""A system of agents: one works in an environment and calls sub-agents, each with its own context."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, cast

import gymnasium
import numpy as np

from turngym.envs.core import TextEnv
from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.multiagent.lookup import class_at
from turngym.envs.multiagent.speech import safe_speech
from turngym.envs.own import find_spec
from turngym.envs.parsing.thinking import THINKING
from turngym.envs.registration import env_refusal
from turngym.envs.settings import worded
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue

_TAG = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
MAIN, SUB = "main", "sub"
ASK, REPORT = "ask", "report"
_VAULT = "turngym.envs.delegation.vault:Vault"
_ASKING = (
    f"You are the main agent. <{ASK}>request</{ASK}> calls a sub-agent, at most {{calls}} times. It reads your request "
    "and nothing else that you have read, acts in the same environment, and its report is what you read next."
)
_REPORTING = (
    f"You are a sub-agent, called by the main agent. You have {{turns}} actions; <{REPORT}>answer</{REPORT}> ends your "
    "work, and the answer is all that the main agent reads of it."
)


def write(tool: str, content: str) -> str:
    """Return a request or a report as an action.

    >>> write(ASK, "red c")
    '<ask>red c</ask>'
    """
    return f"<{tool}>{content}</{tool}>"


class Delegation(Game):
    """One agent works in an environment and calls sub-agents, which work there too and report back.

    Seat 0 is the main agent. The seat after it is the sub-agent of the first call, the next one that of the second, and
    so on: each reads its instructions, the request and what its own actions bring, and nothing else. A call ends with a
    report or after ``call_turns`` actions. What others wrote is read as one line between quotation marks. The rewards
    and the end are those of the environment, for all seats but sub-agents that gave no report; the main agent's forfeit
    ends the game, that of a sub-agent only its call. The anchor is what the seat has read and done, the legal actions
    are those of the environment that the role may use.
    """

    name = "delegation"
    file_options = worded("main_tools", "sub_tools")
    players: ClassVar[Mapping[str, str]] = {"expert": "turngym.envs.delegation.players:Expert"}
    is_cooperative = True

    class Options(BaseOptions):
        env: str = _VAULT
        """Environment with one agent: an id, ``"module:Class"`` or ``"path/to/file.py:Class"``."""
        env_options: Mapping[str, Any] | None = None
        """Its options, such as ``{"lines": 20}``."""
        calls: Annotated[int, between(0, 20)] = 4
        """Calls of sub-agents; 0 for one agent that works alone."""
        call_turns: Annotated[int, between(1, 100)] = 4
        """Actions of a sub-agent."""
        main_tools: str = ""
        """Tags that only the main agent may write, with blanks between them, such as ``"answer"``."""
        sub_tools: str = ""
        """Tags that only sub-agents may write, if there are any, such as ``"search"``."""
        shares_view: bool = False
        """True if a sub-agent also reads what the environment showed last."""
        report_length: Annotated[int, between(1, 5000)] = 600
        """Characters that are read of a request or a report."""

        def check(self) -> None:
            for option in ("main_tools", "sub_tools"):
                for tool in getattr(self, option).split():
                    if not _TAG.fullmatch(tool) or tool in (ASK, REPORT):
                        raise OptionError(option, f"must be tags other than {ASK} and {REPORT}, got {tool[:40]!r}.")
            if both := {*self.main_tools.split()} & {*self.sub_tools.split()}:
                raise OptionError("sub_tools", f"must differ from main_tools, got {min(both)!r} in both.")

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(1 + self.options.calls)
        self.env = _make_env(self.options.env, self.options.env_options or {})
        low, high = self.env.score_range
        self.score_range = min(low, 0.0), max(high, 0.0)
        self.finite_instances = self.env.finite_instances
        self._reserved = {MAIN: self.options.main_tools.split(), SUB: self.options.sub_tools.split()}
        self._tools = {ASK, REPORT, *self._reserved[MAIN], *self._reserved[SUB]} if self.options.calls else set()
        self._clear()

    _constructor = __init__

    def _clear(self) -> None:
        self.active, self.used, self.turns = 0, 0, 0
        """Seat that acts, calls so far, and actions in the call that runs."""
        self.unanswered: list[int] = []
        """Seats whose calls ended without a report."""
        self._known: list[list[str]] = [[] for _ in self.everyone]
        """What each seat has read and done."""
        self._seen, self._is_over, self._is_solved, self._is_cut = "", False, False, False

    @classmethod
    def refusal(cls, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
        """Return why a file may not ask for this: the environment has to be one that it may ask for."""
        known = {"env": _VAULT, "env_options": None, **(defaults or {})}
        inner = {name: options.get(name, known[name]) for name in ("env", "env_options")}
        rest = {name: value for name, value in options.items() if name not in inner}
        reason = super().refusal(rest, defaults)
        if reason or inner == {name: known[name] for name in inner}:
            return reason
        given = inner["env_options"] or {}
        return env_refusal(inner["env"], given) if isinstance(given, Mapping) else "its env_options are no table"

    @property
    def finds_action(self) -> bool:  # type: ignore[override]  # as the environment says
        """True if the environment finds an action in a whole answer."""
        return self.env.finds_action

    # Seats.

    def role(self, seat: int) -> str:
        """Return ``"main"`` or ``"sub"``."""
        return SUB if seat else MAIN

    def caller(self, seat: int) -> int | None:
        """Return the main agent for sub-agents."""
        return 0 if seat else None

    def instructions(self, seat: int) -> str:
        """Return the rules of the environment and those of the role."""
        if not self.options.calls:
            return self.env.instructions
        told = _REPORTING.format(turns=self.options.call_turns) if seat else _ASKING.format(calls=self.options.calls)
        others = self._reserved[MAIN if seat else SUB]
        barred = f" You may not write {', '.join(f'<{tool}>' for tool in others)}." if others else ""
        return f"{self.env.instructions}\n{told}{barred}"

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Start an episode of the environment; ``{"task": ...}`` picks its instance."""
        self.require_known(options, ["task"])
        self.news.clear()
        self._clear()
        shown, _ = self.env.reset(seed=int(generator.integers(2**31)), options=dict(options))
        self._seen = shown
        self._read(0, shown)

    def _read(self, seat: int, line: str) -> None:
        """Let a seat read a line."""
        self._known[seat].append(line)
        self.tell((seat,), line)

    def asked(self) -> tuple[int, ...]:
        """Return the seat that acts."""
        return () if self._is_over else (self.active,)

    def phase(self) -> str:
        """Return the role of the seat that acts, or ``"over"``."""
        return "over" if self._is_over else self.role(self.active)

    def prompt(self, seat: int) -> str:
        """Return how many calls or actions are left."""
        if seat:
            return f"Actions left: {self.options.call_turns - self.turns}."
        return f"Calls left: {self.options.calls - self.used}." if self.options.calls else "What do you do?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the actions that the environment lists and the role may use, and a request or a report of many."""
        if not self.options.calls:
            return tuple(self.env.legal_actions())
        barred = tuple([f"<{tool}>" for tool in self._reserved[MAIN if seat else SUB]])
        listed = tuple([each for each in self.env.legal_actions() if not each.startswith(barred)])
        sample = write(REPORT, "nothing") if seat else write(ASK, "help")
        return (*listed, sample) if seat or self.used < self.options.calls else listed

    def read(self, seat: int, text: str) -> str:
        """Return a request or a report as it is written, and any other text as an action of the environment."""
        found = THINKING.first_element(text, self._tools) if self._tools else None
        if found is None:
            return text
        mine, others = (SUB, MAIN) if seat else (MAIN, SUB)
        if found.name in self._reserved[others] or found.name == (ASK if seat else REPORT):
            raise InvalidAction(f"A {mine} agent may not write <{found.name}>.")
        if found.name not in (ASK, REPORT):
            return text
        content = safe_speech(found.content, self.options.report_length)
        if seat == 0 and self.used == self.options.calls:
            raise InvalidAction("No calls are left.")
        if seat == 0 and not content:
            raise InvalidAction("The request is empty.")
        return write(found.name, content)

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take a request, a report or an action of the environment."""
        ((seat, action),) = actions.items()
        if seat in self.forfeited:
            self._return(None)
            return [0.0] * self.num_seats
        self._known[seat].append(f"> {action}")
        found = THINKING.first_element(action, self._tools) if self._tools else None
        if found is not None and found.name == ASK:
            self._call(found.content)
        elif found is not None and found.name == REPORT:
            self._return(found.content)
        else:
            return self._act(seat, action)
        return [0.0] * self.num_seats

    def _call(self, request: str) -> None:
        self.used += 1
        self.active, self.turns = self.used, 0
        if self.options.shares_view:
            self._read(self.active, self._seen)
        self._read(self.active, f'The main agent asks: "{request}"')

    def _return(self, report: str | None) -> None:
        if not report:
            self.unanswered.append(self.active)
        self.active = 0
        self._read(0, f'The sub-agent reports: "{report}"' if report else "The sub-agent gave no report.")

    def _act(self, seat: int, action: str) -> list[float]:
        shown, reward, terminated, truncated, info = self.env.step(action)
        self._seen = shown
        self._read(seat, shown)
        self._is_over, self._is_solved = terminated or truncated, info["success"] == 1
        self._is_cut = truncated
        self.turns += 1
        if seat and not self._is_over and self.turns == self.options.call_turns:
            self._return(None)
        return [0.0 if each in self.unanswered else reward for each in self.everyone]

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game without success if the main agent forfeits; a sub-agent's call ends without a report."""
        (seat,) = seats
        self._is_over = seat == 0
        return [-1.0 if each in seats or self._is_over else 0.0 for each in self.everyone]

    def default(self, seat: int) -> str:
        """Return nothing: the call of a sub-agent that forfeits ends."""
        return ""

    # What is known about the game.

    def anchor(self, seat: int) -> str:
        """Return what the seat has read and done."""
        return "\n".join(self._known[seat])

    def progress(self, seat: int) -> float:
        """Return 1 at the end and 0 before: what others have found is unknown."""
        return float(self._is_over)

    def is_truncated(self, seat: int) -> bool:
        """Return whether the turn limit of the environment cut off a seat that could still act or be called."""
        return self._is_cut and (seat in (0, self.active) or seat > self.used)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def score(self, seat: int) -> float:
        """Return the score of the environment."""
        return 0.0 if 0 in self.forfeited else float(self.env.score())

    def winners(self) -> tuple[int, ...]:
        """Return all seats but those that owe a report, if the environment says that the task is solved."""
        is_won = self._is_solved and 0 not in self.forfeited
        return tuple([seat for seat in self.everyone if seat not in self.unanswered]) if is_won else ()

    def metrics(self) -> dict[str, float]:
        """Return the calls, how many ended without a report, and whether the task is solved."""
        return {
            "calls": float(self.used),
            "unanswered_calls": float(len(self.unanswered)),
            "solved": float(self._is_solved),
        }

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Draw again what nobody has read in the environment."""
        return not self._is_over and self.env.resample_hidden()

    def state(self) -> JSONValue:
        """Return the state of the environment, and what each seat has read and done."""
        return {
            "env": json.loads(self.env.snapshot()),
            "active": self.active,
            "used": self.used,
            "turns": self.turns,
            "unanswered": list(self.unanswered),
            "known": [list(lines) for lines in self._known],
            "seen": self._seen,
            "is_over": self._is_over,
            "is_solved": self._is_solved,
            "is_cut": self._is_cut,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        numbers = {name: state[name] for name in ("active", "used", "turns")}
        known, calls, unanswered = state["known"], self.options.calls, list(state["unanswered"])
        limits = {"active": calls, "used": calls, "turns": 10**6}
        if not all(type(numbers[name]) is int and 0 <= numbers[name] <= limits[name] for name in limits):
            raise ValueError(f"the counts {numbers}")
        if numbers["active"] not in (0, numbers["used"]) or not isinstance(state["seen"], str):
            raise ValueError(f"the seat {numbers['active']} in the call {numbers['used']}")
        if numbers["active"] and numbers["turns"] >= self.options.call_turns:
            raise ValueError(f"{numbers['turns']} actions in a call of {self.options.call_turns}")
        are_lists = type(known) is list and all(type(lines) is list for lines in known)
        if (
            not are_lists
            or len(known) != self.num_seats
            or not all(isinstance(line, str) for each in known for line in each)
        ):
            raise ValueError(f"the lines {known!s:.80}")
        ended = {*range(1, numbers["used"] + 1)} - {numbers["active"]}
        if len({*unanswered}) != len(unanswered) or not ended.issuperset(unanswered):
            raise ValueError(f"the calls without a report {unanswered!s:.80}")
        _, info = self.env.restore(json.dumps(state["env"]).encode())
        is_over, is_solved = state["is_over"], state["is_solved"]
        is_cut = state["is_cut"]
        if type(is_cut) is not bool or (is_cut and (is_solved or not is_over)):
            raise ValueError(f"a game that was cut off: {is_cut!r:.80}")
        if {type(is_over), type(is_solved)} != {bool} or (info["success"] == 1) != is_solved:
            raise ValueError(f"a game that is solved: {is_solved}, in an environment with success {info['success']}")
        if info["success"] >= 0 and not is_over:
            raise ValueError("an environment that has ended in a game that has not")
        self.active, self.used, self.turns = numbers.values()
        self.unanswered = unanswered
        self._known, self._seen = [list(lines) for lines in known], state["seen"]
        self._is_over, self._is_solved, self._is_cut = is_over, is_solved, is_cut


def _make_env(name: str, options: Mapping[str, Any]) -> TextEnv[str]:
    """Return the environment of a system.

    Raises:
        ConfigError: It is none with text observations and one agent.
    """
    if ":" in name:
        kind: Any = class_at(name, TextEnv)
        return cast("TextEnv[str]", kind(**options))
    env = gymnasium.make(find_spec(name), **options)
    if not isinstance(env, TextEnv):
        raise ConfigError(f"a system of agents works in an environment of turngym.envs.TextEnv, {name} is none.")
    return env
