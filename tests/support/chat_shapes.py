"""Chat templates in the shapes that make appending to a conversation hard, written for the tests.

Each shape says what must follow an answer that was not ended, and an answer that ended with each of its end tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chat_model_folders import Family, tokenizer_of

from turngym.agents.models.embedded import EmbeddedConfig, build_model
from turngym.agents.models.loading import LanguageModel

_CHATML = ("<|im_start|>", "<|endoftext|>")
_THINK = ("<think>", "</think>")


def _chatml(assistant: str, generation: str = "<|im_start|>assistant\\n", start: str = "") -> str:
    """Return a template of ChatML with another way to write answers."""
    return (
        f"{start}{{%- for m in messages %}}{{%- if m.role == 'assistant' %}}{assistant}"
        "{%- else %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{%- endif %}{%- endfor %}"
        f"{{%- if add_generation_prompt %}}{{{{ '{generation}' }}}}{{%- endif %}}"
    )


_KEPT = "{{ '<|im_start|>assistant\\n' + m.content + '<|im_end|>\\n' }}"
_CHATML_NEXT = "\n<|im_start|>user\nSEEN<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True)
class Shape:
    """A template and what must follow its answers; ``SEEN`` is the next observation.

    Args:
        family: The template and its tokens.
        follows: What follows an answer that was cut off.
        ended: What follows an answer that ended with a token, the token left out.
        answer: How an answer is sampled, so that the template writes the same tokens; empty if it rewrites answers.
        stops: Tokens that end answers beside the family's.
        system: Whether the template shows rules where the tests put them.
    """

    family: Family
    follows: str
    ended: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""
    stops: tuple[str, ...] = ()
    system: bool = True


_QWEN_FIRST = (
    "{%- set ns = namespace(last=0) %}{%- for m in messages %}{%- if m.role == 'user' %}"
    "{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}"
)
_QWEN_ANSWER = (
    "{%- set said = m.content.split('</think>')[-1].lstrip('\\n') %}"
    "{%- set thought = m.content.split('</think>')[0].split('<think>')[-1].strip('\\n') "
    "if '</think>' in m.content else '' %}"
    "{%- if loop.index0 > ns.last %}"
    "{{ '<|im_start|>assistant\\n<think>\\n' + thought + '\\n</think>\\n\\n' + said + '<|im_end|>\\n' }}"
    "{%- else %}{{ '<|im_start|>assistant\\n' + said + '<|im_end|>\\n' }}{%- endif %}"
)
_R1 = (
    "{{ bos_token }}{%- for m in messages %}{%- if m.role == 'system' %}{{ m.content }}"
    "{%- elif m.role == 'user' %}{{ '<|User|>' + m.content }}"
    "{%- else %}{{ '<|Assistant|>' + m.content.split('</think>')[-1] + '<|eos|>' }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|Assistant|><think>\\n' }}{%- endif %}"
)
_CHANNELS = (
    "{{ '<|start|>system<|message|>You are a model. Now: ' + strftime_now('%H:%M:%S.%f') + '<|end|>' }}"
    "{%- for m in messages %}{%- if m.role == 'assistant' %}"
    "{%- if '<|channel|>' in m.content %}{{ raise_exception('channels belong in fields') }}{%- endif %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content }}"
    "{{ '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' }}"
    "{%- else %}{{ '<|start|>' + ('developer' if m.role == 'system' else m.role) + '<|message|>' + m.content "
    "+ '<|end|>' }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{%- endif %}"
)
_OPEN_END = (
    "[gMASK]<sop>{%- for m in messages %}{%- if m.role == 'assistant' %}"
    "{{ '<|assistant|>\\n<think></think>\\n' + m.content.split('</think>')[-1].strip() }}"
    "{%- else %}{{ '<|' + m.role + '|>\\n' + m.content }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{%- endif %}"
)
_TWO_ENDS = (
    "{{ bos_token }}{%- for m in messages %}{%- if m.role == 'assistant' %}"
    "{{ '<|turn|>bot<|say|>' + m.content + '<|said|><|over|>' }}"
    "{%- else %}{{ '<|turn|>' + m.role + m.content + '<|over|>' }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|turn|>bot<|say|>' }}{%- endif %}"
)
_LLAMA2 = (
    "{%- for m in messages %}"
    "{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{%- endif %}"
    "{%- if m.role == 'user' %}{{ bos_token + '[INST] ' + m.content.strip() + ' [/INST]' }}"
    "{%- else %}{{ ' ' + m.content.strip() + ' ' + eos_token }}{%- endif %}{%- endfor %}"
)
_ROUNDS = (
    "{%- for m in messages if m.role != 'system' %}{%- if m.role == 'user' %}"
    "{{ '[Round ' ~ (loop.index0 // 2 + 1) ~ ']\\n' + m.content + '\\nAnswer:' }}"
    "{%- else %}{{ m.content + eos_token + '\\n' }}{%- endif %}{%- endfor %}"
)
_PLAIN = (
    "{%- for m in messages %}{%- if m.role == 'assistant' %}{{ ' ' + m.content + '\\n' }}"
    "{%- elif m.role == 'user' %}{{ 'user: ' + m.content + '\\nassistant:' }}"
    "{%- else %}{{ m.content + '\\n' }}{%- endif %}{%- endfor %}"
)
_PARTS = _chatml(_KEPT).replace("m.content", "(m.content | selectattr('type', 'equalto', 'text') | first).text")
_LAST_SYSTEM = (
    "{%- set rules = messages[0].content if messages[0].role == 'system' else '' %}{{ bos_token }}"
    "{%- for m in messages if m.role != 'system' %}{%- if m.role == 'user' %}"
    "{{ '[INST] ' + (rules + '\\n\\n' if rules and loop.last else '') + m.content + '[/INST]' }}"
    "{%- else %}{{ ' ' + m.content + eos_token }}{%- endif %}{%- endfor %}"
)
_DEFAULT = "{%- if messages[0].role != 'system' %}{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{%- endif %}"

SHAPES = {
    "last answer with a block of thinking": Shape(
        Family(_chatml(_QWEN_ANSWER, start=_QWEN_FIRST), "<|im_end|>", _CHATML, _THINK),
        f"<|im_end|>{_CHATML_NEXT}",
        {"<|im_end|>": _CHATML_NEXT, "<|endoftext|>": _CHATML_NEXT},
        stops=("<|endoftext|>",),
    ),
    "thinking begun in the generation prompt": Shape(
        Family(_chatml(_QWEN_ANSWER, "<|im_start|>assistant\\n<think>\\n", _QWEN_FIRST), "<|im_end|>", _CHATML, _THINK),
        f"<|im_end|>{_CHATML_NEXT}<think>\n",
        {"<|im_end|>": f"{_CHATML_NEXT}<think>\n"},
    ),
    "thinking begun and dropped, users that do not end": Shape(
        Family(_R1, "<|eos|>", ("<|User|>", "<|Assistant|>"), _THINK, begin="<|bos|>"),
        "<|eos|><|User|>SEEN<|Assistant|><think>\n",
        {"<|eos|>": "<|User|>SEEN<|Assistant|><think>\n"},
    ),
    "channels, two ends, a clock": Shape(
        Family(_CHANNELS, "<|return|>", ("<|start|>", "<|message|>", "<|end|>", "<|channel|>", "<|call|>")),
        "<|end|><|start|>user<|message|>SEEN<|end|><|start|>assistant",
        dict.fromkeys(("<|return|>", "<|call|>"), "<|start|>user<|message|>SEEN<|end|><|start|>assistant"),
        stops=("<|call|>",),
    ),
    "no end": Shape(
        Family(
            _OPEN_END,
            "<|endoftext|>",
            ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
            _THINK,
        ),
        "<|user|>\nSEEN<|assistant|>\n",
        {"<|user|>": "\nSEEN<|assistant|>\n", "<|endoftext|>": "<|user|>\nSEEN<|assistant|>\n"},
        stops=("<|user|>", "<|observation|>"),
    ),
    "an end of two tokens": Shape(
        Family(_TWO_ENDS, "<|over|>", ("<|turn|>", "<|say|>", "<|said|>"), begin="<|bos|>"),
        "<|said|><|over|><|turn|>userSEEN<|over|><|turn|>bot<|say|>",
        {"<|over|>": "<|turn|>userSEEN<|over|><|turn|>bot<|say|>"},
        answer="up<|said|><|over|>",
    ),
    "strict roles and a space before the end": Shape(
        Family(_LLAMA2, "</s>", ("[INST]", "[/INST]"), begin="<s>", unknown="<unk>", by_words=True),
        " </s><s>[INST] SEEN [/INST]",
        {"</s>": "<s>[INST] SEEN [/INST]"},
        answer=" up </s>",
    ),
    "numbered turns": Shape(
        Family(_ROUNDS, "</s>", ()),
        "</s>\n[Round 2]\nSEEN\nAnswer:",
        {"</s>": "\n[Round 2]\nSEEN\nAnswer:"},
        answer="up</s>",
        system=False,
    ),
    "no control tokens": Shape(
        Family(_PLAIN, "</s>", (), unknown="<unk>", by_words=True),
        "\nuser: SEEN\nassistant:",
        {"</s>": "\nuser: SEEN\nassistant:"},
    ),
    "contents in parts": Shape(
        Family(_PARTS, "<|im_end|>", _CHATML),
        f"<|im_end|>{_CHATML_NEXT}",
        {"<|im_end|>": _CHATML_NEXT},
        answer="up<|im_end|>",
    ),
    "rules in the last message": Shape(
        Family(_LAST_SYSTEM, "</s>", ("[INST]", "[/INST]"), begin="<s>"),
        "</s>[INST] SEEN[/INST]",
        {"</s>": "[INST] SEEN[/INST]"},
    ),
    "rules of its own": Shape(
        Family(_chatml(_KEPT, start=_DEFAULT), "<|im_end|>", _CHATML),
        f"<|im_end|>{_CHATML_NEXT}",
        {"<|im_end|>": _CHATML_NEXT},
        answer="up<|im_end|>",
    ),
    "another end token than the model's": Shape(
        Family(_chatml(_KEPT), "<|endoftext|>", ("<|im_start|>", "<|im_end|>")),
        f"<|im_end|>{_CHATML_NEXT}",
        {"<|endoftext|>": f"<|im_end|>{_CHATML_NEXT}"},
    ),
    "thinking expected": Shape(
        Family(
            _chatml(
                "{%- if '</think>' not in m.content %}{{ raise_exception('no thinking') }}{%- endif %}"
                "{{ '<|im_start|>assistant\\n' + m.content.split('</think>')[1].strip() + '<|im_end|>\\n' }}"
            ),
            "<|im_end|>",
            _CHATML,
            _THINK,
        ),
        f"<|im_end|>{_CHATML_NEXT}",
        {"<|im_end|>": _CHATML_NEXT},
    ),
}


def shape_model(name: str) -> LanguageModel:
    """Return a tiny model with random weights and the template of a shape."""
    shape = SHAPES[name]
    tokenizer = tokenizer_of(shape.family)
    config = EmbeddedConfig(hidden_size=16, layers=2, heads=2, vocabulary=len(tokenizer))
    model = LanguageModel(build_model(tokenizer, config, 0), tokenizer, name)
    ends = [tokenizer.eos_token_id, *(tokenizer.convert_tokens_to_ids(each) for each in shape.stops)]
    assert model.network.generation_config is not None
    model.network.generation_config.eos_token_id = ends
    return model
