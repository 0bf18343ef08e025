"""verifiers (0.4, its v1 interface): a taskset, an environment and a harness that play turngym's environments.

verifiers finds plug-ins by the name of an installed module, so make one of a single line, as verifiers.md says::

    from turngym.trainers.integrations.verifiers import *
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.runtimes import ProgramResult, SubprocessConfig

from turngym.arithmetic import float_sum
from turngym.errors import TurngymError
from turngym.trainers.integrations.episode import Episode, Result, Task
from turngym.wrappers.actions.action_format import AUTO

__all__ = ["TurngymEnv", "TurngymHarness", "TurngymTaskset"]


class TurngymData(vf.TaskData):  # type: ignore[misc]  # the package is not there when types are checked
    """Definition of an episode; the columns of :class:`turngym.trainers.integrations.episode.Task`."""

    env_id: str
    seed: int
    settings: dict[str, Any] = Field(default_factory=dict)
    wrappers: list[str] = Field(default_factory=list)


class TurngymTask(vf.Task[TurngymData, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    """One episode; the rewards are the environment's own, so there is nothing to score afterwards."""


class TurngymTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Options of the taskset, on the command line ``--env.taskset.NAME``."""

    env_id: str = "turngym/GuessTheNumber-v0"
    """A registered id."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Options of the environment, such as ``{"split": "test"}``."""
    wrappers: list[str] = Field(default_factory=list)
    """Specifications such as ``"history:k=4"``, the first innermost."""
    first_seed: int = 0
    """Seed of the first task; the following ones count up."""


class TurngymTaskset(vf.Taskset[TurngymTask, TurngymTasksetConfig]):  # type: ignore[misc]
    """One task for each seed, without end: ``-n`` or ``take`` says how many."""

    INFINITE = True

    def load(self) -> Iterator[TurngymTask]:
        """Yield the tasks."""
        config = self.config
        for seed in itertools.count(config.first_seed):
            data = TurngymData(
                name=f"{config.env_id} seed {seed}",
                env_id=config.env_id,
                seed=seed,
                settings=config.settings,
                wrappers=config.wrappers,
            )
            yield TurngymTask(data, config.task)


class TurngymEnvConfig(vf.EnvConfig):  # type: ignore[misc]
    """Options of the environment, on the command line ``--env.NAME``."""

    player: vf.AgentConfig = vf.AgentConfig(runtime=SubprocessConfig())
    """Agent; always local, since an episode is only a conversation."""
    format: str = AUTO
    """Name of the action format of the completions: tag, boxed, json or plain."""
    legal_actions: bool = False
    """List the legal actions with each observation."""


class TurngymEnv(vf.Env[TurngymEnvConfig]):  # type: ignore[misc]
    """Plays one episode as the user of a conversation.

    The trace's reward is the undiscounted return. ``trace.info["turngym"]`` holds the reward of each turn, and
    whether the episode was terminated or truncated; metrics hold its numbers. A broken environment is an error of
    verifiers' episode, never a reward.
    """

    async def run(self, task: TurngymTask, agents: vf.Agents) -> None:
        """Play the episode of a task.

        Raises:
            TurngymError: The environment broke.
        """
        data = task.data
        episode = Episode(self.config.format, self.config.legal_actions)
        before = [] if data.system_prompt is None else [{"role": "system", "content": data.system_prompt}]
        start = Task(data.env_id, data.seed, data.settings, {}, tuple(data.wrappers))
        try:
            rules, *_, first = await asyncio.to_thread(episode.begin, start, before)
            seat = task.with_system_prompt(rules["content"])
            async with agents.player.interaction(seat) as interaction:
                await _converse(episode, interaction, first["content"])
            if episode.result.fault:
                raise TurngymError(f"{data.env_id} broke in the episode of seed {data.seed}: {episode.result.fault}")
            _record(interaction.trace, episode.result)
        finally:
            await asyncio.to_thread(episode.close)


async def _converse(episode: Episode, interaction: Any, observation: str) -> None:
    """Take turns until the episode or the agent's run has ended."""
    while not episode.is_over:
        segment = await interaction.turn(observation)
        if segment.terminated:
            episode.cut()
            return
        observation = await asyncio.to_thread(episode.step, segment.last_reply)


def _record(trace: vf.Trace, result: Result) -> None:
    if trace.ok:
        trace.record_reward("episode_return", float_sum(result.rewards))
    trace.record_metrics({name: value for name, value in result.numbers().items() if name != "episode_return"})
    trace.info["turngym"] = {
        "turn_rewards": list(result.rewards),
        "terminated": result.terminated,
        "truncated": result.truncated,
    }


class TurngymHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]
    """Options of the harness."""


class TurngymHarness(vf.Harness[TurngymHarnessConfig]):  # type: ignore[misc]
    """A conversation in this process: no program is installed or started for an episode.

    Every completion comes from verifiers' own endpoint, so its traces contain the same requests as those of a program.
    """

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: vf.Trace,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> ProgramResult:
        """Ask for one completion."""
        system, prompt = self.resolve_prompt(data)
        messages = [] if system is None else [{"role": "system", "content": system}]
        said = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt or []
        messages += [message if isinstance(message, dict) else message_to_wire(message) for message in said]
        try:
            is_open = endpoint.startswith("http://")  # the loopback: skip loading certificates
            async with httpx.AsyncClient(timeout=None, trust_env=False, verify=not is_open) as client:
                answer = await client.post(
                    f"{endpoint.rstrip('/')}/chat/completions",
                    headers={"Authorization": f"Bearer {secret}"},
                    json={"model": ctx.model, "messages": messages},
                )
        except httpx.HTTPError as error:
            return ProgramResult(1, "", f"{type(error).__name__}: {error}")
        if answer.status_code >= 400:
            return ProgramResult(1, "", f"status {answer.status_code}: {answer.text[:1000]}")
        return ProgramResult(0, "", "")
