"""CodeRepair: find the fault in a small program, or write one, with feedback from tests after every attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from turngym.envs.core import MaxTurns, Outcome
from turngym.envs.data_files import data_file
from turngym.envs.parsing.calls import Calls, cut, harmless
from turngym.envs.parsing.scanning import first_element
from turngym.envs.sets import PROCEDURAL, SetEnv
from turngym.envs.settings import worded
from turngym.envs.tools.calls import code_in
from turngym.envs.tools.code_repair.cases import CodeTask, read_code_tasks
from turngym.envs.tools.code_repair.exporting import harbor_files
from turngym.envs.tools.code_repair.faults import Fault, faults
from turngym.envs.tools.code_repair.grading import Ran, passed, run_tests
from turngym.envs.tools.code_repair.programs import Program, programs
from turngym.envs.tools.code_repair.returned import shown
from turngym.envs.tools.code_repair.values import decode, encode
from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.sandbox import Limits
from turngym.envs.tools.workbench import shared_sandbox
from turngym.envs.validation import require_running
from turngym.options import between
from turngym.seeding import stream
from turngym.types import JSONValue

_RULES = """{work} You may think first; then write the whole program:
{example}
Every attempt is run on the examples shown and on hidden tests, {seconds:g} seconds for each; you are told how many it \
passes. You have {turns} attempts."""
_WORK = {
    "repair": "The program has a fault. Repair it, so that it does what it says.",
    "write": "Write the program that is described.",
}
_SUBMIT = Calls({"submit": "code"}, {"json": ""})
_LONGEST = 20_000
_HIDDEN, _VISIBLE = 12, 3


def program_in(action: str, form: str) -> str | None:
    """Return the program in an action, None if there is none.

    >>> program_in("I see. <code>def f(): pass</code>", "tags")
    'def f(): pass'
    """
    if form == "tags":
        found = first_element(action, ("code",))
        return None if found is None else code_in(found.content)
    call = _SUBMIT.read(action, form)
    return code_in(call.content) if call.tool else None


def written(program: str, form: str) -> str:
    """Return the action that submits a program."""
    if form == "tags":
        return f"<code>\n{program.rstrip()}\n</code>"
    return _SUBMIT.write("submit", program.rstrip(), form)


class CodeRepair(SetEnv[CodeTask]):
    """Repair or write a program in a few attempts, given examples and hidden tests.

    The reward of an attempt is the increase of the best share of hidden tests passed so far; the episode terminates
    when all pass, which is the only success, and is truncated at ``max_turns``. The score is the best share. A program
    runs in the sandbox, in a separate session for each attempt; expected outputs never enter it. Programs that use a
    clock or true randomness may give different results next time.
    """

    class Options(SetEnv.Options):
        dataset: str = PROCEDURAL
        """``"procedural"``, or the name of a set in ``folder``."""
        folder: str = ""
        """Folder of the sets, as JSON lines in the form of MBPP or HumanEval."""
        mode: Literal["repair", "write"] = "repair"
        """Procedural tasks: ``"repair"`` or ``"write"``; the programs of sets are written."""
        faults: Annotated[int, between(1, 2)] = 1
        """Faults in a procedural program."""
        examples: Annotated[int, between(0, 20)] = 1
        """Number of tests shown, for sets; procedural tasks show 3."""
        form: Literal["tags", "json"] = "tags"
        """Syntax of programs."""
        sandbox: str = "auto"
        """Sandbox backend of programs: ``"auto"``, ``"bubblewrap"`` or ``"docker"``."""
        seconds: Annotated[float, between(0.1, 600)] = 2.0
        """Time of one test."""
        memory_mib: Annotated[int, between(64, 16384)] = 256
        """Memory of a program."""
        format_penalty: Annotated[float, between(0, 1e6)] = 0.0
        """Penalty of a turn without a program."""
        max_turns: MaxTurns = 4

    options: Options

    file_options = worded("mode", "form")
    finds_action = True

    item_noun: ClassVar[str] = "program"

    def setup(self) -> None:
        options = self.options
        self._form, self._seconds = options.form, float(options.seconds)
        self._mode = options.mode if options.dataset == PROCEDURAL else "write"
        if options.dataset != PROCEDURAL:
            self.items = read_code_tasks(data_file(options.folder, options.dataset, self.split), options.examples)
        self._sandbox = shared_sandbox(
            options.sandbox, Limits(wall_seconds=self._seconds, memory_mib=options.memory_mib)
        )
        self.instructions = _RULES.format(
            work=_WORK[self._mode], example=written("...", options.form), seconds=options.seconds, turns=self.max_turns
        )

    def begin(self, task: str | int | None) -> str:
        self._task = self.next_item(task)
        self._best, self._last, self._report = self._task.share, "", ""
        return self._first_words()

    def generate_item(self, generator: np.random.Generator) -> CodeTask:
        if self._mode == "repair":
            known = faults(self.options.faults)
            return faulty_task(known[int(generator.integers(len(known)))])
        names = tuple(programs())
        return blank_task(programs()[names[int(generator.integers(len(names)))]])

    def item_text(self, item: CodeTask) -> str:
        text = f"{item.text}\n{item.start}"
        return text if self.items is None else f"{item.name}\n{text}"  # programs of a set may have the same description

    def _first_words(self) -> str:
        task = self._task
        parts = [harmless(task.text)] if task.text else []
        if task.start:
            parts.append(f"```python\n{harmless(task.start.rstrip())}\n```")
        parts.append(f"Name of the function: {task.name}")
        shown = zip(task.inputs[: task.visible], task.outputs, strict=False)
        parts += [f"Example: {_call(task.name, values)} == {_short(output)}" for values, output in shown]
        count = len(task.inputs) - task.visible
        if self._mode == "repair":
            parts.append(f"It passes {round(task.share * count)} of {count} hidden tests.")
        else:
            parts.append(f"There are {count} hidden tests.")
        return "\n".join(parts)

    def apply_action(self, action: str) -> Outcome[str]:
        program = program_in(action, self._form)
        if not program or len(program) > _LONGEST:
            problem = f"a program has {_LONGEST} letters at most" if program else "there is no program in it"
            text = f"That is no action; {problem}: write {written('...', self._form)}"
            return Outcome(text, 0.0 - self.options.format_penalty, action_is_valid=False)
        task = self._task
        inputs = [[encode(value) for value in values] for values in task.inputs]
        ran, problem = run_tests(self._sandbox, program, task.name, inputs, self._seconds)
        fine = passed(ran, task.outputs)
        hidden = fine[task.visible :]
        share = sum(hidden) / len(hidden)
        rise, self._best = max(0.0, share - self._best), max(share, self._best)
        self._last, self._report = program, self._told(ran, fine, problem)
        return Outcome(self._report, rise, all(fine), all(fine))

    def _told(self, ran: Sequence[Ran], fine: Sequence[bool], problem: str) -> str:
        task = self._task
        lines = [f"The program cannot be run: {harmless(cut(problem, 300))}"] if problem else []
        for values, output, one, is_fine in zip(task.inputs[: task.visible], task.outputs, ran, fine, strict=False):
            if not problem:
                got = shown(one.value) if one.is_known else one.problem
                verdict = "right" if is_fine else f"wrong: expected {_short(output)}, got {harmless(cut(got, 300))}"
                lines.append(f"{_call(task.name, values)}: {verdict}")
                if one.output:
                    lines.append(f"It printed: {harmless(cut(one.output.strip(), 300))}")
        count = len(task.inputs) - task.visible
        return "\n".join([*lines, f"Hidden tests passed: {sum(fine[task.visible :])} of {count}."])

    def progress(self) -> float:
        return self._best

    def score(self) -> float:
        return self._best

    def anchor(self) -> str:
        return f"{self.instance}\n{self._last}\n{self._report}"

    def save_state(self) -> JSONValue:
        task = self._task._asdict() | {"inputs": encode(self._task.inputs), "outputs": encode(self._task.outputs)}
        return {"task": task, "best": self._best, "last": self._last, "report": self._report}

    def load_state(self, state: JSONValue) -> None:
        task = dict(state["task"])
        task["inputs"], task["outputs"] = decode(task["inputs"]), decode(task["outputs"])
        self._task = CodeTask(**task)
        self._best, self._last, self._report = float(state["best"]), str(state["last"]), str(state["report"])

    def expert_action(self) -> str:
        """Return the right program.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return written(self._task.solution, self._form)

    def harbor_files(self) -> dict[str, Entry]:
        """Return the files of a Harbor folder with the task of the episode and its judge; not for agents."""
        return harbor_files(self._task, self._first_words(), self._seconds, self.options.memory_mib)

    @property
    def task(self) -> CodeTask:
        """The task with its tests and solution; not for agents."""
        return self._task


