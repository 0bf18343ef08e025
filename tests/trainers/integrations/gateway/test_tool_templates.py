"""Laws of chat templates with tools: calls are read back equal, and new messages stand behind them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tool_templates import TOOLS, WRITTEN, Words, check_calls, check_results, words_of

from turngym.agents.gateway.conversations.call_formats import FORMATS, Found, Tools
from turngym.agents.gateway.conversations.messages import ChatMessage, ToolCall
from turngym.agents.gateway.conversations.probing import calls_in
from turngym.agents.gateway.conversations.rendering import Renderer
from turngym.agents.gateway.conversations.template import ToolTemplate
from turngym.agents.gateway.conversations.tools import MOST_MALFORMED, Answer, read_answer
from turngym.agents.gateway.episode import GatewayEpisode
from turngym.agents.gateway.offload import Offload
from turngym.agents.gateway.refusal import Refusal
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.chat_template import RenderTimeout
from turngym.envs.parsing.thinking import Thinking
from turngym.errors import PromptWarning

quiet = pytest.mark.filterwarnings("ignore::turngym.errors.PromptWarning")
each_template = pytest.mark.parametrize("name", WRITTEN)


@quiet
@each_template
def test_calls_are_read_back_equal_in_the_format_of_the_template(name: str) -> None:
    words = words_of(WRITTEN[name])
    assert check_calls(words)
    expected = name.partition(",")[0].partition(" ")[0]
    assert ToolTemplate(words, PromptConfig()).format.name == expected


def test_every_format_has_a_template() -> None:
    assert {name.partition(",")[0].partition(" ")[0] for name in WRITTEN} == set(FORMATS)


@quiet
@each_template
def test_new_messages_stand_behind_a_call_as_the_template_writes_them(name: str) -> None:
    assert check_results(words_of(WRITTEN[name]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("<tool_call>", "<call>"), "a form that is not known"),
        (("<|tool|>' + m.content", "<|tool|>'"), "leaves out the results"),
        (("(tools | tojson)", "''"), "lists no tools"),
        (
            ("(f.arguments | tojson)", '(\'{"x": "probetext"}\' if f.arguments.x else \'{"y": 1}\')'),
            "cannot be read back",
        ),
    ],
)
def test_the_start_warns_of_a_template_whose_calls_cannot_be_read(change: tuple[str, str], said: str) -> None:
    template = WRITTEN["hermes"].replace(*change)
    assert template != WRITTEN["hermes"]
    with pytest.warns(PromptWarning, match=f"(?s){said}.*chat_template=FILE"):
        ToolTemplate(words_of(template), PromptConfig())


def read(text: str, format: str, begun: bool = False) -> Answer:
    return read_answer(text, FORMATS[format], TOOLS, "key", Thinking(begun="<think>" if begun else ""))


def written_xml(**values: str) -> str:
    lines = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values.items())
    return f"<tool_call>\n<function=look>\n{lines}</function>\n</tool_call>"


ARGUMENTS_HAVE_THE_TYPES_THAT_THE_TOOL_D: list[tuple[str, str, object]] = [
    ("text", "12345", "12345"),
    ("text", "true", "true"),
    ("text", "1e5", "1e5"),
    ("text", '"quoted"', '"quoted"'),
    ("text", "[1, 2]", "[1, 2]"),
    ("text", "null", "null"),
    ("whole", "12345", 12345),
    ("whole", "1e5", "1e5"),
    ("part", "1e5", 100000.0),
    ("flag", "True", True),
    ("flag", "yes", "yes"),
    ("nothing", "null", None),
    ("nothing", "12", "12"),
    ("items", "[1]", [1]),
    ("fields", "{broken", "{broken"),
    ("undeclared", "[1]", [1]),
    ("undeclared", "NaN", "NaN"),
]


def test_arguments_have_the_types_that_the_tool_declares() -> None:
    for name, written, value in ARGUMENTS_HAVE_THE_TYPES_THAT_THE_TOOL_D:
        calls = read(written_xml(**{name: written}), "xml").calls
        assert [json.loads(call.arguments) for call in calls] == [{name: value}]


A_MALFORMED_CALL_STAYS_TEXT_WITH_WHAT_IS: list[tuple[str, str, str]] = [
    ("xml", written_xml(text="a", digits="1").replace("\n</parameter>", "", 1), "'text' is not closed"),
    ("xml", written_xml(text="a").replace("</function>", ""), "no parameter"),
    ("xml", written_xml(text="a") + "<tool_call><function=look>", "not closed with </tool_call>"),
    ("xml", "<function=look></function>", "another form"),
    ("glm", "<tool_call>look\n<arg_key>text</arg_key>\n<arg_value>a</tool_call>", "not closed with </arg_value>"),
    ("hermes", '<tool_call>{"name": "look", "arguments": {"text": "a"}', "not closed with </tool_call>"),
    ("glm", "<tool_call>look everything now</tool_call>", "more than one name"),
    ("glm", "<tool_call>please look look</tool_call>", "more than one name"),
    ("hermes", '<tool_call>{"name": "look", "arguments": {"whole": 1e999}}</tool_call>', "not finite"),
    ("hermes", '<tool_call>{"name": "look", "arguments": {"whole": [NaN]}}</tool_call>', "not finite"),
    ("lfm", "<|tool_call_start|>[look(whole=1e999)]<|tool_call_end|>", "not finite"),
    ("gemma", "<|tool_call>call:look{whole:1e999}<tool_call|>", "not finite"),
    ("hermes", '<tool_call>{"name": "look", "arguments": [1]}</tool_call>', "not an object"),
    ("hermes", "<tool_call>look(text='a')</tool_call>", "not a JSON object"),
    ("hermes", '[TOOL_CALLS][{"name": "look"}]', "another form"),
    ("llama", '<tool_call>{"name": "look"}</tool_call>', "another form"),
    ("gemma", '<|tool_call>call:look{text:<|"|>a}<tool_call|>', "not closed"),
    ("gemma", "<|tool_call>call:look{text:a}<tool_call|>", "no literal"),
    ("lfm", "<|tool_call_start|>[look('a')]<|tool_call_end|>", "need names"),
    ("lfm", "<|tool_call_start|>[look(text=open('a'))]<|tool_call_end|>", "not a literal"),
    ("kimi", "<|tool_call_begin|>functions.look:0<|tool_call_end|>", "no arguments"),
    ("deepseek", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>look", "not closed"),
    ("harmony", " to=functions.look<|channel|>commentary json<|message|>{broken", "not a JSON object"),
    ("mistral", "[TOOL_CALLS] look", "not a JSON object"),
]


def test_a_malformed_call_stays_text_with_what_is_wrong() -> None:
    for format, text, problem in A_MALFORMED_CALL_STAYS_TEXT_WITH_WHAT_IS:
        found = read(text, format)
        assert problem in found.problem and found.unread
        assert len(found.calls) == (1 if text.count("<function=look>") == 2 else 0)


def test_an_object_with_a_name_and_no_arguments_is_text() -> None:
    assert read('{"name": "look", "age": 3}', "llama") == Answer('{"name": "look", "age": 3}')


@pytest.mark.parametrize("name", ["kimi", "mistral", "mistral with marks", "cohere"])
def test_a_call_has_the_id_that_the_model_wrote(name: str) -> None:
    texts = {
        "kimi": "<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "mistral": '[TOOL_CALLS] [{"name": "look", "arguments": {}, "id": "abcdef123"}]',
        "mistral with marks": "[TOOL_CALLS]look[CALL_ID]abcdef123[ARGS]{}",
        "cohere": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "look", "parameters": {}}]<|END_ACTION|>',
    }
    (call,) = read(texts[name], name.partition(" ")[0]).calls
    assert call.id in texts[name] and call.id


def test_two_calls_with_one_id_have_two() -> None:
    text = "<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    first, second = read(text * 2, "kimi").calls
    assert (first.id, second.name) == ("functions.look:0", "look") and second.id != first.id


CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'


A_CALL_INSIDE_OF_THINKING_IS_NOT_ONE: list[tuple[str, bool, int]] = [
    (f"<think>Shall I {CALL}?</think>{CALL}", False, 1),
    (f"<think>Shall I {CALL}", False, 0),
    (f"Shall I {CALL}", True, 0),
    (f"Shall I {CALL}</think>{CALL}", True, 1),
    (f"[THINK]{CALL}[/THINK]", False, 0),
    (f"<seed:think>{CALL}</seed:think>", False, 0),
    (f"<|channel>thought\n{CALL}<channel|>", False, 0),
    (CALL, False, 1),
]


def test_a_call_inside_of_thinking_is_not_one() -> None:
    for text, begun, count in A_CALL_INSIDE_OF_THINKING_IS_NOT_ONE:
        found = read(text, "hermes", begun)
        assert len(found.calls) == count and not found.problem


MARKED_CALLS = {
    "hermes": '<tool_call>{{"name": "look", "arguments": {{"text": {json}}}}}</tool_call>',
    "xml": "<tool_call>\n<function=look>\n<parameter=text>\n{text}\n</parameter>\n</function>\n</tool_call>",
    "mistral": '[TOOL_CALLS]look[ARGS]{{"text": {json}}}',
    "gemma": '<|tool_call>call:look{{text:<|"|>{text}<|"|>}}<tool_call|>',
    "llama": '{{"name": "look", "parameters": {{"text": {json}}}}}',
    "lfm": "<|tool_call_start|>[look(text={json})]<|tool_call_end|>",
    "harmony": '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{{"text": {json}}}',
}
MARKS_INSIDE = (
    "<think>hi</think>",
    "a <think> b",
    "see </think> end",
    'x = "[THINK]"',
    'strip("<thought>")',
    "<|channel>",
    're.sub(r"<think>.*?</think>", "", s)',
    's.split("</think>")[-1]',
    "</think> <think>a</think> [/THINK]",
)


def test_a_mark_of_thinking_inside_of_an_argument_belongs_to_it() -> None:
    for inside in MARKS_INSIDE:
        for format in MARKED_CALLS:
            written = MARKED_CALLS[format].format(text=inside, json=json.dumps(inside))
            other = MARKED_CALLS[format].format(text="other", json='"other"')
            for before in ("", "<think>plan</think>\n", f"<think>or {other}</think><think>no</think>"):
                found = read(before + written, format)
                assert [call.decoded for call in found.calls] == [{"text": inside}] and not found.problem
                assert found.text in ("", before.strip())
                assert not read(f"<think>{written.replace('</think>', '')}", format).calls


def test_thinking_that_a_template_begins_is_known() -> None:
    template = WRITTEN["hermes"].replace("{{ '<|assistant|>' }}", "{{ '<|assistant|><think>\n' }}")
    assert ToolTemplate(words_of(template), PromptConfig()).plain.thinking.begun == "<think>"
    assert not ToolTemplate(words_of(WRITTEN["hermes"]), PromptConfig()).plain.thinking.begun


@pytest.mark.parametrize("format", FORMATS)
def test_of_many_malformed_calls_a_few_are_looked_at(format: str) -> None:
    """Else a text of openings takes a time that grows with the square of its length."""
    asked = 0

    def read(text: str, tools: Tools) -> Iterator[Found]:
        nonlocal asked
        for each in FORMATS[format].read(text, tools):
            asked += 1
            yield each

    counted = replace(FORMATS[format], read=read)
    for mark in FORMATS[format].marks:
        text = f"{mark}[call:a{{]\n" * 5000
        assert not read_answer(text, counted, TOOLS, "key").calls
        assert not calls_in(counted, text, 1)
    assert asked <= (MOST_MALFORMED + 1) * len(FORMATS[format].marks)


@quiet
@pytest.mark.parametrize("calls", [None, (), (ToolCall("abc123def", "look", "{}"),)], ids=["whole", "text", "result"])
def test_a_rendering_that_takes_too_long_is_not_begun_again(
    monkeypatch: pytest.MonkeyPatch, calls: tuple[ToolCall, ...] | None
) -> None:
    renderer = Renderer(Words(words_of(WRITTEN["hermes"]), frozenset([1])))
    forms: list[Sequence[Mapping[str, Any]]] = []

    def slow(messages: Sequence[Mapping[str, Any]], goes_on: bool, tools: Tools = ()) -> str:
        forms.append(messages)
        raise RenderTimeout

    monkeypatch.setattr(renderer.template.plain, "apply", slow)
    news = [ChatMessage("tool", "a wall", call_id="abc123def") if calls else ChatMessage("user", "a wall")]

    def work() -> object:
        return renderer.whole(news, TOOLS) if calls is None else renderer.after(1, news, calls=calls)

    with pytest.raises(Refusal, match="takes too much"):
        asyncio.run(Offload(60.0).run(GatewayEpisode("episode", "key", 0), 0, work))
    assert len(forms) == 1
