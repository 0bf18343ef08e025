"""Chat templates that would fill the memory: refused before they make a text, and others render as without a limit."""

from __future__ import annotations

import resource
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from small import small_model
from tool_templates import TOOLS, WRITTEN, words_of
from transformers.utils import chat_template_utils

from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting import chat_template
from turngym.agents.prompting.chat_template import ChatTemplate, RenderTooLarge
from turngym.agents.prompting.template_memory import CountingEnvironment, size_limit


def grown(step: str, start: str = "'aa'", end: str = "") -> str:
    """Return a template that repeats a step which doubles ``ns.x``."""
    loop = "{% for _ in range(29) %}{% set ns.x = " + step + " %}{% endfor %}"
    return "{% set ns = namespace(x=" + start + ") %}" + loop + end


BIG = "('b' * 300000)"
ATTACKS = [
    *("{{ 'a' * 10**9 }}", "{{ 10**9 * 'a' }}", "{{ [0] * 10**9 }}", "{{ 'a'.encode() * 10**9 }}"),
    *("{{ 10 ** (10 ** 8) }}", "{% set x = (10 ** 100000) * (10 ** 9999999) %}"),
    *(grown("ns.x ~ ns.x"), grown("ns.x + ns.x"), grown("[ns.x, ns.x] | join"), grown("''.join([ns.x, ns.x])")),
    *(grown("ns.x | replace('a', 'aa')"), grown("ns.x.replace('a', 'aa')"), grown("'%s%s' % (ns.x, ns.x)")),
    *(grown("'%s%s' | format(ns.x, ns.x)"), grown("'{}{}'.format(ns.x, ns.x)"), grown("ns.x + ns.x", "[1]")),
    *(grown("[ns.x, ns.x]", end=end) for end in ("{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x ~ '' }}")),
    *(grown("[ns.x, ns.x]", end=end) for end in ("{{ ns.x | upper }}", "{{ '%s' % ns.x }}", "{{ '{}'.format(ns.x) }}")),
    *(grown("[ns.x, ns.x]", end=end) for end in ("{{ ns.x | string }}", "{{ [ns.x] | map('string') | list }}")),
    *(f"{{{{ 'a'.{name}(10**9) }}}}" for name in ("center", "ljust", "rjust", "zfill")),
    *("{{ 'a' | center(10**9) }}", "{{ ['a'] | map('center', 10**9) | list }}", "{{ (5).to_bytes(10**9, 'big') }}"),
    *("{{ ('\\t' * 1000).expandtabs(10**6) }}", "{{ '{:1000000000}'.format('a') }}", "{{ '%1000000000d' % 1 }}"),
    *("{{ '{:{}}'.format('a', 10**9) }}", "{{ '%*d' % (10**9, 1) }}", "{{ '%*d' | format(10**9, 1) }}"),
    *("{{ 'a' | indent(10**9, true) }}", "{{ {'a': 1} | tojson(indent=10**9) }}", "{{ [1] | batch(10**9, 2) | list }}"),
    *(f"{{{{ range(9999) | join({BIG}) }}}}", f"{{{{ {BIG}.join(range(9999) | map('string')) }}}}"),
    *(f"{{{{ {BIG} | join({BIG}) }}}}", f"{{{{ ('a' * 9999) | wordwrap(1, wrapstring={BIG}) }}}}"),
    *(f"{{{{ ('a' * 9999).translate({{97: {BIG}}}) }}}}", f"{{{{ ('a' * 9999) | replace('', {BIG}) }}}}"),
    *("{{ [range(99999) | list] * 9999 }}", "{{ ([range(9999) | list] * 9999) | sum(start=[]) }}"),
    "{% for _ in range(99999) %}" + "x" * 9999 + "{% endfor %}",
    "{% set x %}{% for _ in range(99999) %}" + "x" * 9999 + "{% endfor %}{% endset %}",
    "{% macro m() %}{% for _ in range(99999) %}" + "x" * 9999 + "{% endfor %}{% endmacro %}{% set y = m() %}",
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return small_model().tokenizer


@pytest.mark.parametrize("template", ATTACKS)
def test_what_would_fill_the_memory_is_refused_before_it_is_made(
    template: str, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_template, "RENDER_SIZE", 400_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RenderTooLarge, match="more than 400000 characters"):
        ChatTemplate(tokenizer, PromptConfig(chat_template=template + "{{ messages[0]['content'] }}"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "KiB"


@pytest.mark.parametrize("name", WRITTEN)
def test_templates_render_as_without_the_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, source = words_of(WRITTEN[name]), WRITTEN[name]
    made = ChatTemplate(tokenizer, PromptConfig())
    messages = [{"role": "user", "content": f"{text} 100% {{}} {{0:5}}"} for text in ("a wall", "a\tdoor\n\n")]
    found = made.apply(messages, True, TOOLS)
    with monkeypatch.context() as patch:
        patch.setattr(chat_template_utils, "ImmutableSandboxedEnvironment", ImmutableSandboxedEnvironment)
        plain = source + "{# compiled again #}"
        assert found == tokenizer.apply_chat_template(
            messages,
            tools=[dict(tool) for tool in TOOLS],
            chat_template=plain,
            tokenize=False,
            add_generation_prompt=True,
        )


def test_templates_of_others_are_compiled_as_before() -> None:
    usual = vars(chat_template_utils)["ImmutableSandboxedEnvironment"]
    with size_limit(100, ValueError), size_limit(100, ValueError):
        assert vars(chat_template_utils)["ImmutableSandboxedEnvironment"] is CountingEnvironment
    assert vars(chat_template_utils)["ImmutableSandboxedEnvironment"] is usual is not CountingEnvironment
