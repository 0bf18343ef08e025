"""Fingerprints: no fault of a hand-over passes, and no sound one is taken for a fault."""

import math
from dataclasses import replace

import pytest
import torch
from weight_faults import ADAPTERS, WHOLE, Fault
from weight_handovers import HandOvers, Kind

from turngym.agents.models.completion import Completion
from turngym.trainers.engine.fingerprint import Fingerprints, Limits
from turngym.trainers.engine.probe_sequences import probe_sequences

RATE = 1e-4


def played(kind: Kind, rate: float = RATE, count: int = 3) -> HandOvers:
    case = HandOvers(kind, seed=1)
    found = [case.check(), *(case.sound(rate) for _ in range(count))]
    assert [each.faults for each in found] == [()] * (count + 1)
    return case


@pytest.mark.parametrize(("lora", "faults"), [(False, WHOLE), (True, ADAPTERS)], ids=["all weights", "adapters"])
def test_every_fault_of_a_hand_over_is_caught(lora: bool, faults: dict[str, Fault]) -> None:
    case = played(Kind(lora=lora))
    case.policy.step(RATE)
    weights = case.policy.weights()
    verdicts = {name: case.faulty(fault, weights) for name, fault in faults.items()}
    assert [name for name, verdict in verdicts.items() if verdict is None or not verdict.faults] == []
    sound = case.faulty(lambda each: each.versions[-1], weights)
    assert sound is not None and sound.faults == () and sound.share == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "rate"), [(Kind("bfloat16", "bfloat16"), 1e-6), (Kind("float32", "bfloat16", lora=True), 1e-3)], ids=str
)
def test_sound_hand_overs_in_16_bits_raise_no_alarm(kind: Kind, rate: float) -> None:
    case = played(kind, rate)
    case.policy.step(rate)
    stale = case.faulty(lambda each: each.versions[-2], case.policy.weights())
    assert stale is None or stale.faults


def test_weights_that_are_stale_by_the_smallest_step_are_caught() -> None:
    case = played(Kind(), rate=1e-8)
    case.policy.step(1e-8)
    found = case.faulty(lambda each: each.versions[-2], case.policy.weights())
    assert found is not None and "its log-probabilities are those of 1 hand-overs ago" in found.faults


def test_one_of_several_samplers_is_told_from_the_others() -> None:
    case = played(Kind())
    other = case.fork().side
    case.policy.step(RATE)
    case.versions.append(case.policy.weights())
    case.side.load(case.versions[-1])
    expected = case.prints.expect(case.policy.model.network)
    sides = {"sampler": case.side, "other": other}
    found = {
        name: case.prints.compare(name, expected, case.prints.read(side.generate, side.score))
        for name, side in sides.items()
    }
    assert found["sampler"].faults == () and found["other"].faults


def test_the_probe_covers_small_vocabularies_and_leaves_out_what_it_is_told_to() -> None:
    assert {token for each in probe_sequences(1280) for token in each} == set(range(1280))
    assert [len(each) for each in probe_sequences(151_936)] == [160] * 8
    assert probe_sequences(300, longest=64) == probe_sequences(300, longest=64)
    assert {len(each) for each in probe_sequences(300, longest=64)} == {62}
    assert not {token for each in probe_sequences(300, avoid=(7, 8)) for token in each} & {7, 8}


def test_readings_that_cannot_be_compared_are_faults() -> None:
    case = HandOvers(Kind())
    expected = case.prints.expect(case.policy.model.network)
    reading = case.prints.read(case.side.generate, case.side.score)
    unusable = [
        replace(reading, scores=reading.scores[1:]),
        replace(reading, scores=torch.full_like(reading.scores, math.nan)),
        replace(reading, completions=[Completion((10**6,), (-1.0,))] * 16),
        replace(reading, completions=[Completion((), ())] * 16),
    ]
    assert all(case.prints.compare("sampler", expected, each).faults for each in unusable)
    without = case.prints.read(case.side.generate, None)
    assert case.prints.compare("sampler", expected, without).faults == ()


def test_limits_follow_the_format() -> None:
    prints = Fingerprints([[1, 2]], 1.0, Limits.of("float32"))
    assert prints.limits.most.rms < Limits.of("float16").most.rms < Limits.of("bfloat16").most.rms
