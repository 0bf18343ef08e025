"""Episodes of turngym played by verifiers' own runner, with a real server of chat completions."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from chat_servers import Body, Reply, chat_server

from turngym.envs.registration import register_all

pytestmark = pytest.mark.integration
pytest.importorskip("verifiers", reason="the package verifiers is not in .venvs/verifiers: run make test-integration")

import verifiers.v1 as vf  # noqa: E402
from verifiers.v1.clients import EvalClientConfig, ModelContext  # noqa: E402
from verifiers.v1.utils.loaders import load_environment, resolve_env_config  # noqa: E402

EXAMPLES = Path(__file__).parents[3] / "trainers" / "integrations" / "examples"
GUESS = re.compile(r"<action>(\d+)</action>")


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let verifiers find the example as a package, and an environment that breaks."""
    register_all()
    monkeypatch.syspath_prepend(str(EXAMPLES))
    if "Served-v0" not in gymnasium.registry:
        gymnasium.register("Served-v0", entry_point="served_envs:Served", disable_env_checker=True, order_enforce=False)


def bisect(body: Body) -> Reply:
    """Guess the middle of what the conversation has left."""
    low, high, guess = 1, 100, 0
    for message in body["messages"]:
        if message["role"] == "assistant":
            found = GUESS.search(message["content"])
            assert found is not None
            guess = int(found[1])
        elif message["content"] == "higher":
            low = guess + 1
        elif message["content"] == "lower":
            high = guess - 1
    return Reply(f"It is in the middle. <action>{(low + high) // 2}</action>")


def episodes(answer: Callable[[Body], Reply], tasks: int = 1, **env: Any) -> list[Any]:
    """Play the first tasks with verifiers' runner in this process."""
    taskset = {"id": "verifiers_game", **env.pop("taskset", {})}

    async def play(url: str) -> list[Any]:
        loaded = load_environment(resolve_env_config({"taskset": taskset, **env}))
        context = ModelContext(model="m", client=EvalClientConfig(base_url=url, api_key_var="TURNGYM_KEY"))
        async with loaded.serving():
            slots = [slot for task in loaded.taskset.take(tasks) for slot in loaded.slots(task)]
            return list(await asyncio.gather(*[loaded.run_slot(slot, context) for slot in slots]))

    with chat_server(answer) as server:
        return asyncio.run(play(server.url))


def test_the_runner_of_the_package_evaluates_and_its_traces_hold_the_reward_of_each_turn(tmp_path: Path) -> None:
    example = EXAMPLES / "verifiers_game.py"
    assert len(example.read_text("utf8").splitlines()) < 60
    with chat_server(bisect) as server:
        words = ["--model", "m", "--client.base-url", server.url, "-n", "3", "-o", str(tmp_path), "--run.name", "mine"]
        words += ["--env.taskset.first-seed", "40"]
        found = subprocess.run(
            [sys.executable, str(example), *words], capture_output=True, text=True, check=False, env=dict(os.environ)
        )
    assert found.returncode == 0, found.stderr
    lines = (tmp_path / "mine" / "traces.jsonl").read_text("utf8").splitlines()
    traces = [trace for line in lines for trace in json.loads(line).get("traces", [json.loads(line)])]
    assert sorted(trace["task"]["data"]["seed"] for trace in traces) == [40, 41, 42]
    for trace in traces:
        assert trace["ok"] and not trace["errors"]
        replies = [node["message"]["content"] for node in trace["nodes"] if node["sampled"]]
        rewards = trace["info"]["turngym"]["turn_rewards"]
        env = gymnasium.make("turngym/GuessTheNumber-v0")
        first, _ = env.reset(seed=trace["task"]["data"]["seed"])
        system, user = (node["message"]["content"] for node in trace["nodes"][:2])
        assert env.get_wrapper_attr("instructions") in system and first in user
        played = [env.step(GUESS.findall(reply)[0]) for reply in replies]
        assert [step[1] for step in played] == rewards and played[-1][2]
        assert trace["rewards"]["episode_return"]["score"] == sum(rewards) == 1.0
        assert trace["metrics"]["success"] == 1.0 and trace["metrics"]["turns"] == len(replies)
        assert trace["info"]["turngym"]["terminated"] and not trace["info"]["turngym"]["truncated"]


def test_a_turn_limit_of_the_agent_truncates_the_episode_and_its_return_counts() -> None:
    (episode,) = episodes(bisect, player={"max_turns": 2}, taskset={"settings": {"step_reward": -1.0}})
    (trace,) = episode.traces
    assert episode.ok and trace.stop_condition == "max_turns"
    assert trace.info["turngym"] == {"turn_rewards": [-1.0, -1.0], "terminated": False, "truncated": True}
    assert trace.reward == -2.0 and trace.metrics["success"] == 0.0


def test_a_server_that_fails_leaves_an_error_and_no_reward() -> None:
    (episode,) = episodes(lambda _: Reply(status=400, raw=b'{"error": "no"}'))
    assert not episode.ok
    assert all(trace.errors and "episode_return" not in trace.rewards for trace in episode.traces)


def test_an_environment_that_breaks_is_an_error_of_the_episode_and_never_a_reward() -> None:
    (episode,) = episodes(lambda _: Reply("<action>break</action>"), taskset={"env_id": "Served-v0"})
    assert not episode.ok and "broke in the episode of seed 0" in episode.errors[0].message
    assert "ValueError: broken" in episode.errors[0].message
    assert all("episode_return" not in trace.rewards for trace in episode.traces)


def test_many_episodes_at_once_are_kept_apart_and_equal_tasks_begin_equally() -> None:
    found = episodes(bisect, tasks=6)
    assert all(episode.ok for episode in found)
    turns = [episode.traces[0].metrics["turns"] for episode in found]
    again = [episode.traces[0].metrics["turns"] for episode in episodes(bisect, tasks=6)]
    assert turns == again and len(set(turns)) > 1
    assert len({episode.task.key for episode in found}) == 6


def test_options_of_environment_format_and_wrappers_are_passed_on() -> None:
    seen: list[Body] = []

    def answer(body: Body) -> Reply:
        seen.append(body)
        return Reply("\\boxed{1}")

    taskset = {"env_id": "turngym/Sokoban-v0", "settings": {"max_turns": 2}, "wrappers": ["history:k=1"]}
    (episode,) = episodes(answer, format="boxed", legal_actions=True, taskset=taskset)
    assert episode.ok and len(seen) == 2
    system, user = seen[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user") and "\\boxed" in system["content"]
    assert "left" in user["content"] and seen[1]["messages"][2]["content"] == "\\boxed{1}"
    assert issubclass(type(episode.traces[0]), vf.Trace)
