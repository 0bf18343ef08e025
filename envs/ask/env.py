"""Ask: find out what is meant with few questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np

from turngym.arithmetic import is_finite
from turngym.envs.ask.belief import DIGITS, Belief
from turngym.envs.ask.intents import intents
from turngym.envs.ask.problem import Kind, Problem, Sketch, plain
from turngym.envs.ask.twenty import twenty
from turngym.envs.core import MaxTurns, Outcome, Reward, TextEnv
from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.settings import worded
from turngym.envs.tools.tool_schema import CALL_MARK, Tool, ToolSet, find_call, read_call
from turngym.envs.validation import NUMBERS, refuse_task, require_running, saved_number
from turngym.options import between, one_of
from turngym.seeding import restart
from turngym.types import JSONValue

KINDS: Mapping[str, Kind] = {"twenty": twenty, "intent": intents}
ASK, GUESS = "ask", "guess"
_LONGEST_PROBLEM, _LONGEST_NAME = 300, 100
_RULES = """Find out what the user means: ask about one {what} in a turn, then guess. Answer with one of:
ask {what_upper}
guess {name}
{about}"""
_TALK = "Find out what the user means: ask about one {what} in a turn, then guess. {about}"
_ABOUT = "A guess ends the task: you get 1 if it is right, and pay {cost:g} for each question. You have {turns} turns."
_WHAT = {"twenty": "property", "intent": "detail"}
_NAME = {"twenty": "NAME", "intent": "VALUE, VALUE, ..."}


def _tool(name: str, key: str, text: str) -> Tool:
    parameters = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    return Tool(name, text, {**parameters, "additionalProperties": False}, str)


TOOLS = {ASK: _tool(ASK, "about", "Ask the user about one thing."), GUESS: _tool(GUESS, "name", "Say what is meant.")}


class Ask(TextEnv[str]):
    """Find out what a user means with few questions: one of many things, or the open details of a request.

    The agent knows all candidates, how often each is meant, and what the answer to each question would be. With
    ``kind="twenty"`` these are things in a table of properties, each true, false or partly true of it; with
    ``kind="intent"`` they are the values of the details that a request leaves open, where one depends on another.
    Answers are exact. A guess ends the episode.

    The reward is 1 for a right guess and ``-cost`` for a question; with ``reward="dense"`` the change of the progress
    is added. Progress is the share of the initial entropy that is gone. ``info["columns"]`` holds exact numbers in
    bits, computed from the posterior over the candidates: ``information_gain``, by which the last answer lowered the
    entropy; ``expected_gain``, its expectation before the answer; ``best_gain``, the highest expectation of any
    question then; and ``entropy`` now. The expert asks the question with the highest expected gain, which is greedy and
    not always optimal, until one candidate is left.

    >>> env = Ask(kind="intent")
    >>> observation, info = env.reset(seed=0)
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> observation, reward
    ('Right.', 1.0)
    """

    class Options(TextEnv.Options):
        kind: Annotated[str, one_of(*KINDS)] = "twenty"
        """What is to be found: ``"twenty"`` for a thing in a table, ``"intent"`` for open details of a request."""
        level: Annotated[int, between(1, 3)] = 2
        """Difficulty: the number of candidates."""
        cost: Reward = 0.02
        """Cost of a question."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for costs and 1 at a success, ``"dense"`` with the change of the progress in every turn."""
        max_turns: MaxTurns = 21

    options: Options
    file_options = worded("kind", "reward")

    def setup(self) -> None:
        options, what = self.options, _WHAT[self.options.kind]
        about = _ABOUT.format(cost=options.cost, turns=self.max_turns)
        self.instructions = _RULES.format(what=what, what_upper=what.upper(), name=_NAME[options.kind], about=about)
        talk = _TALK.format(what=what, about=about)
        self.native_tools = ToolSet(tuple(each.schema for each in TOOLS.values()), talk)
        self._generator = np.random.default_rng(0)  # set to the start of a stream for every instance

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        number, sketch = self.draw(self._drawn, lambda found: found[1].text)
        problem = sketch.build()
        weights = np.cumsum(problem.weights)
        hidden = int(np.searchsorted(weights, self.np_random.integers(int(weights[-1])), side="right"))
        self._enter(number, problem, hidden)
        return problem.opening

    def _drawn(self, generator: np.random.Generator) -> tuple[int, Sketch]:
        number = int(generator.integers(NUMBERS))
        return number, self._sketch_of(number)

    def _sketch_of(self, number: int) -> Sketch:
        options = self.options
        return KINDS[options.kind](restart(self._generator, "ask", options.kind, number), options.level)

    def _enter(self, number: int, problem: Problem, hidden: int) -> None:
        self._number, self._problem, self._hidden = number, problem, hidden
        self._belief = Belief(problem)
        asks, guesses = [f"{ASK} {each}" for each in problem.questions], [f"{GUESS} {each}" for each in problem.names]
        self._legal = (*asks, *guesses)
        self._known = problem.opening
        self._bits: dict[str, float | str] = {}
        self._note(0.0, 0.0, 0.0)

    def _note(self, gain: float, expected: float, best: float) -> None:
        names = ("information_gain", "expected_gain", "best_gain", "entropy")
        self._bits = dict(zip(names, (gain, expected, best, self._belief.bits), strict=True))

    @property
    def hidden(self) -> str:
        """What is meant; hidden from agents."""
        return self._problem.names[self._hidden]

    @property
    def belief(self) -> Belief:
        """The posterior over the candidates, from the answers so far."""
        return self._belief

    def apply_action(self, action: str) -> Outcome[str]:
        kind, name, problem = self._read(action)
        if problem:
            self._note(0.0, 0.0, 0.0)
            return Outcome(f"That is no action: {problem}.", action_is_valid=False)
        before = self.progress()
        if kind == GUESS:
            self._note(0.0, 0.0, 0.0)
            success = name == self.hidden
            return Outcome("Right." if success else "Wrong.", float(success), True, success)
        self._note(*self._asked(self._problem.questions.index(name)))
        observation = self._told(self._problem.questions.index(name))
        gained = self.progress() - before if self.options.reward == "dense" else 0.0
        return Outcome(observation, gained - self.options.cost)

    def _read(self, action: str) -> tuple[str, str, str]:
        """Return kind and name of an action, and why it is none."""
        if action.startswith(CALL_MARK):
            tool, arguments, problem = read_call(find_call(action) or "", TOOLS)
            if tool is None:
                return "", "", harmless(cut(problem.removesuffix("."), _LONGEST_PROBLEM))
            kind, name = tool.name, str(next(iter(arguments.values())))
        else:
            kind, _, name = action.strip().partition(" ")
        kind = kind.lower()
        names = {ASK: self._problem.questions, GUESS: self._problem.names}.get(kind, ())
        if name in names:
            return kind, name, ""
        wanted = plain(name)
        if found := next((each for each in names if plain(each) == wanted), ""):
            return kind, found, ""
        known = {ASK: "ask about " + ", ".join(self._problem.questions), GUESS: "guess one of the candidates"}
        return "", "", known.get(kind, "write ask or guess, and a name")

    def _asked(self, question: int) -> tuple[float, float, float]:
        """Take in the answer to a question; return its gain, what was expected of it, and of the best one."""
        belief = self._belief
        gains, before = belief.expected(), belief.bits
        belief.learn(question, int(self._problem.answers[self._hidden, question]))
        self._known = "\n".join([self._problem.opening, *map(self._told, sorted(belief.asked))])
        return round(before - belief.bits, DIGITS), gains[question], max(gains.values())

    def _told(self, question: int) -> str:
        problem = self._problem
        return f"{problem.questions[question]}: {problem.words[question][self._belief.asked[question]]}"

    def anchor(self) -> str:
        return self._known

    def legal_actions(self) -> tuple[str, ...]:
        return self._legal

    def progress(self) -> float:
        belief = self._belief
        return 1.0 - belief.bits / belief.start if belief.start else 1.0

    def turn_columns(self) -> Mapping[str, float | str]:
        return self._bits

    def expert_action(self) -> str:
        """Return the question with the highest expected gain, or the guess if one candidate is left or time ends.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        belief, problem = self._belief, self._problem
        if belief.bits == 0 or self.turn + 1 >= self.max_turns:
            return f"{GUESS} {problem.names[belief.likeliest]}"
        return f"{ASK} {problem.questions[belief.best()]}"

    def resample_hidden(self) -> bool:
        """Let another candidate that fits all answers be meant."""
        left = [each for each in self._belief.left if each != self._hidden]
        if not left:
            return False
        self._hidden = left[int(self.np_random.integers(len(left)))]
        return True

    def save_state(self) -> JSONValue:
        return {"number": self._number, "hidden": self._hidden, "asked": list(self._belief.asked), "bits": self._bits}

    def load_state(self, state: JSONValue) -> None:
        number, hidden, asked = saved_number(state["number"]), state["hidden"], state["asked"]
        sketch = self._sketch_of(number)
        if sketch.text != self.instance:
            raise ValueError("the instance is another one")
        problem = sketch.build()
        if type(hidden) is not int or not 0 <= hidden < len(problem.names):
            raise ValueError(f"the candidate {hidden!r}")
        is_list = isinstance(asked, list) and all(type(each) is int for each in asked)
        if not is_list or len(set(asked)) < len(asked) or not set(asked) <= set(range(len(problem.questions))):
            raise ValueError(f"the questions {asked!r}")
        self._enter(number, problem, hidden)
        for question in asked:
            self._asked(question)
        bits = state["bits"]
        is_table = isinstance(bits, dict) and bits.keys() == self._bits.keys()
        if not is_table or not all(map(is_finite, bits.values())):
            raise ValueError(f"the bits {bits!r}")
        self._bits = {name: float(bits[name]) for name in self._bits}
