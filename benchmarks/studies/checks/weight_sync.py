"""Hand-overs of weights: faults of more than fifty kinds, and 1,000 sound ones, as fingerprints judge them.

    python benchmarks/studies/checks/weight_sync.py [--sound N]

A small network with biases is trained with AdamW steps; a sampler with a network of its own and kept keys follows it.
Sound hand-overs: float32, bfloat16 with float32 masters, and a float32 trainer with a bfloat16 sampler; all weights and
adapters; step sizes from 1e-6 to 1e-3. Faults: those of ``weight_faults.py`` after four sound hand-overs, and faults of
servers over HTTP. Resolution: from which step size on faults that depend on the update are caught. Writes
``benchmarks/results/weight_sync.json``; ends with 1 if a sound hand-over is refused or a fault passes at 1e-4.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from turngym.agents.models.served.client import PolicyClient
from turngym.agents.models.serving import Engine, PolicyServer
from turngym.agents.models.serving.weights import ServedWeights
from turngym.agents.servers.exchange import CallFailed
from turngym.benchmarks.machine import machine
from turngym.benchmarks.studies.checks.weight_faults import ADAPTERS, HEAD, WHOLE, Fault
from turngym.benchmarks.studies.checks.weight_handovers import TEMPERATURE, HandOvers, Kind, Policy, build
from turngym.storage.files import write_json
from turngym.trainers.engine.fingerprint import Verdict
from turngym.trainers.loop.served_check import WeightCheck

RESULTS = Path(__file__).parents[2] / "results" / "weight_sync.json"
FORMATS = (("float32", "float32"), ("bfloat16", "bfloat16"), ("float32", "bfloat16"))
KINDS = [Kind(*formats, lora=lora) for formats in FORMATS for lora in (False, True)]
RATES = (1e-6, 1e-5, 1e-4, 1e-3)
FINE = (1e-8, 1e-7, 1e-6, 1e-5)
SEEN_BY_SIZE = (
    "all weights stale",
    "the model before last",
    "half an update: upper layers old",
    "missing shard: one matrix old",
    "tied head forgotten",
    "norms old",
    "biases old",
    "one row of the head old",
    "one row of the embedding old",
    "keys kept from the old weights",
)


def sound(kind: Kind, rate: float, count: int, seed: int) -> dict[str, Any]:
    """Return what fingerprints say of sound hand-overs."""
    case = HandOvers(kind, seed)
    verdicts = [case.check(), *(case.sound(rate) for _ in range(count - 1))]
    shares = [verdict.share for verdict in verdicts if verdict.share is not None]
    return {
        "kind": str(kind),
        "rate": rate,
        "hand_overs": count,
        "alarms": [verdict.faults for verdict in verdicts if verdict.faults],
        "gap_rms_median": statistics.median(verdict.gaps.rms for verdict in verdicts),
        "gap_rms_largest": max(verdict.gaps.rms for verdict in verdicts),
        "gap_largest": max(verdict.gaps.largest for verdict in verdicts),
        "moved_median": statistics.median(verdict.moved for verdict in verdicts[1:]),
        "shares_known": len(shares),
        "share_least": min(shares, default=None),
        "share_most": max(shares, default=None),
    }


def verdicts_of(kind: Kind, rate: float, faults: Mapping[str, Fault], seed: int = 1) -> dict[str, Verdict | None]:
    """Return what fingerprints say of faults; None where the fault changes nothing in the sampler's format."""
    case = HandOvers(kind, seed)
    first = [case.check(), *(case.sound(rate) for _ in range(3))]
    assert not any(verdict.faults for verdict in first), "a sound hand-over was refused"
    case.policy.step(rate)
    weights = case.policy.weights()
    return {name: case.faulty(fault, weights) for name, fault in faults.items()}


def word(verdict: Verdict | None) -> str:
    """Return a verdict in a word."""
    return "nothing changed" if verdict is None else "caught" if verdict.faults else "passed"


@contextmanager
def serving(kind: Kind, folder: Path) -> Iterator[PolicyClient]:
    """Serve a model of the shape, over HTTP."""
    model = build(kind, seed=0)
    engine = Engine(model, ServedWeights(model, "small", folder), cache_tokens=20_000)
    server = PolicyServer(engine)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield PolicyClient(server.url)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        engine.close()


