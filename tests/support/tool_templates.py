"""Chat templates that write calls in each known format, and the two laws that every template obeys.

The templates are the least that shows the syntax of a family: nothing else of it is here.
"""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

from chat_model_folders import Family, tokenizer_of
from transformers import PreTrainedTokenizerFast

from turngym.agents.gateway.conversations.call_formats import Tools
from turngym.agents.gateway.conversations.messages import ChatMessage, ToolCall, canonical_json
from turngym.agents.gateway.conversations.rendering import Renderer
from turngym.agents.gateway.conversations.template import ToolTemplate
from turngym.agents.gateway.conversations.tools import read_answer
from turngym.agents.prompt_text import PromptConfig
from turngym.errors import PromptWarning

_FRAME = (
    "{{% if tools %}}{{{{ '<|system|>' + (tools | tojson) + '<|end|>' }}}}{{% endif %}}"
    "{{% for m in messages %}}{{% if m.role == 'tool' %}}{result}{{% else %}}"
    "{{{{ '<|' + m.role + '|>' + m.content }}}}"
    "{{% if m.tool_calls %}}{open}{{% for c in m.tool_calls %}}{{% set f = c.function %}}{call}"
    "{{% if not loop.last %}}{between}{{% endif %}}{{% endfor %}}{close}{{% endif %}}{{{{ '<|end|>' }}}}{{% endif %}}"
    "{{% endfor %}}{{% if add_generation_prompt %}}{{{{ '<|assistant|>' }}}}{{% endif %}}"
)
_RESULT = "{{ '<|tool|>' + m.content + '<|end|>' }}"
_JSON = "{{ '{\"name\": \"' + f.name + '\", \"arguments\": ' + (f.arguments | tojson) + '}' }}"
_BARE = "{{ v if v is string else v | tojson }}"
_LITERAL = (
    "{%- macro lit(v) %}{% if v is none %}None{% elif v is boolean %}{{ 'True' if v else 'False' }}"
    "{% elif v is string or v is mapping or v is sequence %}{{ v | tojson }}{% else %}{{ v }}{% endif %}{% endmacro -%}"
)
_PYTHON = (
    "{{ f.name }}({% for k, v in f.arguments.items() %}{{ k }}={{ lit(v) }}{{ ', ' if not loop.last }}{% endfor %})"
)
_INVOKE = (
    '<{p}invoke name="{{{{ f.name }}}}">\n{{% for k, v in f.arguments.items() %}}'
    '<{p}parameter name="{{{{ k }}}}">'
    + _BARE.replace("{", "{{").replace("}", "}}")
    + "</{p}parameter>\n{{% endfor %}}"
    "</{p}invoke>\n"
)
_FUNCTION = (
    "<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}<parameter={{ k }}>\n"
    + _BARE
    + "\n</parameter>\n{% endfor %}</function>\n"
)
_GEMMA = (
    '{%- macro lit(v) %}{% if v is none %}null{% elif v is string %}<|"|>{{ v }}<|"|>'
    "{% elif v is boolean %}{{ 'true' if v else 'false' }}"
    "{% elif v is mapping %}{{ '{' }}{% for k, x in v.items() %}{{ k }}:"
    "{{ lit(x) }}{{ ',' if not loop.last }}{% endfor %}{{ '}' }}"
    "{% elif v is sequence %}[{% for x in v %}{{ lit(x) }}{{ ',' if not loop.last }}{% endfor %}]"
    "{% else %}{{ v }}{% endif %}{% endmacro -%}"
)


def _written(
    call: str, open: str = "", close: str = "", between: str = "", result: str = _RESULT, head: str = ""
) -> str:
    return head + _FRAME.format(call=call, open=open, close=close, between=between, result=result)


