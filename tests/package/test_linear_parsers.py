"""Every parser of model output takes linear time on 100 kB of its own delimiters.

Formats, wrappers and environments are those that are registered: a new one is covered as soon as it is.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import pytest
from costs import MOST, growth

import turngym.wrappers.tool_use.tools
from turngym.agents.gateway.conversations.call_formats import FORMATS as CALL_FORMATS
from turngym.agents.gateway.conversations.tools import read_answer
from turngym.agents.verifiers.model import read_score
from turngym.envs.core import TextEnv
from turngym.envs.multiagent.game import Game
from turngym.envs.parsing.calls import any_calls, harmless
from turngym.envs.parsing.json_text import first_object
from turngym.envs.parsing.scanning import first_element, inside_braces, last_element, unfenced
from turngym.envs.parsing.thinking import MARKS, THINKING
from turngym.envs.registration import specs
from turngym.errors import MissingExtra
from turngym.wrappers.actions.action_format import FORMATS, action_format
from turngym.wrappers.rewards.recipes import canonical_action

PIECES = (
    "<",
    "{",
    "[",
    "(",
    '{"a":[1,',
    '{"action":',
    '"',
    "\\boxed{",
    "\\boxed ",
    "```\n",
    "a ",
    " ",
    "\n",
    "1",
    "e",
    "Σ",
)
SHARED: dict[str, Callable[[str], object]] = {
    "first_element": lambda text: first_element(text, ("a", "b", "search")),
    "last_element": lambda text: last_element(text, "a"),
    "inside_braces": lambda text: inside_braces("{" + text, 0),
    "unfenced": unfenced,
    "first_object": first_object,
    "harmless": harmless,
    "any_calls": lambda text: deque(any_calls(text), maxlen=0),
    "own_format": action_format("auto", finds_action=True).action_of,
    "canonical_action": lambda text: canonical_action(text, text, text),
    "read_score": read_score,
}
EACH_CLASS = sorted({spec.entry_point: env_id for env_id, spec in reversed(specs().items())}.values())


def delimiters(text: str) -> Iterator[str]:
    """Give what a text shows of the way in which actions are written."""
    yield from dict.fromkeys(re.findall(r"</?\w+>|\\\w+\{|\{\"\w+\": |\w+\s?[\[(]|```\w*\n?", text))


@pytest.mark.parametrize("name", FORMATS)
def test_action_formats(name: str) -> None:
    shown = FORMATS[name].write("x")
    starts = [shown[: shown.index("x")] or " ", shown[shown.index("x") + 1 :] or " ", shown, f"{shown}\n"]
    for piece in (*starts, *delimiters(FORMATS[name].instruction), *PIECES):
        assert growth(FORMATS[name].action_of, piece) <= MOST, piece


@pytest.mark.parametrize("name", SHARED)
def test_shared_parsers(name: str) -> None:
    for piece in ("<a>", "</a>", "<search>", "< ", "{}", "score ", "[a", "'", *PIECES):
        assert growth(SHARED[name], piece) <= MOST, piece
    for prefix in ("<", "```\n", "score", "score:", "\\boxed"):
        assert growth(SHARED[name], " ", prefix) <= MOST, prefix
        assert growth(SHARED[name], "\n", prefix) <= MOST, prefix


TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {"properties": {"a": {"type": "string"}}}}}]
CALL_PIECES = ('{"name":"ls"};', "<parameter=", ":{", '<|"|>', '"', "[", " ")


@pytest.mark.parametrize("format", CALL_FORMATS)
def test_tool_calls_behind_a_gateway(format: str) -> None:
    made = CALL_FORMATS[format]
    for prefix, pieces in (("", made.marks), (f"{made.marks[0]}ls", CALL_PIECES)):
        for piece in pieces:
            assert growth(lambda text: read_answer(text, made, TOOLS, ""), piece, prefix) <= MOST, (piece, prefix)


def test_thinking() -> None:
    opening, closing = MARKS[0]
    for piece in (
        opening,
        closing,
        f"{opening}{closing}",
        f"{opening}<a></a>{closing}",
        f"<a></a>{opening}{closing}",
        "<|",
    ):
        for call in (THINKING.without, THINKING.masked, lambda text: THINKING.first_element(text, ("a", "b"))):
            assert growth(call, piece) <= MOST, piece


def test_calls_of_tools() -> None:
    env = turngym.wrappers.tool_use.tools.Tools(
        gymnasium.make("turngym/GuessTheNumber-v0"), tools=["tool_examples:add"]
    )
    env.reset(seed=0)
    for piece in (*delimiters(env.instructions), *PIECES):
        assert growth(env._call_in, piece) <= MOST, piece


@pytest.mark.parametrize("env_id", EACH_CLASS)
def test_environments(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on the length of actions is lifted, so that the rules themselves are seen to be linear."""
    try:
        env: Any = gymnasium.make(env_id)
        env.reset(seed=0)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    monkeypatch.setattr(TextEnv, "longest_action", 10**9)
    monkeypatch.setattr(Game, "longest_action", 10**9)

    def step(text: str) -> object:
        if not env._running:
            env.reset(seed=0)
        return env.step(text)

    legal = [action.partition(" ")[0] for action in env.legal_actions()[:3]]
    for piece in dict.fromkeys([*delimiters(env.instructions), *[f"{word} " for word in legal], *PIECES]):
        assert growth(step, piece) <= MOST, piece
        assert growth(step, " ", piece) <= MOST, piece
    env.close()