class Fleet:
    """Two servers that follow a policy through a folder.

    Args:
        folder: The folder.
        clients: The servers.
    """

    def __init__(self, folder: Path, clients: list[PolicyClient]) -> None:
        self.folder, self.clients = folder, clients
        self.policy = Policy(Kind())
        self.check = WeightCheck(self.policy.model, "float32", TEMPERATURE, 512, 0.0, 60.0)
        self.number = 0

    def publish(self) -> str:
        """Take a step and write the weights."""
        self.policy.step(1e-4)
        self.number += 1
        target = self.folder / f"v{self.number}"
        target.mkdir()
        weights = {name: tensor for name, tensor in self.policy.weights().items() if name != HEAD}
        save_file(weights, target / "model.safetensors")
        return target.name

    def give(self, client: PolicyClient, name: str, label: str = "") -> None:
        """Let a server load the weights of a name, under a label."""
        client.call_workers("reload_weights", 60.0, weights_path=str(self.folder / name))
        client.set_version(label or name, 60.0)

    def judge(self, label: str) -> list[bool]:
        """Return for each server whether its weights are refused."""
        wanted = self.check.expect()
        found = []
        for client in self.clients:
            try:
                self.check.require(client, label, wanted)
                found.append(False)
            except CallFailed:
                found.append(True)
        return found


def of_servers() -> dict[str, str]:
    """Return what becomes of faults of servers: two follow a policy, the second one goes wrong."""
    results = {}
    for name in (
        "label right, weights old",
        "label old, weights new",
        "model before last",
        "another model",
        "not told",
    ):
        with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
            folder = Path(temporary)
            fleet = Fleet(folder, [stack.enter_context(serving(Kind(), folder)) for _ in range(2)])
            for _ in range(3):
                label = fleet.publish()
                for client in fleet.clients:
                    fleet.give(client, label)
                assert fleet.judge(label) == [False, False], "a sound hand-over was refused"
            label = fleet.publish()
            fleet.give(fleet.clients[0], label)
            other = fleet.clients[1]
            if name == "label right, weights old":
                other.set_version(label, 60.0)
            elif name == "label old, weights new":
                fleet.give(other, label, "v3")
            elif name == "model before last":
                fleet.give(other, "v2", label)
            elif name == "another model":
                (folder / "other").mkdir()
                build(Kind(), 77).network.save_pretrained(folder / "other")
                fleet.give(other, "other", label)
            results[f"server: {name}"] = "caught" if fleet.judge(label) == [False, True] else "passed"
    return results


def main() -> int:
    """Run all and write the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sound", type=int, default=1008, help="sound hand-overs in all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    each = -(-arguments.sound // (len(KINDS) * len(RATES)))
    cells = [(kind, rate) for kind in KINDS for rate in RATES]
    rows = []
    for seed, (kind, rate) in enumerate(cells):
        rows.append(sound(kind, rate, each, seed))
        print(rows[-1], flush=True)
    faults: dict[str, dict[str, str]] = {}
    for formats in FORMATS[:2]:
        found = verdicts_of(Kind(*formats), 1e-4, WHOLE) | verdicts_of(Kind(*formats, lora=True), 1e-4, ADAPTERS)
        faults[formats[0]] = {name: word(verdict) for name, verdict in found.items()}
    faults["float32"] |= of_servers()
    chosen = {name: WHOLE[name] for name in SEEN_BY_SIZE}
    resolution = {
        formats[0]: {
            f"{rate:g}": {name: word(found) for name, found in verdicts_of(Kind(*formats), rate, chosen).items()}
            for rate in FINE
        }
        for formats in FORMATS[:2]
    }
    alarms = sum(len(row["alarms"]) for row in rows)
    passed = {format: [name for name, found in kinds.items() if found == "passed"] for format, kinds in faults.items()}
    content = {
        "machine": machine(),
        "sound": {"hand_overs": sum(row["hand_overs"] for row in rows), "alarms": alarms, "cells": rows},
        "faults": {"step_size": 1e-4, "kinds": faults, "passed": passed},
        "resolution": resolution,
    }
    write_json(RESULTS, content)
    print(f"{content['sound']['hand_overs']} sound hand-overs, {alarms} alarms; passed: {passed}")
    return int(bool(alarms or passed["float32"]))


if __name__ == "__main__":
    sys.exit(main())
