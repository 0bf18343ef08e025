"""Multi-turn questions of the Berkeley function-calling leaderboard (Patil et al. 2025), from the package bfcl-eval.

The package provides questions, simulated functions, reference calls and the checks of state and responses. Its runner
evaluates calls as Python; here they are JSON and reach the functions as arguments, so no text of a model is evaluated.
"""

from __future__ import annotations

import ast
import copy
import decimal
import importlib
import importlib.util
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from turngym.envs.core import LONGEST_ACTION, MaxTurns, Outcome, TextEnv
from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.settings import worded
from turngym.envs.tools.tool_schema import NOTATION, Tool, ToolSet, find_call, read_call, write_call
from turngym.envs.validation import require_running
from turngym.errors import ExpertLost, MissingExtra, UnknownName, nearest
from turngym.options import one_of
from turngym.types import JSONValue

REPLY = "reply"
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
_PACKAGE = "bfcl_eval"
_CHECKER = f"{_PACKAGE}.eval_checker.multi_turn_eval.multi_turn_checker"
_CONSTANTS = f"{_PACKAGE}.constants.executable_backend_config"
_TYPES = {"dict": "object", "float": "number"}
_COSTLY, _MOST = ("exponent", "precision", "decimal_places"), 1000
_RULES = """You are at work for a user, who has several requests, one after the other. Call functions until a request \
is done, then call {reply}, which brings the next request. If a request cannot be done with the functions there are, \
or lacks a detail that cannot be found out, call {reply} at once. You have {turns} turns."""
_TEXT_RULES = """{rules}
Answer with one call a turn: {notation}
Functions:
{schemas}"""
_MORE = "There are more functions now:\n{schemas}\nDo the last request with them."
_REPLY = Tool(
    REPLY,
    "Tell the user that the request is done, or what is missing, and get the next request.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False},
    str,
)


@lru_cache(maxsize=1)
def _data() -> Path:
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None or importlib.util.find_spec("mpmath") is None:
        raise MissingExtra(
            "turngym/BFCL-v0 needs the package bfcl-eval, which is not installed: pip install --no-deps bfcl-eval, and "
            'pip install mpmath. With all that it requires, some 6 GB, it is pip install "turngym[bfcl]".'
        )
    return Path(found.origin).parent / "data"


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf8").splitlines() if line.strip()]


@lru_cache(maxsize=len(CATEGORIES))
def _questions(category: str) -> Mapping[str, dict[str, Any]]:
    """Return the questions of a category by id, with their reference calls."""
    name = f"BFCL_v4_multi_turn_{category}.json"
    answers = {each["id"]: each["ground_truth"] for each in _lines(_data() / "possible_answer" / name)}
    return {each["id"]: {**each, "ground_truth": answers[each["id"]]} for each in _lines(_data() / name)}


@lru_cache(maxsize=32)
def _functions(api: str) -> tuple[Tool, ...]:
    """Return the documented functions of a simulated service."""
    files = importlib.import_module(_CONSTANTS).MULTI_TURN_FUNC_DOC_FILE_MAPPING
    docs = _lines(_data() / "multi_turn_func_doc" / files[api])
    return tuple(Tool(each["name"], each["description"], _as_schema(each["parameters"]), str) for each in docs)


def _as_schema(value: Any) -> Any:
    """Return a schema of the package, whose types have names of Python, as JSON Schema."""
    if isinstance(value, dict):
        return {
            key: _TYPES.get(part, part) if key == "type" and isinstance(part, str) else _as_schema(part)
            for key, part in value.items()
        }
    return value


