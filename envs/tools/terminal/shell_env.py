"""Base of environments whose agents work in a shell on files that are judged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Generic, Literal, TypeVar

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.parsing.calls import Call
from turngym.envs.tools.harbor.box import BoxError, Ran
from turngym.envs.tools.harbor.calls import BASH, SUBMIT, output_text
from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.terminal.machine import Machine
from turngym.envs.tools.terminal.task import ROOT
from turngym.envs.validation import NUMBERS, refuse_task, saved_number
from turngym.errors import SnapshotUnsupported
from turngym.options import between
from turngym.types import JSONValue

MadeT = TypeVar("MadeT")


class ShellEnv(TextEnv[str], Generic[MadeT]):
    """Base of environments with a machine, whose files are the state of an episode.

    A subclass makes an instance from a number (``make``), takes it up (``enter``), judges files (``judge``), and reads
    actions (``read``); other tools than the shell and ``submit`` are its own (``use``).
    """

    class Options(TextEnv.Options):
        level: Annotated[int, between(1, 3)] = 2
        """Difficulty."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for 1 at a success, ``"dense"`` for the change of the progress in every turn."""
        seconds: Annotated[float, between(0.1, 600)] = 10.0
        """Time of one command."""
        output: Annotated[int, between(100, 100_000)] = 4000
        """Characters shown of a command's output: its beginning and its end."""
        max_turns: MaxTurns = 20

    options: Options
    finds_action = True

    def setup(self) -> None:
        self._machine = Machine()
        self._log = list[tuple[str, str]]()

    @abstractmethod
    def make(self, number: int) -> MadeT:
        """Return the instance of a number."""

    @abstractmethod
    def text_of(self, made: MadeT) -> str:
        """Return the canonical text of an instance."""

    @abstractmethod
    def enter(self, made: MadeT) -> tuple[Mapping[str, Entry], str]:
        """Take up an instance; returns its files and the first observation."""

    @abstractmethod
    def judge(self, files: Mapping[str, Entry]) -> tuple[bool, float]:
        """Return whether the task is solved with these files, and the progress."""

    @abstractmethod
    def read(self, action: str) -> Call:
        """Return the call in an action."""

    def use(self, call: Call) -> str:
        """Return the observation of a call of another tool than the shell and ``submit``; here there are none."""
        return f"There is no tool {call.tool!r}."

    def shown(self, ran: Ran) -> str:
        """Return what an agent sees of a command."""
        return output_text(ran, self.options.output)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        number, made = self.draw(self._drawn, lambda found: self.text_of(found[1]))
        self._enter(number, made)
        return self._opening

    def _drawn(self, generator: np.random.Generator) -> tuple[int, MadeT]:
        number = int(generator.integers(NUMBERS))
        return number, self.make(number)

    def _enter(self, number: int, made: MadeT, tree: str = "") -> None:
        self._number, self._log = number, []
        files, self._opening = self.enter(made)
        self._machine.restart(files, tree)
        self._judge()

    def _judge(self) -> None:
        """Judge the files that there are now."""
        self._solved, self._done = self.judge(self._machine.files())

    def apply_action(self, action: str) -> Outcome[str]:
        call, before = self.read(action), self._done
        is_last = self.turn + 1 >= self.max_turns
        is_over, observation = call.tool == SUBMIT, "You have submitted."
        if call.tool == BASH:
            observation, is_over = self._ran(call.content)
        elif not call.tool:
            observation = f"That is no action; {call.problem}."
        elif not is_over:
            observation = self.use(call)
            self._judge()
        self._log.append((f"{call.tool} {call.content}" if call.tool else "", observation))
        is_over = is_over or is_last
        success = is_over and self._solved
        reward = self._done - before if self.options.reward == "dense" else float(success)
        return Outcome(observation, reward, is_over, success, bool(call.tool))

    def _ran(self, command: str) -> tuple[str, bool]:
        """Return what the agent sees of a command, and whether the machine has ended with it."""
        try:
            text = command.strip("\n").encode("utf8", "replace").decode()
            ran = self._machine.run(text, self.options.seconds, self.turn + 1)
        except BoxError:
            self._machine.close()
            self._solved, self._done = False, 0.0
            return "The machine has ended: your processes took more memory than they may, or changed it.", True
        self._judge()
        return self.shown(ran), False

    def anchor(self) -> str:
        return "\n".join([self._opening, *(part for pair in self._log for part in pair)])

    def progress(self) -> float:
        return self._done

    @property
    def work_folder(self) -> str:
        """Folder of the machine that holds the task, the first of several."""
        return f"/{ROOT}"

    def save_state(self) -> JSONValue:
        if self._machine.tree is None:
            raise SnapshotUnsupported("the machine holds more files than a snapshot may: remove some first.")
        return {"number": self._number, "log": [list(pair) for pair in self._log], "tree": self._machine.tree}

    def load_state(self, state: JSONValue) -> None:
        number, log, tree = saved_number(state["number"]), state["log"], state["tree"]
        if not isinstance(tree, str):
            raise ValueError("the files")
        made, instance = self.make(number), self.instance
        if self.text_of(made) != instance:
            raise ValueError("the instance is another one")
        self._enter(number, made, tree)
        self._log = [(str(call), str(shown)) for call, shown in log]

    def close(self) -> None:
        """Remove the machine's box."""
        self._machine.close()
        super().close()