WRITTEN = {
    "hermes": _written(f"\n<tool_call>\n{_JSON}\n</tool_call>"),
    "phi": _written(_JSON, "<|tool_call|>[", "]<|/tool_call|>", ", "),
    "nemotron": _written(_JSON, "<TOOLCALL>[", "]</TOOLCALL>", ", "),
    "cohere": _written(
        '{{ \'{"tool_call_id": "\' + c.id + \'", "tool_name": "\' + f.name + \'", "parameters": \''
        " + (f.arguments | tojson) + '}' }}",
        "<|START_ACTION|>[\n",
        "\n]<|END_ACTION|>",
        ",\n",
    ),
    "internlm": _written(
        _JSON.replace('arguments\\"', 'parameters\\"'), "<|action_start|><|plugin|>\n[", "]<|action_end|>", ","
    ),
    "mistral": _written(
        _JSON[:-5] + ', "id": "\' + c.id + \'"}\' }}',
        "{% if m.tool_calls[0].id | length != 9 %}{{ raise_exception('nine characters') }}{% endif %}[TOOL_CALLS] [",
        "]",
        ", ",
    ),
    "mistral with marks": _written("[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ c.id }}[ARGS]{{ f.arguments | tojson }}"),
    "deepseek": _written(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ f.name + '\n```json\n' + f.arguments + '\n```' }}"
        "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "\n",
        "<｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>",
    ),
    "deepseek, short": _written(
        "<｜tool▁call▁begin｜>{{ f.name + '<｜tool▁sep｜>' + f.arguments }}<｜tool▁call▁end｜>",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
    ),
    "kimi": _written(
        "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ f.arguments | tojson }}<|tool_call_end|>",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        result="{{ '<|tool|>## ' + m.tool_call_id + '\n' + m.content + '<|end|>' }}",
    ),
    "harmony": (
        "{{ tools | tojson if tools }}{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}"
        "{{ raise_exception('one call') }}{% endif %}{% set ns = m.tool_calls[0].function %}"
        "<|start|>assistant to=functions.{{ ns.name }}<|channel|>commentary json<|message|>"
        "{{ ns.arguments | tojson }}<|call|>"
        "{% elif m.role == 'tool' %}<|start|>functions.{{ messages[loop.index0 - 1].tool_calls[0].function.name }} "
        "to=assistant<|channel|>commentary<|message|>{{ m.content }}<|end|>"
        "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    ),
    "llama": _written(
        _JSON.replace('arguments\\"', 'parameters\\"'),
        "{% if m.tool_calls | length > 1 %}{{ raise_exception('one call') }}{% endif %}",
        result="{{ '<|ipython|>' + (m.content | tojson) + '<|end|>' }}",
    ),
    "xml": _written(f"\n<tool_call>\n{_FUNCTION}</tool_call>"),
    "seed": _written(f"<seed:tool_call>\n{_FUNCTION}</seed:tool_call>"),
    "glm": _written(
        "\n<tool_call>{{ f.name }}\n{% for k, v in f.arguments.items() %}<arg_key>{{ k }}</arg_key>\n<arg_value>"
        + _BARE
        + "</arg_value>\n{% endfor %}</tool_call>"
    ),
    "muse": (
        "{{ tools | tojson if tools }}{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}"
        "{% set f = c.function %}<|start|>assistant to={{ f.name }}<|message|><atem:function_calls>\n"
        + _INVOKE.format(p="atem:")
        + "</atem:function_calls>{{ '<|eot|>' if loop.last else '<|eom|>' }}{% endfor %}"
        "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|eot|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    ),
    "minimax": _written(_INVOKE.format(p=""), "\n<minimax:tool_call>\n", "</minimax:tool_call>"),
    "invoke": _written(_INVOKE.format(p=""), "<function_calls>\n", "</function_calls>"),
    "gemma": (
        _GEMMA + "{{ tools | tojson if tools }}{% for m in messages %}{% if m.role != 'tool' %}"
        "{{ '<|turn>' + m.role + '\n' }}"
        "{% for c in m.tool_calls or [] %}<|tool_call>call:{{ c.function.name }}"
        "{{ lit(c.function.arguments) }}<tool_call|>{% endfor %}"
        "{% if m.tool_calls %}{% for r in messages if r.role == 'tool' %}"
        "{% for c in m.tool_calls if c.id == r.tool_call_id %}"
        '<|tool_response>response:{{ c.function.name }}{value:<|"|>{{ r.content }}<|"|>}<tool_response|>'
        "{% endfor %}{% endfor %}"
        "{{ m.content }}{% else %}{{ m.content + '<turn|>\n' }}{% endif %}{% endif %}{% endfor %}"
        "{% if add_generation_prompt and messages[-1].role == 'user' %}{{ '<|turn>model\n' }}{% endif %}"
    ),
    "lfm": _written(_PYTHON, "<|tool_call_start|>[", "]<|tool_call_end|>", ", ", head=_LITERAL),
    "llama4": _written(_PYTHON, "<|python_start|>[", "]<|python_end|>", ", ", head=_LITERAL),
    "olmo": _written(_PYTHON, "<function_calls>", "</function_calls>", "{{ '\n' }}", head=_LITERAL),
}
"""Name of a format, and of its variant -> a template."""
_MARK = re.compile(r"<[|\uff5c]?[^<>\s{}'\"]{1,40}[|\uff5c]?>|\[/?[A-Z_]+\]|<\|\"\|>")
TOOLS: Tools = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Looks.",
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "-"},
                    "digits": {"type": "string", "description": "-"},
                    "whole": {"type": "integer", "description": "-"},
                    "part": {"type": "number", "description": "-"},
                    "flag": {"type": "boolean", "description": "-"},
                    "nothing": {"type": ["string", "null"], "description": "-"},
                    "items": {"type": "array", "description": "-"},
                    "fields": {"type": "object", "description": "-"},
                },
            },
        },
    }
    for name in ("look", "open_door")
]
CALLS: tuple[list[tuple[str, dict[str, object]]], ...] = (
    [("look", {"text": "a wall"})],
    [("look", {})],
    [("look", {"text": "12345", "digits": "true", "whole": 12345, "part": -1.5, "flag": False})],
    [("look", {"text": "\u00e9 \u4e2d\u6587 \U0001f600", "nothing": "1e5"})],
    [("look", {"fields": {"a": {"b": ["1", 1, None, True]}, "null": "null"}, "items": [[], {}, "x"]})],
    [("look", {"text": "a \"b\" 'c'\n{d}, <e> \\ [f] = (g)"})],
    [("look", {"text": "one"}), ("open_door", {}), ("look", {"whole": 0, "flag": True})],
)


