"""Questions of the user's own, answered over several turns, with tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

from turngym.envs.core import UNBOUNDED, MaxTurns, Outcome, TextEnv
from turngym.envs.instances import canonical_text
from turngym.envs.parsing.calls import Calls, cut, harmless
from turngym.envs.settings import worded
from turngym.envs.tools.calls import ANSWER, PYTHON, read, read_native, show, text_tool
from turngym.envs.tools.questions.judges import Judge, find_judge
from turngym.envs.tools.questions.reading import EXAMPLE, FileTask, TaskSet, read_set
from turngym.envs.tools.questions.user_tools import UserTool, load_tools
from turngym.envs.tools.sandbox import Limits
from turngym.envs.tools.tool_schema import CALL_MARK, Tool, ToolSet
from turngym.envs.tools.workbench import Workbench, shared_sandbox
from turngym.envs.validation import require_running
from turngym.errors import ConfigError
from turngym.loading import said
from turngym.options import between
from turngym.types import JSONValue

TASK_COLUMN = "task_id"
"""Column of a turn with the id of its task."""
_LONGEST = 20_000
_RULES = """Answer the question. You may think first; then write {one_of}:
{calls}
{about}Give the answer itself, without explanation. You have {turns} turns{last}."""
_NATIVE_RULES = """Answer the question. You may think first; then call a tool: {answer} with the answer itself, \
without explanation. You have {turns} turns; the last one is for the answer."""
_ABOUT_CODE = """Code runs in one interpreter, which keeps its variables; you see what it prints and the value of its \
last line, at most {output} characters. It has {seconds:g} seconds, the standard library and no network.
"""


class Questions(TextEnv[str]):
    """Answer questions of a file or a data set over several turns, with tools.

    The episode terminates with a right answer or with the last of the ``attempts``, and is truncated at ``max_turns``;
    in the last turn no tool runs. The reward of an answer comes from ``reward``; success is a reward of at least 1.

    >>> env = Questions()
    >>> question, info = env.reset(seed=0)
    >>> env.step(env.expert_action())[1]
    1.0
    """

    class Options(TextEnv.Options):
        data: str = EXAMPLE
        """File of questions (JSON Lines, see :func:`turngym.envs.tools.questions.read_tasks`); ``hf:NAME``,
        ``hf:NAME#CONFIG`` or ``hf:NAME:SPLIT`` for Hugging Face's ``datasets``; or ``"example"``, thirty questions
        that come with turngym."""
        reward: str = "auto"
        """Reward of an answer (see :func:`turngym.envs.tools.questions.judges.find_judge`): ``"auto"`` (``math`` if
        all answers are numbers, else ``normalised``), ``"exact"``, ``"normalised"``, ``"wide"``, ``"contains"``,
        ``"numeric"``, ``"math"``, ``"none"``, or a function ``path/to/file.py:function`` of task and answer."""
        tools: tuple[str, ...] = ()
        """``"python"``, an interpreter in a sandbox, functions ``path/to/file.py:function`` of one text, and the tools
        of MCP servers, ``"mcp:COMMAND"`` or ``"mcp:http://..."``."""
        form: Literal["tags", "json", "plain"] = "tags"
        """Syntax of calls and answers; with ``"plain"`` the whole action is the answer, and there are no rules."""
        attempts: Annotated[int, between(1, 100)] = 1
        """Answers that may be given; a wrong one is reported as such."""
        tool_cost: Annotated[float, between(0, 1e6)] = 0.0
        """Subtracted from the reward at every call of a tool."""
        sandbox: str = "auto"
        """Sandbox backend of code: ``"auto"``, ``"bubblewrap"`` or ``"docker"``."""
        seconds: Annotated[float, between(0.1, 600)] = 5.0
        """Time of one run of code."""
        output: Annotated[int, between(100, 20000)] = 2000
        """Characters shown of a tool's result."""
        max_turns: MaxTurns = 6

        def check(self) -> None:
            """Raise where the syntax has no calls for the tools."""
            if self.form == "plain" and self.tools:
                raise ConfigError(f"form plain has no syntax for tools, got tools={list(self.tools)}: pass form=tags.")

    options: Options
    file_options = worded("form")

    def setup(self) -> None:
        options = self.options
        self.finds_action = options.form != "plain"
        tasks = read_set(options.data)
        self._judge = _judge(options.reward, tasks)
        self.score_range = (0.0, 1.0) if ":" not in options.reward else UNBOUNDED
        self._tasks, self._names = tasks.of(self.split), tasks.names(self.split)
        if not self._names:
            raise ConfigError(
                f"{options.data} has no question of the split {self.split!r}, only of {', '.join(tasks.splits)}: add "
                "one, or pass split."
            )
        self.finite_instances = len(self._names)
        self._tools = load_tools(tuple(name for name in options.tools if name != PYTHON), {PYTHON, ANSWER})
        self._bench = None
        if PYTHON in options.tools:
            self._bench = Workbench(shared_sandbox(options.sandbox, Limits(options.seconds, output_kib=1024)))
        self._calls = self._known_calls()
        self.instructions = "" if options.form == "plain" else self._rules()
        if options.form == "tags" and options.tools:
            self._declared = self._declarations()
            rules = _NATIVE_RULES.format(answer=ANSWER, turns=self.max_turns)
            self.native_tools = ToolSet(tuple(each.schema for each in self._declared.values()), rules)

    def _known_calls(self) -> Calls:
        fields = {**({PYTHON: "code"} if self._bench else {}), **dict.fromkeys(self._tools, "text"), ANSWER: "text"}
        texts = {
            "tags": "write " + " or ".join(f"<{name}>{field}</{name}>" for name, field in fields.items()),
            "json": "write " + " or ".join(f'{{"tool": "{name}", "{field}": "..."}}' for name, field in fields.items()),
        }
        return Calls(fields, texts)

    def _rules(self) -> str:
        options, calls, has_tools = self.options, self._calls, bool(self._bench or self._tools)
        lines = []
        for name, field in calls.fields.items():
            about = f"  ({self._tools[name].description})" if name in self._tools else ""
            lines.append(calls.write(name, field, options.form) + about)
        return _RULES.format(
            one_of="one of" if has_tools else "the answer",
            calls="\n".join(lines),
            about=_ABOUT_CODE.format(output=options.output, seconds=options.seconds) if self._bench else "",
            turns=self.max_turns,
            last="; the last one is for the answer" if has_tools else "",
        )

    def _declarations(self) -> dict[str, Tool]:
        """Return the calls as tools of one text each, for models with native tool calls."""
        options = self.options
        about = {name: each.description for name, each in self._tools.items()} | {
            PYTHON: _ABOUT_CODE.format(output=options.output, seconds=options.seconds).strip(),
            ANSWER: "Give the answer.",
        }
        return {name: text_tool(name, field, about[name]) for name, field in self._calls.fields.items()}

    def tasks(self) -> tuple[str, ...]:
        """Return the ids of the questions of the split."""
        return self._names

    def begin(self, task: str | int | None) -> str:
        """Take the question of that id, or draw one."""
        name = self._names[int(self.np_random.integers(len(self._names)))] if task is None else str(task)
        if name not in self._tasks:
            raise ConfigError(f"{self.env_id} has no task {name[:100]!r} in the split {self.split}.")
        for tool in self._tools.values():
            tool.ready()
        self._take(name)
        question = self._task.instruction
        return question if self.options.form == "plain" else f"Question: {harmless(question)}"

    def _take(self, name: str) -> None:
        self._task = self._tasks[name]
        self._used: list[tuple[str, str, str]] = []
        self._answers: list[str] = []
        self._reward = 0.0
        if self._bench is not None:
            self._bench.restart()
        self.instance = _content_of(self._task)

    def apply_action(self, action: str) -> Outcome[str]:
        """Run a tool, or judge an answer."""
        if self.options.form == "plain":
            return self._answered(action)
        is_native = self.native_tools is not None and action.startswith(CALL_MARK)
        call = read_native(action, self._declared) if is_native else read(action, self.options.form, self._calls)
        if call.tool == ANSWER:
            return self._answered(call.content)
        if call.tool and call.content and len(call.content) <= _LONGEST:
            return self._run(call.tool, call.content)
        problem = call.problem or f"{call.tool} needs a text of at most {_LONGEST:,} characters"
        self._end_last_turn()
        return Outcome(f"That is no action; {problem}.{self._warning()}", action_is_valid=False)

    def _answered(self, answer: str) -> Outcome[str]:
        self._answers.append(answer[:_LONGEST])
        grade = self._judge(self._task, answer)
        self._reward = grade.reward
        left = self.options.attempts - len(self._answers)
        if grade.success or left <= 0:
            self._end()
            return Outcome("Your answer is taken.", grade.reward, terminated=True, success=grade.success)
        self._end_last_turn()
        return Outcome(f"That is not right. Attempts left: {left}.{self._warning()}")

    def _run(self, name: str, content: str) -> Outcome[str]:
        cost = 0.0 - self.options.tool_cost
        if self.turn + 1 >= self.max_turns:
            self._end()
            return Outcome("No turns are left to read what a tool says.", cost)
        if name == PYTHON:
            assert self._bench is not None
            text = show(self._bench.run(content), self.options.output)
        else:
            text = (
                f"<output>\n{harmless(cut(self._result(self._tools[name], content), self.options.output))}\n</output>"
            )
        self._used.append((name, content, text))
        return Outcome(text + self._warning(), cost)

    def _result(self, tool: UserTool, content: str) -> str:
        try:
            return str(tool.call(content))
        except Exception as error:  # user code: any exception is reported to the agent
            return f"Error: {said(error)}"

    def _end(self) -> None:
        if self._bench is not None:
            self._bench.close()

    def _end_last_turn(self) -> None:
        if self.turn + 1 >= self.max_turns:
            self._end()

    def _warning(self) -> str:
        is_next_to_last = self.turn + 2 == self.max_turns
        return "\n<warning>The next turn is the last: give your answer.</warning>" if is_next_to_last else ""

    @property
    def task(self) -> FileTask:
        """The question of the episode with its answers; not for agents."""
        return self._task

    def progress(self) -> float:
        return float(self._success == 1)  # the remaining distance is unknown

    def score(self) -> float:
        """Return the reward of the last answer."""
        return self._reward

    def anchor(self) -> str:
        seen = "\n".join(f"{name} {content}\n{text}" for name, content, text in self._used)
        return "\n".join([self._task.instruction, seen, *self._answers])

    def turn_columns(self) -> Mapping[str, float | str]:
        """Return the id of the question."""
        return {TASK_COLUMN: self._task.id}

    def expert_action(self) -> str:
        """Return the first accepted answer.

        Raises:
            ConfigError: No episode is under way, or the question has no answer.
        """
        require_running(self)
        if not self._task.answers:
            raise ConfigError(
                f"the task {self._task.id!r} has no answer to demonstrate: pass --warmup.demonstrations 0."
            )
        answer = self._task.answers[0]
        return answer if self.options.form == "plain" else self._calls.write(ANSWER, answer, self.options.form)

    def save_state(self) -> JSONValue:
        log: list[str] = [] if self._bench is None else self._bench.log
        used = [list(each) for each in self._used]
        content = {"used": used, "log": log, "answers": list(self._answers), "reward": self._reward}
        return {"task": self._task.id, **content}

    def load_state(self, state: JSONValue) -> None:
        name = str(state["task"])
        if name not in self._tasks:
            raise ValueError(f"the snapshot is of a question that {self.options.data} does not have")
        self._take(name)
        self._used = [(str(tool), str(content), str(text)) for tool, content, text in state["used"]]
        self._answers = list(map(str, state["answers"]))
        self._reward = float(state["reward"])
        if self._bench is not None:
            self._bench.restart(tuple(map(str, state["log"])))

    def close(self) -> None:
        """End any running process."""
        if getattr(self, "_bench", None) is not None:
            self._end()
        super().close()


@lru_cache(maxsize=16)
def _judge(name: str, tasks: TaskSet) -> Judge:
    return find_judge(name, tasks.tasks)


def _content_of(task: FileTask) -> str:
    """Return the canonical text of a question: everything that its episodes can depend on."""
    parts: list[JSONValue] = [task.id, task.instruction, list(task.answers), dict(task.files)]
    return canonical_text([*parts, dict(task.metadata)] if task.metadata else parts)
