"""One trial of a task: its boxes, its steps, and their verification."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turngym.envs.tools.harbor.box import LARGEST_SNAPSHOT, Box, BoxLost, BoxSpoiled, Ran
from turngym.envs.tools.harbor.files import Entry, packed
from turngym.envs.tools.harbor.rewards import REWARD, VerifierError, combined, passes, read_rewards
from turngym.envs.tools.harbor.settings import BoxSettings, StepSettings, resolved
from turngym.envs.tools.harbor.tasks import Task
from turngym.errors import SnapshotUnsupported, TurngymError
from turngym.types import JSONValue

TESTS, VERIFIER_LOGS, ARTIFACTS = "/tests", "/logs/verifier", "/logs/artifacts"
_LARGEST_ARTIFACTS = LARGEST_SNAPSHOT
_POLL_SECONDS, _SHELL_SECONDS = 0.5, 60.0
_SIGNALLED = 128
"""Exit status of a shell whose command was killed, less the number of the signal."""
MakeBox = Callable[[Task, Path, BoxSettings, Mapping[str, str]], Box]
"""Makes the box of a folder with a Dockerfile: task, folder, settings, variables."""


class SetUpError(TurngymError, RuntimeError):
    """A box that is not ready in time, or whose set-up failed. The episode counts as a fault."""


class Rules(NamedTuple):
    """What is the same in every trial.

    Args:
        make_box: Makes boxes.
        variables: Variables of the host that tasks may read.
        seconds: Longest time of one command.
        stay: Whether the processes of a command continue after it.
    """

    make_box: MakeBox
    variables: tuple[str, ...]
    seconds: float
    stay: bool


class Trial:
    """A task under way.

    Args:
        task: The task.
        rules: What is the same in every trial.
    """

    def __init__(self, task: Task, rules: Rules) -> None:
        self.task, self._rules = task, rules
        self.results: list[dict[str, float]] = []
        self.is_over = False
        self._number = 0
        self._spent = 0.0
        self._box: Box | None = None
        self._tree = ""

    @property
    def step(self) -> StepSettings:
        """The step under way."""
        return self.task.settings.steps[self._number]

    @property
    def number(self) -> int:
        """Number of the step, from 1."""
        return self._number + 1

    @property
    def rewards(self) -> dict[str, float]:
        """Rewards of the task by name, from the steps so far."""
        return combined(self.results, self.task.settings.strategy)

    def run(self, command: str) -> Ran:
        """Run a command of the agent.

        Raises:
            BoxLost: The box has ended.
            SetUpError: The box could not be made.
        """
        box = self._ready()
        left = self.step.agent_seconds - self._spent
        if left <= 0:
            return Ran(124, "The time of this step is up: submit.", True)
        start = time.monotonic()
        ran = box.run(command, {}, min(left, self._rules.seconds), stay=self._rules.stay, user=self.step.user)
        self._spent += time.monotonic() - start
        return ran

    def submit(self) -> None:
        """Verify the step, and start the next one or end.

        Raises:
            VerifierError: There is no reward.
            SetUpError: A box could not be made.
        """
        box = self._ready()
        try:
            self.results.append(self._verified(box))
            if self.number == len(self.task.settings.steps) or not passes(self.results[-1], self.step.min_reward):
                self.end()
                return
            self._number, self._spent = self._number + 1, 0.0
            self._start_step(box)
        except (BoxLost, BoxSpoiled):
            self.lose()

    def lose(self) -> None:
        """End after the agent has brought down or spoiled its box: the step counts 0."""
        self.results.append({REWARD: 0.0})
        self.end()

    def end(self) -> None:
        """End the trial."""
        self.is_over, self._tree = True, ""
        self.close()

    def close(self) -> None:
        """Remove the box; calling it again has no effect."""
        box, self._box = self._box, None
        if box is not None:
            box.close()

    def save(self) -> dict[str, JSONValue]:
        """Return the state: results, step, and the files of the box.

        Raises:
            SnapshotUnsupported: Processes run in the box, or its files are too large.
        """
        tree = self._tree
        if self._box is not None:
            if self._rules.stay and self._box.has_processes():
                raise SnapshotUnsupported("processes run in the box, which no snapshot holds: end them first.")
            found = self._box.get(["/"], LARGEST_SNAPSHOT)
            if found is None:
                raise SnapshotUnsupported(
                    f"the box holds more than {LARGEST_SNAPSHOT:,} bytes, too much for a snapshot."
                )
            tree = found
        state: dict[str, JSONValue] = {"number": self._number, "results": [dict(each) for each in self.results]}
        return {**state, "is_over": self.is_over, "tree": tree}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`save` returned; the box is made when it is needed."""
        number, tree, is_over = state["number"], state["tree"], state["is_over"]
        if type(number) is not int or not 0 <= number < len(self.task.settings.steps):
            raise ValueError(f"step {number!r}")
        if not isinstance(tree, str) or not isinstance(is_over, bool):
            raise ValueError("files that are not text")
        results = [{str(name): float(value) for name, value in each.items()} for each in state["results"]]
        self.close()
        self._number, self.results, self.is_over, self._tree, self._spent = number, results, is_over, tree, 0.0

    def _ready(self) -> Box:
        """Return the box, made now if it is not there; a saved one gets its files."""
        if self._box is None:
            settings = self.task.settings.box
            self._box = self._made(self.task.folder / "environment", settings)
            if self._tree:
                self._box.put(self._tree, "/", empty=True)
                self._tree = ""
            else:
                self._start_step(self._box)
        return self._box

    def _made(self, folder: Path, settings: BoxSettings) -> Box:
        """Return a new box that is healthy, within the time for it."""
        deadline = time.monotonic() + settings.build_seconds
        env = resolved(settings.env, self._rules.variables, str(self.task.folder / "task.toml"))
        box = self._rules.make_box(self.task, folder, settings, env)
        try:
            while settings.healthcheck:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise SetUpError(
                        f"the healthcheck of {self.task.name} has not passed in {settings.build_seconds:g} s."
                    )
                if box.run(settings.healthcheck, {}, left, stay=True).code == 0:
                    break
                time.sleep(min(_POLL_SECONDS, max(0.0, left)))
        except BaseException:
            box.close()
            raise
        return box

    def _start_step(self, box: Box) -> None:
        """Give the box the files of the step, and run their set-up."""
        box.put("", box.workdir)
        files = self.task.workdir(self.step)
        if not self.step.name:
            return
        box.put("", TESTS, empty=True)
        box.put("", VERIFIER_LOGS, empty=True)
        box.put(packed(files), box.workdir)
        if "setup.sh" in files:
            seconds = self.task.settings.box.build_seconds
            ran = box.run("bash ./setup.sh", {}, seconds, stay=True)
            if ran.code or ran.is_late:
                told = "was not done in time" if ran.is_late else f"failed ({ran.output.strip()[-200:]})"
                raise SetUpError(f"setup.sh of step {self.step.name} of {self.task.name} {told}.")

    def _verified(self, box: Box) -> dict[str, float]:
        verifier, deadline = self.step.verifier, time.monotonic() + self.step.verifier.seconds
        if verifier.box is None:
            if not self._rules.stay:
                box.end_processes()
            return self._judged(box, deadline, self.task.tests(self.step))
        for command in verifier.collect:
            box.run(command, {}, max(1.0, deadline - time.monotonic()))
        paths = list(dict.fromkeys([*self.step.artifacts, ARTIFACTS]))
        artifacts = box.get(paths, _LARGEST_ARTIFACTS)
        if artifacts is None:
            raise VerifierError(f"the artifacts of {self.task.name} have more than {_LARGEST_ARTIFACTS:,} bytes.")
        folder, is_own = self.task.verifier_folder(self.step)
        judge = self._made(folder, verifier.box)
        try:
            judge.put(artifacts, "/")
            return self._judged(judge, deadline, {} if is_own else self.task.tests(self.step))
        finally:
            judge.close()

    def _judged(self, box: Box, deadline: float, tests: Mapping[str, Entry]) -> dict[str, float]:
        """Run the tests in a box, and return the rewards that they wrote; nothing that was there before counts."""
        verifier, place = self.step.verifier, str(self.task.folder / "task.toml")
        if tests:
            box.put(packed(tests), TESTS, empty=True)
        box.put("", VERIFIER_LOGS, empty=True)
        env = {"PYTHONNOUSERSITE": "1", **resolved(verifier.env, self._rules.variables, place)}
        left = deadline - time.monotonic()
        if left > 0:
            ran = box.run(f"bash {TESTS}/test.sh", env, left, stay=True, user=verifier.user)
        if left <= 0 or ran.is_late:
            raise VerifierError(f"the verifier of {self.task.name} was not done in {verifier.seconds:g} seconds.")
        box.end_processes()
        if ran.code < 0 or ran.code - _SIGNALLED in signal.valid_signals():
            raise BoxSpoiled(
                "the tests were killed, and what they wrote may be another's: code of the agent can do that."
            )
        try:
            return read_rewards(box.rewards(VERIFIER_LOGS))
        except VerifierError as error:
            if box is self._box and box.run("true", {}, _SHELL_SECONDS).code:
                raise BoxSpoiled("no shell starts in the box.") from error
            raise