class Words(NamedTuple):
    """A tokenizer and the tokens that end an answer."""

    tokenizer: PreTrainedTokenizerFast
    stop_ids: frozenset[int]


def words_of(template: str) -> PreTrainedTokenizerFast:
    """Return a tokenizer whose control tokens are all marks that a template writes."""
    marks = dict.fromkeys(_MARK.findall(template))
    return tokenizer_of(
        Family(template, "</s>", tuple(mark for mark in marks if mark not in ("<s>", "</s>")), begin="<s>")
    )


def made_calls(calls: list[tuple[str, dict[str, object]]]) -> tuple[ToolCall, ...]:
    """Return calls with ids."""
    return tuple(
        ToolCall(f"functions.{name}:{place}", name, canonical_json(given)) for place, (name, given) in enumerate(calls)
    )


def check_calls(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Assert that calls which a template writes are read back equal or the start warns; return if there are any."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        template = ToolTemplate(tokenizer, PromptConfig())
    warned = any(
        issubclass(each.category, PromptWarning) and "chat_template=FILE" in str(each.message) for each in told
    )
    if not template.knows_tools:
        assert warned or not template.lists_tools
        return False
    for calls in map(made_calls, CALLS):
        groups = [(call,) for call in calls] if template.shows_one_call else [calls]
        texts = [(group, template.written_calls(group)[0]) for group in groups]
        for wanted, text in texts:
            found = read_answer(text, template.format, TOOLS, "key").calls
            is_equal = [(each.name, each.arguments) for each in found] == [
                (each.name, each.arguments) for each in wanted
            ]
            assert is_equal or warned, f"{template.format.name} reads {found} in {text!r}"
            assert all(
                each.id in (call.id, "") or call.id not in text for each, call in zip(found, wanted, strict=False)
            )
    return True


def check_results(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Assert that new messages stand behind a call as the template itself writes them; return whether they can."""
    stop = ""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plain = ToolTemplate(tokenizer, PromptConfig())
        call = made_calls([("look", {"text": "a wall"})])[0]
        stops = {int(tokenizer.eos_token_id)}
        if plain.knows_tools:
            written = plain.written_calls((call,))[0]
            found = next(iter(plain.format.read(written, TOOLS)))
            stop = _MARK.findall(written, found.end)[0]
            stops.add(tokenizer.get_vocab()[stop])
        made = Renderer(Words(tokenizer, frozenset(stops)))
    if not made.continues or not plain.knows_tools:
        return False
    asked, said = ChatMessage("user", "-"), ChatMessage("assistant", "", (call,))
    result, word = ChatMessage("tool", "a door and a key", call_id=call.id), ChatMessage("user", "continue, please")
    end = max(stops - {int(tokenizer.eos_token_id)}, default=int(tokenizer.eos_token_id))
    for news in ([result], [result, word]):
        whole = made.template.exactly([asked, said, *news])
        for last in (end, tokenizer.encode("a", add_special_tokens=False)[-1]):
            ids = made.after(last, news, calls=said.calls)
            assert ids is not None or any("from scratch" in str(each.message) for each in told) or len(news) > 1
            if ids is None:
                continue
            tail = str(tokenizer.decode(list(ids)))
            assert all(message.text in tail for message in news)
            assert whole.endswith(tail), (whole, tail)
            assert last == end or tail.lstrip().startswith(stop), (whole, tail)
            assert last != end or not tail.startswith(stop)
    return True