class Services:
    """The simulated services of a question.

    Args:
        question: The question.
    """

    def __init__(self, question: Mapping[str, Any]) -> None:
        constants = importlib.import_module(_CONSTANTS)
        is_long = "long_context" in question["id"]
        self.parts: dict[str, Any] = {}
        for name in question["involved_classes"]:
            self.parts[name] = getattr(importlib.import_module(constants.CLASS_FILE_PATH_MAPPING[name]), name)()
            if name not in constants.STATELESS_CLASSES:
                config = copy.deepcopy(question["initial_config"].get(name, {}))
                self.parts[name]._load_scenario(config, long_context=is_long)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the response of a function as the package writes it; errors are responses too."""
        function = next(getattr(part, name) for part in self.parts.values() if hasattr(part, name))
        if any(abs(arguments[key]) > _MOST for key in _COSTLY if isinstance(arguments.get(key), int | float)):
            return f"Error during execution: {' and '.join(_COSTLY)} are at most {_MOST} here"
        try:
            with decimal.localcontext():
                found = function(**arguments)
        except Exception as error:  # as the package does
            return f"Error during execution: {error}"
        if isinstance(found, dict):
            try:
                return json.dumps(found)
            except (TypeError, ValueError):
                return str(found)
        return str(found)


def _read_reference(text: str, tools: Mapping[str, Tool]) -> tuple[str, dict[str, Any]]:
    """Return a reference call, which the package writes as Python, as name and arguments."""
    call: Any = ast.parse(text, mode="eval").body
    name = str(call.func.id)
    places = list(tools[name].parameters["properties"])
    named = {each.arg: each.value for each in call.keywords}
    given = {**dict(zip(places, call.args, strict=False)), **named}
    return name, {key: ast.literal_eval(value) for key, value in given.items()}


class BFCL(TextEnv[str]):
    """Serve a user's requests, one after the other, with functions of simulated services.

    The multi-turn questions of the leaderboard, 200 in each category. In ``miss_func`` a function is missing until a
    later turn, in ``miss_param`` the user leaves a detail out at first, and in ``long_context`` services answer at
    length. After each request the package's checks compare the state of the services with that after the reference
    calls, and what was answered so far with what these were answered. The episode ends with the first request that
    fails a check, or with the last one.

    The reward is 1 if all requests pass, or with ``reward="dense"`` the share of requests passed in each turn. Progress
    is that share. The expert makes the reference calls.

    Every split has all questions. ``multi_turn_miss_func_49`` cannot be solved: its second request needs the function
    ``tail``, which comes with the fourth. Differences to the package: one call a turn, a call ``reply`` ends a request,
    calls are JSON, exponents and precisions are bounded, and a failed request ends the episode, since it cannot succeed
    any more. The functions that ``miss_func`` adds are described in the observation, and not among the native tools.

    Playing imports little of the 6 GB that the package requires: ``pip install --no-deps bfcl-eval mpmath`` is enough.
    """

    class Options(TextEnv.Options):
        category: Annotated[str, one_of(*CATEGORIES)] = "base"
        """``"base"``, ``"miss_func"``, ``"miss_param"`` or ``"long_context"``."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for 1 at a success, ``"dense"`` for the share of requests as they pass."""
        max_turns: MaxTurns = 60

    options: Options
    file_options = worded("category", "reward")
    finds_action = True

    def setup(self) -> None:
        self._questions = _questions(self.options.category)
        self.finite_instances = len(self._questions)
        self._enter(next(iter(self._questions)))

    def tasks(self) -> tuple[str, ...]:
        """Return the package's names of the questions, as in ``"multi_turn_base_7"``."""
        return tuple(self._questions)

    def begin(self, task: str | int | None) -> str:
        names = self.tasks()
        if task is None:
            task = int(self.np_random.integers(len(names)))
        if isinstance(task, str):
            if task not in self._questions:
                raise UnknownName(f"{self.env_id} has no task named {task[:100]!r}. {nearest(task[:100], names)}")
        else:
            self.require("the task", task, 0, len(names) - 1)
            task = names[int(task)]
        self._enter(task)
        self.instance = f"bfcl {task}"
        return self._request()

    def _enter(self, task: str) -> None:
        question = self._question = self._questions[task]
        self._services, self._twins = Services(question), Services(question)
        declared = [tool for api in question["involved_classes"] for tool in _functions(api)]
        self._all = {tool.name: tool for tool in declared if tool.name not in question.get("excluded_function", ())}
        later = {name for names in question.get("missed_function", {}).values() for name in names}
        self._tools = {name: tool for name, tool in self._all.items() if name not in later}
        self._plan = [[_read_reference(text, self._documented()) for text in turn] for turn in question["ground_truth"]]
        self._passed, self._responses = 0, list[str]()
        self._made: list[tuple[str, dict[str, Any]]] = []
        self._log: list[str] = []
        self._seen: list[str] = []
        self._seen.append(self._request())
        rules = _RULES.format(reply=REPLY, turns=self.max_turns)
        shown = [*self._tools.values(), _REPLY]
        self.instructions = _TEXT_RULES.format(rules=rules, notation=NOTATION, schemas=_listed(shown))
        self.native_tools = ToolSet(tuple(each.schema for each in shown), rules)

    def _documented(self) -> Mapping[str, Tool]:
        return {tool.name: tool for api in self._question["involved_classes"] for tool in _functions(api)}

    def _request(self) -> str:
        """Return what the user says next, after adding the functions that come with it."""
        added = [self._all[name] for name in self._question.get("missed_function", {}).get(str(self._passed), ())]
        self._tools |= {tool.name: tool for tool in added}
        said = "\n".join(message["content"] for message in self._question["question"][self._passed])
        return "\n".join(filter(None, [said, _MORE.format(schemas=_listed(added)) if added else ""]))

    def apply_action(self, action: str) -> Outcome[str]:
        tool, arguments, problem = read_call(find_call(action) or "", {**_open(self._tools), REPLY: _REPLY})
        if tool is None:
            return Outcome(harmless(f"That is no action. {problem}"), action_is_valid=False)
        before = self.progress()
        observation, passes = self._perform(tool.name, arguments)
        is_over = not passes or self._passed == len(self._plan)
        success = is_over and passes
        reward = self.progress() - before if self.options.reward == "dense" else float(success)
        return Outcome(observation, reward, is_over, success)

    def _perform(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Make a call; return what the agent sees, and whether the episode can still succeed."""
        self._log.append(write_call(name, arguments))
        passes = True
        if name != REPLY:
            self._made.append((name, arguments))
            shown = self._services.call(name, arguments)
            self._responses.append(shown)
        elif passes := self._passes():
            self._passed += 1
            self._made = []
            shown = self._request() if self._passed < len(self._plan) else "All requests are done."
        else:
            shown = "This request was not done as asked."
        shown = harmless(cut(shown, LONGEST_ACTION))
        self._seen += [self._log[-1], shown]
        return shown, passes

    def _passes(self) -> bool:
        """Return whether the checks of the package accept the work on a request."""
        plan = self._plan[self._passed]
        wanted = [self._twins.call(*each) for each in plan]
        if not plan:
            return True
        checker = importlib.import_module(_CHECKER)
        if not self._made or not checker.state_checker(self._services.parts, self._twins.parts)["valid"]:
            return False
        return bool(checker.response_checker(self._responses, wanted, self._passed)["valid"])

    def anchor(self) -> str:
        return "\n".join(self._seen)

    def progress(self) -> float:
        return self._passed / len(self._plan)

    def expert_action(self) -> str:
        """Return the next reference call, or the reply after the last one of a request.

        Where that function is missing, it replies.

        Raises:
            ExpertLost: The calls for this request are not the reference calls.
        """
        require_running(self)
        plan = self._plan[self._passed]
        if self._made != plan[: len(self._made)]:
            raise ExpertLost(f"the episode of {self.env_id} has left the reference calls of {self.instance}.")
        rest = plan[len(self._made) :]
        return (
            write_call(*rest[0]) if rest else write_call(REPLY, {"text": "Done." if plan else "Something is missing."})
        )

    def save_state(self) -> JSONValue:
        return {"task": self._question["id"], "calls": list(self._log)}

    def load_state(self, state: JSONValue) -> None:
        task, calls = state["task"], state["calls"]
        if self.instance != f"bfcl {task}" or task not in self._questions:
            raise ValueError(f"the task {task!r}")
        if not isinstance(calls, list) or len(calls) > self.turn or not all(isinstance(each, str) for each in calls):
            raise ValueError("the calls")
        self._enter(task)
        passes = True
        for each in calls:
            tool, arguments, _ = read_call(find_call(each) or "", {**_open(self._tools), REPLY: _REPLY})
            if tool is None or not passes or self._passed == len(self._plan):
                raise ValueError(f"the call {each[:100]!r}")
            passes = self._perform(tool.name, arguments)[1]


def _listed(tools: list[Tool]) -> str:
    return harmless("\n".join(json.dumps(each.schema, ensure_ascii=False) for each in tools))


def _open(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Return tools that take any arguments: the functions of the package complain themselves."""
    return {name: Tool(name, "", {"type": "object"}, str) for name in tools}