def faulty_task(fault: Fault) -> CodeTask:
    """Return the task of a fault; at least one hidden test shows it, and an example too where two inputs do."""
    program = programs()[fault.program]
    order = list(map(int, stream("tests", fault.source).permutation(len(program.inputs))))
    failing = [place for place in order if place in fault.failing]
    fine = [place for place in order if place not in fault.failing]
    count = min(_VISIBLE, len(order) // 3)
    first, shown_fault = failing[0], failing[1:2]
    rest = [place for place in order if place not in (first, *shown_fault)]
    visible = [*shown_fault, *(place for place in rest if place in fine)][:count]
    visible += [place for place in rest if place not in visible][: count - len(visible)]
    hidden = [first, *(place for place in rest if place not in visible)][:_HIDDEN]
    share = sum(place not in fault.failing for place in hidden) / len(hidden)
    return _made(program, fault.source, visible, hidden, share)


def blank_task(program: Program) -> CodeTask:
    """Return the task to write a program of which there is the first line and what it does."""
    order = list(map(int, stream("tests", program.name).permutation(len(program.inputs))))
    count = min(_VISIBLE, len(order) // 3)
    head = program.source.partition("\n")[0]
    start = f'{head}\n    """{program.summary}"""\n'
    return _made(program, start, order[:count], order[count:][:_HIDDEN], 0.0)


def _made(program: Program, start: str, visible: list[int], hidden: list[int], share: float) -> CodeTask:
    places = visible + hidden
    inputs, outputs = tuple(tuple(program.inputs[i]) for i in places), tuple(program.outputs[i] for i in places)
    return CodeTask(program.name, "", start, program.source, inputs, outputs, len(visible), share)


def _call(name: str, values: Sequence[Any]) -> str:
    return f"{name}({', '.join(map(_short, values))})"


def _short(value: Any) -> str:
    return harmless(cut(repr(value), 300))
