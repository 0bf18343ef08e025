"""MathPython: mathematical problems, with a Python interpreter to compute with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from turngym.envs.core import MaxTurns, Outcome
from turngym.envs.data_files import data_file, read_lines
from turngym.envs.parsing.calls import harmless
from turngym.envs.search.step_rewards import tool_efficiency
from turngym.envs.sets import PROCEDURAL, SetEnv
from turngym.envs.settings import worded
from turngym.envs.tools.calls import ANSWER, PYTHON, read, show, write
from turngym.envs.tools.math_python.answers import require_comparison, same_answer
from turngym.envs.tools.math_python.problems import KINDS, LEVELS, Problem, draw_problem
from turngym.envs.tools.sandbox import Limits
from turngym.envs.tools.workbench import Workbench, shared_sandbox
from turngym.envs.validation import require_running
from turngym.errors import ConfigError, MissingExtra
from turngym.options import between, one_of
from turngym.types import JSONValue

_TOOL_RULES = """Solve the problem. You may think first; then write one of:
{python}
{answer}
Code runs in one interpreter, which keeps its variables; you see what it prints and the value of its last line, at \
most {most} characters. It has {seconds:g} seconds, the standard library and no network. Give the answer itself, \
without explanation or unit. {numbers} You have {turns} turns; the last one is for the answer."""
_PLAIN_RULES = """Solve the problem. You may think first; then write the answer itself, without explanation or unit:
{answer}
{numbers} You have {turns} turns."""
_NUMBERS = """A number must be worked out: a whole number as in 12, any other exactly, as in 3/4, 2 1/2 or 0.75. A \
formula counts only where the answer is one."""
_LONGEST_ANSWER = 1000
_LONGEST_CODE = 20_000

Cost: TypeAlias = Annotated[float, between(0, 1e6)]


class MathPython(SetEnv[Problem]):
    r"""Solve a mathematical problem with a few turns of Python.

    The episode terminates with an answer, right or wrong, and is truncated at ``max_turns``; in the last turn no code
    runs. Answers are compared as numbers, or as functions of their letters where they hold letters; where the right
    answer is a number, a formula with that value is wrong, because it would leave the computation to the grader. Equal
    calls give equal output as far as possible: the generator of ``random`` is seeded, sets have a fixed order, memory
    addresses are hidden; code that reads a clock may still differ.

    >>> env = MathPython(tool=False)
    >>> question, info = env.reset(seed=0)
    >>> env.step(env.expert_action())[1]
    1.0
    """

    class Options(SetEnv.Options):
        dataset: str = PROCEDURAL
        """``"procedural"``, or the name of a set in ``folder``."""
        folder: str = ""
        """Folder of the sets, as JSON lines with ``question``, ``answer`` and, where known, ``calculator_steps``."""
        kind: Annotated[str, one_of("mixed", *KINDS)] = "mixed"
        """Kind of procedural problems, such as ``"probability"``, or ``"mixed"`` for all but ``"arithmetic"``, the
        easiest to write as a program."""
        level: Annotated[int, between(LEVELS[0], LEVELS[-1])] = 2
        """Difficulty of procedural problems."""
        tool: bool = True
        """True if there is an interpreter."""
        form: Literal["tags", "json"] = "tags"
        """Syntax of calls and answers."""
        sandbox: str = "auto"
        """Sandbox backend of code: ``"auto"``, ``"bubblewrap"`` or ``"docker"``."""
        seconds: Annotated[float, between(0.1, 600)] = 5.0
        """Time of one call."""
        output: Annotated[int, between(100, 20000)] = 2000
        """Characters shown of a call's output."""
        tool_cost: Cost = 0.0
        """Subtracted from the reward at every call."""
        error_cost: Cost = 0.0
        """Also subtracted where the call ends in an error."""
        format_penalty: Cost = 0.0
        """Penalty of a turn that is neither a call nor an answer."""
        efficiency: bool = False
        """True if a right answer is worth less after more calls (OTC)."""
        max_turns: MaxTurns = 6

    options: Options

    file_options = worded("kind", "form")
    finds_action = True

    item_noun: ClassVar[str] = "problem"

    def setup(self) -> None:
        options = self.options
        self._costs = options.tool_cost, options.error_cost, options.format_penalty
        self._form = options.form
        if options.dataset != PROCEDURAL:
            self.items = _read_problems(data_file(options.folder, options.dataset, self.split))
        self._bench = self._workbench(options.sandbox, options.seconds) if options.tool else None
        told = {
            "python": write(PYTHON, "code", options.form),
            "answer": write(ANSWER, "text", options.form),
            "turns": self.max_turns,
        }
        rules = _TOOL_RULES if options.tool else _PLAIN_RULES
        self.instructions = rules.format(**told, numbers=_NUMBERS, most=options.output, seconds=options.seconds)

    def _workbench(self, backend: str, seconds: float) -> Workbench:
        limits = Limits(wall_seconds=seconds, output_kib=1024)
        try:
            return Workbench(shared_sandbox(backend, limits))
        except MissingExtra as error:
            raise MissingExtra(f"{self.env_id}: {error} Or pass tool=False to play without code.") from error

    def begin(self, task: str | int | None) -> str:
        self._problem = self.next_item(task)
        self._clear()
        return f"Problem: {harmless(self._problem.question)}"

    def generate_item(self, generator: np.random.Generator) -> Problem:
        return draw_problem(self.options.kind, self.options.level, generator)

    def item_text(self, item: Problem) -> str:
        return item.question

    def _clear(self) -> None:
        self._calls: list[tuple[str, str]] = []
        self._answer: str | None = None
        if self._bench is not None:
            self._bench.restart()

    def apply_action(self, action: str) -> Outcome[str]:
        call = read(action, self._form)
        if call.tool == ANSWER:
            self._answer = call.content[:_LONGEST_ANSWER]
            self._end()
            is_right = same_answer(self._answer, self._problem.answer, must_be_worked_out=True)
            worth = tool_efficiency(len(self._calls), self.max_turns - 1) if self.options.efficiency else 1.0
            return Outcome("Your answer is taken.", is_right * worth, True, is_right)
        if call.tool == PYTHON and call.content and self._bench is not None and len(call.content) <= _LONGEST_CODE:
            return self._compute(call.content, self._bench)
        problem = call.problem or (
            "there is no code" if not call.content else f"code has {_LONGEST_CODE} letters at most"
        )
        if call.tool == PYTHON and self._bench is None:
            problem = "code cannot be run here: answer"
        if self.turn + 1 >= self.max_turns:
            self._end()
        text = f"That is no action; {problem}.{self._warning()}"
        return Outcome(text, 0.0 - self._costs[2], action_is_valid=False)

    def _compute(self, code: str, bench: Workbench) -> Outcome[str]:
        if self.turn + 1 >= self.max_turns:
            self._end()
            return Outcome("No turns are left to read what code says.", 0.0 - self._costs[0])
        found = bench.run(code)
        text = show(found, self.options.output)
        self._calls.append((code, text))
        cost = self._costs[0] + self._costs[1] * (found.status != "ok")
        return Outcome(text + self._warning(), 0.0 - cost)

    def _end(self) -> None:
        if self._bench is not None:
            self._bench.close()

    def _warning(self) -> str:
        is_next_to_last = self.turn + 2 == self.max_turns
        return "\n<warning>The next turn is the last: give your answer.</warning>" if is_next_to_last else ""

    def progress(self) -> float:
        return float(self._success == 1)  # the remaining distance is unknown

    def anchor(self) -> str:
        shown = "\n".join(f"{code}\n{text}" for code, text in self._calls)
        return f"{self._problem.question}\n{shown}\n{self._answer or ''}"

    def save_state(self) -> JSONValue:
        log = [] if self._bench is None else self._bench.log
        return {"problem": self._problem.as_json(), "calls": self._calls, "log": log, "answer": self._answer}

    def load_state(self, state: JSONValue) -> None:
        self._problem = Problem.from_json(state["problem"])
        self._clear()
        self._calls = [(str(code), str(text)) for code, text in state["calls"]]
        self._answer = None if state["answer"] is None else str(state["answer"])
        if self._bench is not None:
            self._bench.restart(tuple(map(str, state["log"])))

    def expert_action(self) -> str:
        """Return the oracle's move: its programs one after the other, then the known answer.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        done = {code for code, _ in self._calls}
        missing = [code for code in self._problem.code if code not in done]
        if missing and self._bench is not None and self.turn + 1 < self.max_turns:
            return write(PYTHON, missing[0], self._form)
        return write(ANSWER, self._problem.answer, self._form)

    @property
    def problem(self) -> Problem:
        """The problem with its answer; not for agents."""
        return self._problem

    def close(self) -> None:
        """End any running process."""
        if getattr(self, "_bench", None) is not None:
            self._end()
        super().close()


def _read_problems(path: Path) -> tuple[Problem, ...]:
    """Return the problems of a file.

    Raises:
        ConfigError: The file is damaged.
        MissingExtra: Some answers are not plain numbers, and the package that compares those is missing.
    """
    found = []
    for number, raw in enumerate(read_lines(path), 1):
        if not all(isinstance(raw.get(key), str) for key in ("question", "answer")):
            raise ConfigError(f"line {number} of {path} must have the texts question and answer.")
        steps = tuple(str(step).partition("=")[0] for step in raw.get("calculator_steps") or ())
        code = ("\n".join(f"print({step})" for step in steps),) if steps else ()
        found.append(Problem(str(raw.get("subject") or ""), raw["question"], raw["answer"], code))
    require_comparison(problem.answer for problem in found)
    return tuple(found)
