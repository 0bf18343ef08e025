r"""Syntax of tool calls and answers, and display of tool output.

Two forms: ``tags`` (``<python>code</python>``, ``<answer>text</answer>`` or ``\boxed{text}``, thoughts before
them) and ``json`` (``{"tool": "python", "code": "..."}``, ``{"tool": "answer", "text": "..."}``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from turngym.envs.parsing.calls import Call, Calls, any_calls, cut, harmless
from turngym.envs.parsing.scanning import inside_braces, unfenced
from turngym.envs.parsing.thinking import THINKING
from turngym.envs.tools.sandbox import Result
from turngym.envs.tools.tool_schema import Tool, find_call, read_call

PYTHON, ANSWER = "python", "answer"
CALLS = Calls(
    {PYTHON: "code", ANSWER: "text"},
    {
        "tags": "write <python>code</python> to run code or <answer>text</answer> to answer",
        "json": 'write {"tool": "python", "code": "..."} or {"tool": "answer", "text": "..."}',
    },
)
write = CALLS.write
_BOXED = re.compile(r"\\boxed\s*\{")
_LONGEST_PROBLEM = 1000
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")


def read(text: str, form: str, calls: Calls = CALLS) -> Call:
    r"""Return the first call in a text.

    Args:
        text: The text.
        form: ``tags`` or ``json``.
        calls: The calls that the environment knows, ``answer`` among them.

    >>> read("<think>hm</think><python>print(1)</python>", "tags")
    Call(tool='python', content='print(1)', problem='')
    >>> read(r"so \boxed{\frac{1}{2}}", "tags").content
    '\\frac{1}{2}'
    >>> read('{"tool": "answer", "text": "7"}', "json").content
    '7'
    """
    spoken = THINKING.masked(text, any_calls)
    boxed = _BOXED.search(spoken) if form == "tags" else None
    inside = inside_braces(spoken, boxed.end() - 1) if boxed else None
    tag = calls.first(text) if boxed and inside is not None else None
    if boxed and inside is not None and (tag is None or boxed.start() < tag.start):
        return Call(ANSWER, inside.strip())
    found = calls.read(text, form)
    if found.tool == PYTHON:
        return found._replace(content=code_in(found.content))
    return found._replace(content=(_unboxed(found.content) if form == "tags" else found.content).strip())


def text_tool(name: str, field: str, description: str) -> Tool:
    """Return a call as the declaration of a tool of one text."""
    parameters = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return Tool(name, description, {**parameters, "additionalProperties": False}, str)


def read_native(text: str, tools: Mapping[str, Tool]) -> Call:
    """Return the first native call in a text, of tools of one text each.

    >>> read_native('<tool_call>{"name": "answer", "arguments": {"text": "7"}}</tool_call>', {"answer": text_tool(
    ...     "answer", "text", "Give the answer.")})
    Call(tool='answer', content='7', problem='')
    """
    found, arguments, problem = read_call(find_call(text) or "", tools)
    if found is None:
        return Call("", problem=harmless(cut(problem.removesuffix("."), _LONGEST_PROBLEM)))
    [content] = arguments.values()
    return Call(found.name, code_in(content) if found.name == PYTHON else content.strip())


def _unboxed(text: str) -> str:
    """Return what a box in a text holds, the text itself without one."""
    boxed = _BOXED.search(text)
    inside = inside_braces(text, boxed.end() - 1) if boxed else None
    return text if inside is None else inside


def code_in(text: str) -> str:
    r"""Return code without the fence around it, and without empty lines at its ends.

    >>> code_in("```python\nprint(1)\n```")
    'print(1)'
    """
    return unfenced(text, ("python", "py")).strip("\r\n").rstrip()


_ENDS = {
    "timeout": "It was stopped: out of time. Variables and files are gone.",
    "output": "It was stopped: too much output. Variables and files are gone.",
    "died": "Its process was ended. Variables and files are gone.",
}


def show(found: Result, most: int) -> str:
    """Return what came of code, as an agent reads it: cut, harmless, without addresses of memory."""
    told = [found.stdout.rstrip("\n"), found.value, found.stderr.rstrip("\n"), _ENDS.get(found.status, "")]
    text = "\n".join(part for part in told if part) or "There was no output."
    return f"<output>\n{harmless(cut(_ADDRESS.sub(' at 0x...', text), most))}\n</output>"
