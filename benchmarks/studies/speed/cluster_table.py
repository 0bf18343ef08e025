"""What 1, 8 and 64 GPUs need to train a model on episodes of many turns: a calculation, nothing is measured here.

    python benchmarks/studies/speed/cluster_table.py                  # 7B, 40 turns, H100
    python benchmarks/studies/speed/cluster_table.py --turns 100 --mfu 0.4 --decode 2500

``docs/how-to/cluster.md`` has the formulas. What is assumed is an option: the device's peak, memory and links are those
of NVIDIA's data sheet of the H100 SXM, a node's network is 400 Gbit/s, the share of the peak that an update reaches and
the speed of decoding are assumptions, to be replaced by one's own measurement (``gpu.py`` beside this file).
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from turngym.benchmarks.studies.harness import arguments
from turngym.storage.files import write_json

_GIB = 2**30


@dataclass(frozen=True)
class Model:
    """Size of a transformer with grouped keys and values.

    Args:
        hidden: Width.
        intermediate: Width inside of the feed-forward layers.
        layers: Number of layers.
        heads: Attention heads.
        kv_heads: Heads of keys and values.
        head: Width of a head.
        words: Size of the vocabulary.
        tied: Whether input and output share their weights.
    """

    hidden: int = 3584
    intermediate: int = 18_944
    layers: int = 28
    heads: int = 28
    kv_heads: int = 4
    head: int = 128
    words: int = 152_064
    tied: bool = False

    @property
    def inner(self) -> int:
        """Weights of all layers, without norms and biases."""
        attention = self.hidden * self.head * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def weights(self) -> int:
        """All weights, without norms and biases."""
        return self.inner + self.words * self.hidden * (1 if self.tied else 2)

    def adapters(self, rank: int) -> int:
        """Weights of low-rank adapters of all layers but embedding and head."""
        queries, keys = self.heads * self.head, self.kv_heads * self.head
        attention = 2 * (self.hidden + queries) + 2 * (self.hidden + keys)
        return rank * self.layers * (attention + 3 * (self.hidden + self.intermediate))

    @property
    def kv_bytes(self) -> int:
        """Bytes of the keys and values of one token in 16 bits."""
        return 2 * 2 * self.layers * self.kv_heads * self.head

    def forward_operations(self, length: float) -> float:
        """Operations of one token's forward pass, after ``length`` / 2 others on average."""
        return 2.0 * (self.inner + self.words * self.hidden) + 2.0 * self.layers * self.heads * self.head * length


@dataclass(frozen=True)
class Load:
    """What is trained on, and on what.

    Args:
        episodes: Episodes of an iteration, per GPU.
        turns: Turns of an episode.
        prompt: Tokens that a turn adds to the prompt.
        completion: Tokens that a turn samples.
        micro_batch: Tokens of a micro-batch on one GPU.
        peak: Operations a second of a GPU in bfloat16.
        memory: Bytes of a GPU.
        mfu: Share of the peak that an update reaches.
        prefill_mfu: Share of the peak that reading a prompt reaches.
        decode: Tokens a second that one GPU samples, over all its sequences.
        sequences: Episodes that one GPU samples at once.
        link: Bytes a second between the GPUs of one node.
        network: Bytes a second of a node's network.
        node: GPUs of a node.
    """

    episodes: int = 64
    turns: int = 40
    prompt: int = 150
    completion: int = 100
    micro_batch: int = 16_384
    peak: float = 989e12
    memory: float = 80e9
    mfu: float = 0.35
    prefill_mfu: float = 0.35
    decode: float = 2000.0
    sequences: int = 64
    link: float = 450e9
    network: float = 50e9
    node: int = 8

    @property
    def length(self) -> int:
        """Tokens of a whole episode, as one append-only sequence."""
        return self.turns * (self.prompt + self.completion)


def state_bytes(weights: int, trained: int, shards: int) -> dict[str, float]:
    """Return the bytes on each GPU of what an update keeps: 16-bit weights; masters, gradients, Adam in float32.

    >>> {name: each / 1e9 for name, each in state_bytes(10**9, 10**9, 2).items()}
    {'weights': 1.0, 'masters': 2.0, 'gradients': 2.0, 'adam': 4.0}
    """
    each = trained / shards
    return {"weights": 2 * weights / shards, "masters": 4 * each, "gradients": 4 * each, "adam": 8 * each}


def activation_bytes(model: Model, tokens: int, chunk: int = 1024) -> float:
    """Return the bytes of an update with checkpointing: each layer's input, one layer anew, a chunk of logits.

    One layer holds in 16 bits, for each token: its input, two norms and its output, queries, keys, values and what
    attention returns, three widths of the feed-forward part; and as much again for gradients. Logits of a chunk are
    float32, with their gradient.
    """
    inputs = 2.0 * model.layers * model.hidden * tokens
    attention = (2 * model.heads + 2 * model.kv_heads) * model.head
    layer = 2.0 * tokens * (4 * model.hidden + attention + 3 * model.intermediate)
    return inputs + 2 * layer + 2 * 4.0 * chunk * model.words


def gathered_bytes(model: Model, shards: int) -> float:
    """Return the bytes of layers that FSDP gathers: two layers and the larger of embedding and head, in 16 bits."""
    return 0.0 if shards == 1 else 2.0 * (2 * model.inner / model.layers + model.words * model.hidden)


