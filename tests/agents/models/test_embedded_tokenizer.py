"""The embedded model's tokenizer: text comes back as it went in, words are the same tokens wherever they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.agents.models.embedded import END, build_tokenizer

TEXTS = ["Question: Who founded Alothea University?", "<answer>Hesavane Aludora</answer>", "a  b\n c\td"] * 3
TOKENIZERS = {apart: build_tokenizer(TEXTS, 400, words_apart=apart) for apart in (False, True)}


@pytest.mark.parametrize("words_apart", [False, True])
@given(text=st.text(max_size=60))
def test_text_comes_back_as_it_went_in(words_apart: bool, text: str) -> None:
    tokenizer = TOKENIZERS[words_apart]
    ids = tokenizer.encode(text.replace("<|", "<"), add_special_tokens=False)
    assert tokenizer.decode(ids) == text.replace("<|", "<")


@given(
    word=st.text("abcdefghijklmnop", min_size=1, max_size=12),
    before=st.sampled_from(["", " ", "a ", "see ", "\n ", "> "]),
)
def test_a_word_is_the_same_tokens_wherever_it_stands(word: str, before: str) -> None:
    tokenizer = TOKENIZERS[True]
    alone = tokenizer.encode(word, add_special_tokens=False)
    assert tokenizer.encode(before + word, add_special_tokens=False)[-len(alone) :] == alone


def test_otherwise_a_space_belongs_to_the_word_behind_it() -> None:
    ids = TOKENIZERS[False].encode("who founded", add_special_tokens=False)
    assert TOKENIZERS[False].convert_ids_to_tokens(ids)[-1] == "Ġfounded"
    ids = TOKENIZERS[True].encode("who founded", add_special_tokens=False)
    assert TOKENIZERS[True].convert_ids_to_tokens(ids)[-2:] == ["Ġ", "founded"]


@pytest.mark.parametrize("words_apart", [False, True])
def test_marks_of_the_conversation_are_one_token_each(words_apart: bool) -> None:
    tokenizer = TOKENIZERS[words_apart]
    assert len(tokenizer.encode(f"<|user|>{END}<action></action>", add_special_tokens=False)) == 4


def test_the_same_texts_give_the_same_tokenizer() -> None:
    again = build_tokenizer(TEXTS, 400, words_apart=True)
    assert again.get_vocab() == TOKENIZERS[True].get_vocab()
