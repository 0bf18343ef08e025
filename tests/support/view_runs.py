"""Folders and files for the tests of the viewer, made by what makes them in earnest."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from turngym.agents.players import make_agent
from turngym.benchmarks.evaluation.plan import Plan
from turngym.benchmarks.evaluation.run import EvaluationRun
from turngym.benchmarks.suites import Suite, SuiteEntry
from turngym.benchmarks.tournaments.plan import TournamentPlan as Tournament
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.wrappers import wrap

HOSTILE = (
    "</script><script>document.title='run'</script>"
    "<img src=x onerror=\"document.title='run'\"><b>bold</b> &amp; "
    "\u202egnp.exe\u202c \x00 \x1b[31m \ud800 'quote' \"double\" `tick` ${1+1} <!-- \u2028"
)


def evaluation(path: Path, agent: str = "random", env_id: str = "turngym/GuessTheNumber-v0", **options: Any) -> Path:
    """Evaluate an agent on three tasks, each of them twice."""
    entry = SuiteEntry(env_id, options or {"low": 1, "high": 8, "max_turns": 4})
    plan = Plan(Suite("view", 1, "Guessing.", (entry,)), ((11, 12, 13),), repeats=2)
    EvaluationRun(plan, make_agent(agent), agent, out=path).run()
    return path


def tournament(path: Path) -> Path:
    """Play a few games of Werewolf."""
    play_tournament(Tournament("turngym/WerewolfSmall-v0", {"random": "random", "rules": "rule_based"}, 1), folder=path)
    return path


def recording(path: Path, env_id: str = "turngym/TowerOfHanoi-v0", **options: Any) -> Path:
    """Record two episodes, one of them without a seed, and the beginning of a third one."""
    env = wrap(gymnasium.make(env_id, **options), "record", folder=str(path))
    generator = np.random.default_rng(0)
    for seed in (3, None, 5):
        _, info = env.reset(seed=seed)
        for _ in range(2 if seed == 5 else 100):
            action = info["legal_actions"][generator.integers(len(info["legal_actions"]))]
            _, _, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                break
    env.close()
    return path


def hostile_record(seed: int = 7, **fields: Any) -> dict[str, Any]:
    """Return a transcript in which every text tries to get out."""
    turn = {
        "observation": HOSTILE,
        "prompt": HOSTILE,
        "completion": HOSTILE,
        "action": HOSTILE + " done",
        "reward": float("nan"),
        "action_is_valid": False,
        "tokens": [HOSTILE, "up"],
        "logprobs": [-0.5, "x"],
        "advantages": [1.0, float("inf")],
        "image": "javascript:alert(1)",
        HOSTILE: {"deep": [HOSTILE]},
    }
    plain = {"label": HOSTILE, "env": HOSTILE, "seed": seed, "success": 0, "score": 1e400, "fault": HOSTILE}
    return {
        **plain,
        "turns": [turn, "no turn", turn],
        "final_observation": {"text": HOSTILE, "image": HOSTILE},
        **fields,
    }


def written(path: Path, *lines: Any, end: str = "\n") -> Path:
    """Write a file of lines; a line that is text is written as it is."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(("\n".join(texts) + end).encode("utf8", "backslashreplace"))
    return path