def update_seconds(model: Model, load: Load) -> float:
    """Return the seconds of one pass over the episodes of a GPU: forward, backward, and forward anew."""
    operations = 4.0 * model.forward_operations(load.length) * load.episodes * load.length
    return operations / (load.peak * load.mfu)


def rollout_seconds(model: Model, load: Load) -> float:
    """Return the seconds in which one GPU plays as many episodes as one GPU learns from, prefixes kept."""
    sampled = load.episodes * load.turns * load.completion
    read = load.episodes * load.turns * load.prompt
    return sampled / load.decode + read * model.forward_operations(load.length) / (load.peak * load.prefill_mfu)


def hand_over_seconds(model: Model, load: Load, gpus: int, trained: int) -> float:
    """Return the seconds in which samplers get the 16-bit weights that are trained, once for each update."""
    return 0.0 if gpus == 1 else 2.0 * trained / (load.link if gpus <= load.node else load.network)


def sharding_seconds(model: Model, load: Load, gpus: int, learners: int) -> float:
    """Return the seconds in which weights and gradients move among learners in one pass, which overlap with computing.

    The weights are gathered in 16 bits twice for each micro-batch, and the gradients added up once in float32. In a
    ring every link carries all but one part of them.
    """
    if learners == 1:
        return 0.0
    passes = math.ceil(load.episodes * gpus / learners * load.length / load.micro_batch)
    moved = (learners - 1) / learners * model.weights * (2 * 2 * passes + 4)
    return moved / (load.link if learners <= load.node else load.network)


def division(update: float, rollout: float, gpus: int) -> tuple[int, int]:
    """Return how many GPUs learn and how many sample, so that neither waits for long; one GPU does both in turn.

    >>> division(120.0, 240.0, 9)
    (3, 6)
    """
    samplers = min(max(round(gpus * rollout / (rollout + update)), 1), gpus - 1) if gpus > 1 else 0
    return gpus - samplers, samplers


def row(model: Model, load: Load, gpus: int, rank: int = 0) -> dict[str, Any]:
    """Return one column of the table: what that many GPUs need and do, with all weights or adapters of a rank."""
    trained = model.adapters(rank) if rank else model.weights
    update, rollout = update_seconds(model, load), rollout_seconds(model, load)
    learners, samplers = division(update, rollout, gpus)
    state = state_bytes(model.weights, trained, learners)
    activations, gathered = activation_bytes(model, load.micro_batch), gathered_bytes(model, learners)
    learner = sum(state.values()) + activations + gathered
    cache = load.sequences * load.length * model.kv_bytes
    hand_over = hand_over_seconds(model, load, gpus, trained)
    of_update, of_rollout = update * gpus / learners, rollout * gpus / max(samplers, 1)
    seconds = (max(of_update, of_rollout) if samplers else of_update + of_rollout) + hand_over
    sampler = 2.0 * model.weights + cache
    return {
        "gpus": gpus,
        "trained": f"adapters of rank {rank}" if rank else "all weights",
        "learners": learners,
        "samplers": samplers,
        "samplers_per_learner": round(rollout / update, 2),
        **{f"{name}_gib": round(each / _GIB, 1) for name, each in state.items()},
        "activations_gib": round(activations / _GIB, 1),
        "gathered_gib": round(gathered / _GIB, 1),
        "learner_gib": round(learner / _GIB, 1),
        "kv_cache_gib": round(cache / _GIB, 1),
        "sampler_gib": round(sampler / _GIB, 1),
        "fits": max(learner, sampler) <= load.memory,
        "handed_over_gib": round(2.0 * trained / _GIB, 2),
        "hand_over_seconds": round(hand_over, 2),
        "sharding_seconds": round(sharding_seconds(model, load, gpus, learners), 1),
        "update_seconds": round(of_update, 1),
        "rollout_seconds": round(of_rollout, 1),
        "iteration_seconds": round(seconds, 1),
        "episodes_per_hour": round(3600 * load.episodes * gpus / seconds),
    }


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """Return the table with one column for each number of GPUs."""
    names = [name for name in rows[0] if name != "gpus"]
    head = "| GPUs | " + " | ".join(str(each["gpus"]) for each in rows) + " |"
    lines = [head, "|---" * (len(rows) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(str(each[name]) for each in rows) + " |" for name in names]
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options: the numbers of the load and of the model."""
    made = arguments(__doc__, "cluster_table.json")
    made.add_argument("--gpus", nargs="+", type=int, default=[1, 8, 64])
    made.add_argument("--rank", type=int, default=32, help="of the adapters in the first column")
    for kind in (Load, Model):
        for each in fields(kind):
            if each.type != "bool":
                made.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)
    return made


def main() -> None:
    """Print the table and write it."""
    options = parser().parse_args()
    load = Load(**{each.name: getattr(options, each.name) for each in fields(Load)})
    model = Model(**{each.name: getattr(options, each.name) for each in fields(Model) if each.type != "bool"})
    rows = [row(model, load, 1, options.rank)] + [row(model, load, count) for count in options.gpus]
    print(as_markdown(rows))
    write_json(options.out, {"calculated": True, "model": asdict(model), "load": asdict(load), "rows": rows})


if __name__ == "__main__":
    main()
