"""Evaluations of environments that break anywhere: every fault is counted, and the other episodes are played."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from toy_envs import Counter

from turngym.__main__ import main
from turngym.agents.episodes.evaluate import distinct_instances
from turngym.benchmarks.evaluation.rulesets import ruleset_hash
from turngym.errors import TurngymError


class Cracked(Counter):
    """Breaks as its option says, at some seeds or turns."""

    def __init__(self, crack: str = "", **options: Any) -> None:
        if crack == "make":
            raise SystemExit(7)
        super().__init__(**options)
        self.crack = crack

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        if self.crack == "reset" or (self.crack == "some resets" and (seed or 0) % 2):
            raise ValueError("no world")
        return super().reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        result = super().step(action)
        is_odd = int(self.instance) % 2 == 1
        if self.crack == "exit" and is_odd:
            raise SystemExit(3)
        if self.crack == "nan" and is_odd:
            return result[0], float("nan"), *result[2:]
        if self.crack == "paid":
            if self.turn > 1:
                raise RuntimeError("after a reward")
            return result[0], 1.0, *result[2:]
        if self.crack == "raise":
            raise RuntimeError(f"at {id(self)}")
        return result


gymnasium.register(
    "toy/Cracked-v0",
    entry_point=Cracked,
    order_enforce=False,
    disable_env_checker=True,
    kwargs={"env_id": "toy/Cracked-v0"},
)


def run(crack: str, out: Path) -> int:
    words = ["eval", "toy/Cracked-v0", "--agent", "random", "--episodes", "12", "--option", f"crack={crack}"]
    return main([*words, "--out", str(out)])


@pytest.mark.parametrize("crack", ["exit", "nan", "some resets", "raise"])
def test_a_fault_is_counted_and_the_other_episodes_are_played(tmp_path: Path, crack: str) -> None:
    """Neither a silent end, nor an episode that was never played."""
    assert run(crack, tmp_path / "out") == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "episodes.jsonl").read_text().splitlines()]
    broken = [row for row in rows if row["status"] == "env_error"]
    assert len(rows) == 12 and 0 < len(broken) <= 12
    assert all(row["fault"].startswith("exception: ") and row["success"] == 0 for row in broken)
    assert (len(broken) == 12) == (crack == "raise")


def test_rewards_before_a_fault_do_not_count(tmp_path: Path) -> None:
    run("paid", tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "episodes.jsonl").read_text().splitlines()]
    broken = [row for row in rows if row["status"] == "env_error"]
    assert broken and all(row["length"] == 2 and row["returns"] == row["score"] == 0.0 for row in broken)


@pytest.mark.parametrize(("crack", "words"), [("make", "cannot be made: SystemExit: 7"), ("reset", "no world")])
def test_an_environment_that_never_works_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], crack: str, words: str
) -> None:
    assert run(crack, tmp_path / "out") == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith("error: ") and words in told


def test_a_seed_whose_reset_breaks_stays_in_the_benchmark() -> None:
    seeds = distinct_instances("toy/Cracked-v0", 10, {"crack": "some resets"}).values()
    assert any(seed % 2 for seed in seeds) and not all(seed % 2 for seed in seeds)
    with pytest.raises(TurngymError, match="cannot start an episode: exception: ValueError: no world"):
        distinct_instances("toy/Cracked-v0", 10, {"crack": "reset"})


def test_the_hash_of_rules_that_raise_is_always_the_same() -> None:
    hashes = {ruleset_hash("toy/Cracked-v0", {"crack": crack}) for crack in ("raise", "raise", "exit", "reset", "")}
    assert len(hashes) == 4
