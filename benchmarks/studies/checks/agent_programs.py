"""Programs of other frameworks behind the gateway: ``python benchmarks/studies/checks/agent_programs.py [NAME ...]``.

Each program of ``program_experts.py``, unchanged, is played with the environment's solver behind its model, which shows
how the framework writes its history down. A tiny model learns its calls from these episodes, is trained for some
iterations, and is evaluated on a suite, all through the gateway. The counts of the gateway go into
``benchmarks/results/agent_programs.json``. The interpreter must have the packages: ``.venvs/agents/bin/python`` after
``make integration-agents``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.__main__ import main as turngym
from turngym.agents.models.embedded import EmbeddedConfig, build_model, build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.studies.checks.program_experts import PROGRAMS, AgentProgram, expert_episodes
from turngym.benchmarks.studies.harness import RESULTS, arguments, write_result
from turngym.trainers.loop.sft import SupervisedLearner
from turngym.trainers.settings.supervised import SupervisedConfig

RESULT = RESULTS / "agent_programs.json"
PACKAGES = ("mini-swe-agent", "smolagents", "openai-agents", "openai", "litellm")
DEMONSTRATIONS, EPOCHS = 5, 25
ITERATIONS, GROUP = 2, 2
_VOCABULARY = 1024
_NEW_TOKENS = 96
_SHARES = ("share_kept", "share_appended", "share_reencoded")


def tiny_model(texts: Sequence[str], vocabulary: int = _VOCABULARY) -> LanguageModel:
    """Return a random model whose tokenizer knows some texts."""
    tokenizer = build_tokenizer(texts, vocabulary)
    settings = EmbeddedConfig(hidden_size=48, layers=2, heads=4, vocabulary=vocabulary, context=16_384)
    return LanguageModel(build_model(tokenizer, settings, 0), tokenizer, "tiny")


def counted(episodes: Sequence[Trajectory], report: dict[str, float]) -> dict[str, Any]:
    """Return what became of the tokens of some episodes."""
    turns = [turn for episode in episodes for turn in episode.turns]
    links = Counter(str(turn.columns["link"]) for turn in turns)
    tools = Counter(str(turn.columns.get("tools", "none")) for turn in turns)
    return {
        "episodes": len(episodes),
        "solved": sum(episode.success == 1 for episode in episodes),
        "calls": len(turns),
        **{link: links[link] for link in ("root", "extended", "forked")},
        "tools": dict(tools),
        **{name.replace("tokens/", ""): value for name, value in report.items() if name.startswith("tokens/")},
    }


def _warmed_up(program: AgentProgram, folder: Path) -> dict[str, Any]:
    """Write a model that has learned the calls of a program, and return the counts of its demonstrations."""
    rough = tiny_model(["a"] * 9, 300)
    first, _ = expert_episodes(rough, program, sys.executable, range(1))
    shown = [[*turn.prompt_ids, *turn.completion_ids] for episode in first for turn in episode.turns]
    model = tiny_model([str(rough.tokenizer.decode(ids)) for ids in shown])
    played, report = expert_episodes(model, program, sys.executable, range(100, 100 + DEMONSTRATIONS))
    learner = SupervisedLearner(model.network, played, SupervisedConfig(learning_rate=4e-3, batch_size=8), 0)
    losses = [learner.run_epoch() for _ in range(EPOCHS)]
    model.save(folder)
    return {**counted(played, report), "loss": [round(losses[0], 3), round(losses[-1], 3)]}


def trained(program: AgentProgram, model: Path, folder: Path) -> list[dict[str, float]]:
    """Train a model for some iterations, and return what the run recorded."""
    words = ["train", "--env", program.env, "--model", str(model), "--preset", "quickstart"]
    words += ["--agent.command", program.command(sys.executable), "--iterations", str(ITERATIONS), "--no-control"]
    words += ["--max-seconds", "0", "--rollout.groups", "1", "--rollout.group-size", str(GROUP)]
    words += ["--rollout.max-new-tokens", str(_NEW_TOKENS), "--warmup.demonstrations", "0"]
    words += ["--evaluation.every", "0", "--evaluation.episodes", "0", "--run-dir", str(folder)]
    if turngym(words):
        raise SystemExit(f"training {program.script} failed")
    kept = ("rollout/success", "rollout/turns", "rollout/tokens", "rollout/faults", "train/rows", "train/logprob_gap")
    names = [*kept, "train/grad_norm", "rollout/gateway_calls_forked"]
    names += [f"rollout/gateway_{share}" for share in _SHARES]
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf8").splitlines()]
    return [{name: record[name] for name in names if name in record} for record in records]


def evaluated(program: AgentProgram, model: Path, folder: Path) -> dict[str, Any]:
    """Play one episode of each environment of a suite, and return what was used."""
    words = ["eval", program.suite, "--agent", f"hf:{model}", "--agent-command", program.command(sys.executable)]
    words += ["--episodes", "1", "--max-new-tokens", str(_NEW_TOKENS), "--out", str(folder)]
    if turngym(words):
        raise SystemExit(f"evaluating {program.script} failed")
    episodes = [json.loads(line) for line in (folder / "episodes.jsonl").read_text("utf8").splitlines()]
    calls = sum(each["seats"]["player_0"]["calls"] for each in episodes)
    faults = sum(bool(each["fault"]) for each in episodes)
    solved = sum(each["success"] == 1 for each in episodes)
    return {"suite": program.suite, "episodes": len(episodes), "calls": calls, "faults": faults, "solved": solved}


def study(name: str) -> None:
    """Play, train and evaluate a program, and add what is known after each step to the results."""
    program = PROGRAMS[name]
    found: dict[str, Any] = {"env": program.env, "script": program.script, "words": program.words}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        found["demonstrations"] = _warmed_up(program, folder / "warm")
        _keep(name, found)
        found["training"] = trained(program, folder / "warm", folder / "run")
        _keep(name, found)
        found["evaluation"] = evaluated(program, folder / "run" / "model", folder / "eval")
        _keep(name, found)


def _keep(name: str, found: Mapping[str, Any]) -> None:
    kept = json.loads(RESULT.read_text("utf8")) if RESULT.exists() else {"programs": {}}
    programs = {**kept["programs"], name: found}
    write_result(RESULT, {"programs": programs}, *PACKAGES)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *PROGRAMS], help="programs; all unless given")
    for program_name in parser.parse_args().names or PROGRAMS:
        study(program_name)
