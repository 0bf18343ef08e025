"""The embedded model: a small causal language model with its own tokenizer and chat template, built without a download.

It exists so that the whole pipeline runs and learns on a laptop: Qwen3 architecture, byte-level BPE vocabulary that is
trained on texts of the environment at hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from turngym.errors import ConfigError
from turngym.lazy import torch
from turngym.options import Amount, Options, Positive, at_least

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

END = "<|end|>"
ROLES = ("system", "user", "assistant")
_PADDING = "<|pad|>"
MARKS = ("<action>", "</action>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


class EmbeddedConfig(Options):
    """Size of the embedded model.

    Args:
        hidden_size: Width.
        layers: Number of transformer blocks.
        heads: Attention heads; must divide the width.
        vocabulary: Vocabulary size, at least 300: 256 bytes, special tokens, then merges.
        initializer_range: Standard deviation of the initial weights. The usual 0.02 learns almost nothing at this width
            within a few hundred updates.
        context: Maximum sequence length.
        words_apart: Tokenise spaces separately. Sequences are longer, but a word always has the same tokens, which
            helps a small model copy unseen words.
        vision: Encode images of observations with a small vision encoder.
    """

    hidden_size: Positive = 96
    layers: Positive = 3
    heads: Positive = 4
    vocabulary: Annotated[int, at_least(300)] = 512
    initializer_range: Amount = 0.1
    context: Positive = 4096
    words_apart: bool = False
    vision: bool = False

    def check(self) -> None:
        """Check what depends on several settings."""
        if self.hidden_size % self.heads:
            raise ConfigError(f"heads must divide hidden_size, got {self.heads} and {self.hidden_size}.")


def build_tokenizer(texts: Iterable[str], vocabulary: int = 512, words_apart: bool = False) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on texts of an environment; the same texts give the same tokenizer.

    The marks around an action are single tokens.

    >>> build_tokenizer(["a dog, a cat"] * 9, 300, words_apart=True).tokenize("dog dog")
    ['dog', 'Ġ', 'dog']
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False)
    spaces = pre_tokenizers.Split(" ", "isolated")
    core.pre_tokenizer = pre_tokenizers.Sequence([spaces, plain]) if words_apart else plain
    core.decoder = decoders.ByteLevel()
    special = [_PADDING, END, *(f"<|{role}|>" for role in ROLES)]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(MARKS),
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    core.add_tokens(list(MARKS))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=_PADDING, eos_token=END, clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def build_model(tokenizer: PreTrainedTokenizerFast, config: EmbeddedConfig, seed: int) -> Qwen3ForCausalLM:
    """Build the network with weights that depend on ``seed`` alone."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    settings = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden_size,
        intermediate_size=2 * config.hidden_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        head_dim=config.hidden_size // config.heads,
        max_position_embeddings=config.context,
        initializer_range=config.initializer_range,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Qwen3ForCausalLM(settings)
    network.eval()
    return network
