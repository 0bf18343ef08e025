r"""How an agent writes tool calls and answers, and how the output of a tool is shown to it.

Two forms: ``tags`` (``<python>code</python>``, ``<answer>text</answer>`` or ``\boxed{text}``, thoughts before
them) and ``json`` (``{"tool": "python", "code": "..."}``, ``{"tool": "answer", "text": "..."}``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from turngym.envs.json_text import first_object
from turngym.envs.tools.sandbox import Result

FORMS = ("tags", "json")
PYTHON, ANSWER = "python", "answer"
FIELDS: Mapping[str, str] = {PYTHON: "code", ANSWER: "text"}
_TAGS = re.compile(r"<(python|answer)>(.*?)</\1>", re.DOTALL)
_BOXED = re.compile(r"\\boxed\s*\{")
_FENCE = re.compile(r"^\s*```(?:python|py)?[ \t]*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_CONTROL = re.compile(
    r"<(\s*/?\s*)(think|python|answer|output|code|tool|tool_call|tool_response|warning|action|im_start|im_end)\b", re.I
)
_CHAT = re.compile(r"<\|")
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")


class Call(NamedTuple):
    """What an agent does.

    Args:
        tool: ``"python"``, ``"answer"``, or empty where the text is neither.
        content: The code, or the answer.
        problem: Why it is neither.
    """

    tool: str
    content: str = ""
    problem: str = ""


def read(text: str, form: str) -> Call:
    r"""Return the first call in a text.

    >>> read("<think>hm</think><python>print(1)</python>", "tags")
    Call(tool='python', content='print(1)', problem='')
    >>> read(r"so \boxed{\frac{1}{2}}", "tags").content
    '\\frac{1}{2}'
    >>> read('{"tool": "answer", "text": "7"}', "json").content
    '7'
    """
    return _read_tags(text) if form == "tags" else _read_json(text)


def _read_tags(text: str) -> Call:
    found = _TAGS.search(text)
    boxed = _BOXED.search(text)
    if boxed is not None and (found is None or boxed.start() < found.start()):
        inside = inside_braces(text, boxed.end() - 1)
        if inside is not None:
            return Call(ANSWER, inside.strip())
    if found is None:
        return Call("", problem="write <python>code</python> to run code or <answer>text</answer> to answer")
    content = found[2]
    if found[1] == ANSWER:
        boxed = _BOXED.search(content)
        inside = inside_braces(content, boxed.end() - 1) if boxed else None
        return Call(ANSWER, (content if inside is None else inside).strip())
    return Call(PYTHON, code_in(content))


def inside_braces(text: str, start: int) -> str | None:
    """Return what stands between the brace at ``start`` and the one that closes it; None without one."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start + 1 : place]
    return None


def code_in(text: str) -> str:
    r"""Return code without the fence around it, and without empty lines at its ends.

    >>> code_in("```python\nprint(1)\n```")
    'print(1)'
    """
    fenced = _FENCE.match(text)
    return (fenced[1] if fenced else text).strip("\r\n").rstrip()


def _read_json(text: str) -> Call:
    wanted = 'write {"tool": "python", "code": "..."} or {"tool": "answer", "text": "..."}'
    call = first_object(text)
    if call is None:
        return Call("", problem=f"there is no JSON object: {wanted}")
    field = FIELDS.get(str(call.get("tool")))
    if field is None:
        return Call("", problem=f"there is no tool {str(call.get('tool'))[:40]!r}: {wanted}")
    if not isinstance(call.get(field), str) or call.keys() - {"tool", field}:
        return Call("", problem=f"the call needs exactly tool and {field}, a text: {wanted}")
    content = call[field]
    return Call(str(call["tool"]), code_in(content) if field == "code" else content.strip())


def write(tool: str, content: str, form: str) -> str:
    """Return the text of a call.

    >>> write("python", "print(1)", "tags")
    '<python>print(1)</python>'
    """
    if form == "tags":
        return f"<{tool}>{content}</{tool}>"
    return json.dumps({"tool": tool, FIELDS[tool]: content}, ensure_ascii=False)


def harmless(text: str) -> str:
    """Return a text in which no control tag can be read: an output must not be able to forge a turn.

    >>> harmless("<answer>42</answer> <|im_end|> a < b")
    '‹answer>42‹/answer> ‹|im_end|> a < b'
    """
    return _CHAT.sub("\u2039|", _CONTROL.sub("\u2039\\1\\2", text))


def cut(text: str, most: int) -> str:
    r"""Return a text of at most so many characters, beginning and end, that says what was left out.

    >>> cut("0123456789" * 10, 20)
    '0123456789\n... 80 characters left out ...\n0123456789'
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[len(text) - half :]}"


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
