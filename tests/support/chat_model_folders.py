"""Model folders with the special tokens and chat templates of well-known families, and tiny random weights.

The templates are written for the tests, after the habits of the families: thinking that is stripped from earlier
answers (Qwen), no role for the system (Gemma), a system text inside of the first user turn (Mistral), trimmed contents
(Llama), control tokens that are not special tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from turngym.agents.models.embedded import EmbeddedConfig, build_model
from turngym.agents.models.loading import LanguageModel

torch.set_num_threads(1)

TEXTS = (
    "You push boxes onto goals. Answer with one move: up, down, left or right.",
    "player 2 3 box 3 3 goal 4 1 wall 1 2 wall 3 4",
    "Earlier: the user asked the system and the model; the assistant answered.\n\nNow:\nuser\nassistant\nmodel\n",
    "<think>why</think> <action>up</action> [INST] text [/INST] <|im_start|> a < b | c > d [x] {y}",
)
_NO_THINKING = (
    "{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
)
QWEN = (
    "{%- for m in messages %}{%- set text = m.content %}"
    "{%- if m.role == 'assistant' and not loop.last %}"
    "{%- set text = text.split('</think>')[-1].lstrip('\\n') %}{%- endif %}"
    "{{ '<|im_start|>' + m.role + '\\n' + text + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}" + _NO_THINKING + "{%- endif %}"
)
LLAMA = (
    "{{- bos_token }}{%- for m in messages %}{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' "
    "+ m.content | trim + '<|eot_id|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"
)
GEMMA = (
    "{{ bos_token }}"
    "{%- if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{%- endif %}"
    "{%- for m in messages %}"
    "{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{%- endif %}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + m.content | trim "
    "+ '<end_of_turn>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{%- endif %}"
)
MISTRAL = (
    "{%- if messages[0].role == 'system' %}{%- set rules = messages[0].content %}{%- set rest = messages[1:] %}"
    "{%- else %}{%- set rest = messages %}{%- endif %}{{ bos_token }}"
    "{%- for m in rest %}{%- if m.role == 'user' %}"
    "{{ '[INST] ' + (rules + '\\n\\n' if loop.first and rules is defined else '') + m.content + ' [/INST]' }}"
    "{%- else %}{{ ' ' + m.content + eos_token }}{%- endif %}{%- endfor %}"
)
GLM = (
    "[gMASK]<sop>{%- for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}" + _NO_THINKING + "{%- endif %}"
)


@dataclass(frozen=True)
class Family:
    """What a family of models brings.

    Args:
        template: Its chat template.
        end: Its end token.
        special: Its other special tokens.
        marks: Tokens that were added to it and are not special tokens.
        begin: The token at the beginning, if there is one.
        unknown: The token for unknown characters, if there is one.
        padding: The padding token; the end token unless given.
        by_words: Whether spaces are part of words, as in sentencepiece, with a space before the first one.
    """

    template: str
    end: str
    special: tuple[str, ...]
    marks: tuple[str, ...] = ()
    begin: str = ""
    unknown: str = ""
    padding: str = ""
    by_words: bool = False


FAMILIES = {
    "qwen": Family(
        QWEN,
        "<|im_end|>",
        ("<|endoftext|>", "<|im_start|>", "<|vision_start|>"),
        ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        padding="<|endoftext|>",
    ),
    "llama": Family(
        LLAMA,
        "<|eot_id|>",
        ("<|start_header_id|>", "<|end_header_id|>", "<|end_of_text|>", "<|python_tag|>"),
        begin="<|begin_of_text|>",
    ),
    "gemma": Family(
        GEMMA,
        "<end_of_turn>",
        ("<start_of_turn>", "<eos>", "<turn|>", "<|turn>"),
        ("<table>", "</table>", "\n\n", "<unused0>", "[multimodal]"),
        begin="<bos>",
        unknown="<unk>",
        padding="<pad>",
    ),
    "mistral": Family(
        MISTRAL,
        "</s>",
        ("[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        begin="<s>",
        unknown="<unk>",
        by_words=True,
    ),
    "glm": Family(
        GLM,
        "<|endoftext|>",
        (
            "[MASK]",
            "[gMASK]",
            "[sMASK]",
            "<sop>",
            "<eop>",
            "<|system|>",
            "<|user|>",
            "<|assistant|>",
            "<|observation|>",
        ),
        ("<think>", "</think>", "<tool_call>", "<arg_key>"),
    ),
}


def family_tokenizer(name: str, texts: Sequence[str] = TEXTS) -> PreTrainedTokenizerFast:
    """Return a small tokenizer like those of a family, trained on some texts."""
    return tokenizer_of(FAMILIES[name], texts)


def tokenizer_of(family: Family, texts: Sequence[str] = TEXTS) -> PreTrainedTokenizerFast:
    """Return a small tokenizer with the special tokens and the template of a family."""
    special = [each for each in (family.begin, family.end, family.unknown, family.padding, *family.special) if each]
    core = Tokenizer(models.BPE(unk_token=family.unknown or None, fuse_unk=True))
    if family.by_words:
        core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        core.decoder = decoders.Metaspace(prepend_scheme="first", split=False)
        alphabet = [chr(code) for code in range(32, 127)]
    else:
        core.normalizer = normalizers.NFC()
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=list(dict.fromkeys(special)), initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(list(texts) * 3, trainer)
    core.add_tokens([AddedToken(mark, normalized=False) for mark in family.marks])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=family.begin or None,
        eos_token=family.end,
        unk_token=family.unknown or None,
        pad_token=family.padding or family.end,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = family.template
    return tokenizer


def family_model(name: str, seed: int = 0, texts: Sequence[str] = TEXTS) -> LanguageModel:
    """Return a tiny model with random weights and a tokenizer like those of a family."""
    tokenizer = family_tokenizer(name, texts)
    config = EmbeddedConfig(hidden_size=16, layers=2, heads=2, vocabulary=len(tokenizer))
    return LanguageModel(build_model(tokenizer, config, seed), tokenizer, name)


def family_folder(name: str, folder: Path, seed: int = 0, texts: Sequence[str] = TEXTS) -> Path:
    """Write such a model as transformers saves one, and return its folder."""
    family_model(name, seed, texts).save(folder)
    return folder
