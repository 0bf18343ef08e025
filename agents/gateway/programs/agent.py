"""Agent programs as an agent: they play environments of ours wherever an agent does."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from turngym.agents.agent_program import FIELDS, ProgramConfig
from turngym.agents.core import Agent, Decision, EagerAgent, Request
from turngym.agents.gateway.episode import GatewayEpisode
from turngym.agents.gateway.limits import GatewayLimits, GatewayRules
from turngym.agents.gateway.programs.launching import HostLauncher, Launcher
from turngym.agents.gateway.programs.process import Program
from turngym.agents.gateway.programs.sandbox import SandboxLauncher
from turngym.agents.gateway.programs.sandbox.mounts import found_program
from turngym.agents.gateway.server import serving
from turngym.agents.gateway.service import Gateway
from turngym.agents.gateway.world import World
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.sampler import Sampler
from turngym.agents.usage import Usage
from turngym.envs.tools.questions import read_tasks
from turngym.envs.tools.questions.env import TASK_COLUMN
from turngym.errors import ConfigError
from turngym.wrappers.actions.action_format import action_format

_LOOK_SECONDS = 0.05


@dataclass
class Play:
    """One episode of an agent program.

    Args:
        episode: Its calls.
        world: Its environment.
        program: The process.
        marks: For each action, how many answers there were before it.
        request: Current request.
        has_answered: Whether its end has been taken as an action.
        failed: Error before its episode had ended; empty if there was none.
        is_settled: Whether program and episode are over.
    """

    episode: GatewayEpisode
    world: World
    program: Program
    marks: list[int] = field(default_factory=list)
    request: Request | None = None
    has_answered: bool = False
    failed: str = ""
    is_settled: bool = False


class ProgramAgent(EagerAgent):
    """Starts a program for each episode and passes observations and actions on.

    A program that ends, or has no time left, before its episode has ended says nothing for the rest of it.

    Args:
        gateway: The model of the programs; it is being served.
        url: Path.
        config: Settings of programs.
        launcher: Launcher.
        read: Returns the action in the text of an answer, for programs whose last answer is their action.
    """

    def __init__(
        self,
        gateway: Gateway,
        url: str,
        config: ProgramConfig,
        launcher: Launcher,
        read: Callable[[str], str] | None = None,
    ) -> None:
        self.gateway = gateway
        self.url = url
        self.config = config
        self._launcher = launcher
        self._read = read or str.strip
        self._tasks = {task.id: task for task in read_tasks(config.task_file)} if config.task_file else {}
        self.played: dict[int, Play] = {}
        """Number of an episode -> what its program did; kept until :meth:`clear`."""
        self.on_settled: Callable[[int], None] = lambda number: None
        """Called with the number of each episode as soon as it and its program are over."""
        self._acted: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        self._running: dict[int, Play] = {}
        self._has_worked = False

    def begin(self, requests: Sequence[Request]) -> None:
        """Show what there is to see; a new episode gets its own program."""
        for request in requests:
            play = self._running.get(request.episode)
            if play is None:
                play = self._start(request)
                play.request = request
            else:
                play.request = request
                play.world.show(request.observation, legal_actions=request.info.get("legal_actions", ()))

    def _start(self, request: Request) -> Play:
        number = request.episode
        if number in self.played:  # of another environment
            self._drop(self.played[number])
        task_id = str(request.info.get("columns", {}).get(TASK_COLUMN, ""))
        task_of_file = self._tasks.get(task_id)
        episode = self.gateway.open(number=number)
        episode.rewards_itself = self.config.rewards_itself
        acted = partial(self._on_action, number)
        legal = request.info.get("legal_actions", ())
        world = World(request.instructions, request.observation, acted, legal)
        episode.world = world
        root = f"{self.url}/episode/{episode.id}"
        task = f"{request.instructions}\n\n{request.observation}".strip()
        place = self._launcher.place(task_of_file.files if task_of_file is not None else {}, self.url)
        values = {
            "base_url": f"{root}/v1",
            "root_url": root,
            "env_url": f"{root}/env",
            "mcp_url": f"{root}/mcp",
            "key": episode.key,
            "task": task,
            "task_id": task_id,
            "workdir": place.path,
            "seed": str(number),
            "model": self.gateway.name,
        }
        variables = {
            "OPENAI_BASE_URL": values["base_url"],
            "OPENAI_API_KEY": episode.key,
            "ANTHROPIC_BASE_URL": root,
            "ANTHROPIC_API_KEY": episode.key,
            "TURNGYM_ENV_URL": values["env_url"],
            "TURNGYM_MCP_URL": values["mcp_url"],
            "TURNGYM_WORKDIR": values["workdir"],
        }
        if episode.rewards_itself:
            variables["TURNGYM_REWARD_URL"] = f"{root}/reward"
        play = Play(episode, world, Program(self.config.words(values), variables, self.config.seconds, place))
        self._running[number] = self.played[number] = play
        return play

    def _on_action(self, number: int, action: str) -> None:
        self._acted.put((number, action))

    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        """Return the actions that programs have taken since, and empty ones for programs that have ended."""
        while True:
            self._settle_ended()
            found = self._actions()
            found += [(request, self._silent(play)) for play, request in self._ended()]
            if found or not wait or not any(play.request for play in self._running.values()):
                return found
            with contextlib.suppress(queue.Empty):
                number, action = self._acted.get(timeout=_LOOK_SECONDS)
                self._acted.put((number, action))

    def _settle_ended(self) -> None:
        """Close the episodes that are over and whose programs have ended, or had time enough to end by themselves."""
        for number, play in list(self.played.items()):
            is_over = number not in self._running and not play.is_settled
            if is_over and (play.program.status is not None or play.program.is_late):
                self._settle(number, play)

    def _settle(self, number: int, play: Play) -> None:
        play.program.end()
        if play.episode.status == "open":
            play.episode.status = "terminated"
        play.is_settled = True
        self.on_settled(number)

    def _actions(self) -> list[tuple[Request, Decision]]:
        found = []
        while not self._acted.empty():
            number, action = self._acted.get()
            play = self._running.get(number)
            if play is not None and play.request is not None:
                self._has_worked = True
                request, play.request = play.request, None
                found.append((request, self._decision(play, action)))
        return found

    def _decision(self, play: Play, action: str) -> Decision:
        """Return an action, with what the calls since the one before cost."""
        before = play.marks[-1] if play.marks else 0
        calls = play.episode.calls[before:]
        play.marks.append(before + len(calls))
        read = sum(len(call.prompt_ids) for call in calls)
        written = sum(len(call.completion_ids) for call in calls)
        seconds = sum(call.seconds for call in calls)
        said = calls[-1].message.text if calls else action
        return Decision(action, said, usage=Usage(read, written, calls=len(calls), latency=seconds))

    def _ended(self) -> Iterator[tuple[Play, Request]]:
        """Yield the episodes that wait for a program which has ended, or must end now."""
        for play in list(self._running.values()):
            has_ended = play.program.is_late or play.program.status is not None
            if play.request is not None and has_ended and self._acted.empty():
                request, play.request = play.request, None
                yield play, request

    def _silent(self, play: Play) -> Decision:
        """Return the answer of a program that gives none.

        Raises:
            ConfigError: It failed before it did anything, as every program so far.
        """
        status, tail = play.program.status, play.program.tail()
        if status is None:
            play.program.end()
        play.episode.detail = "the agent program was out of time" if status is None else f"it ended with {status}"
        last = tail.splitlines()[-1][:500] if tail else "it printed nothing"
        if status != 0 and not play.failed:
            play.failed = play.episode.detail if status is None else f"{play.episode.detail}: {last}"
        if status and not play.marks and (not play.episode.calls or play.episode.status == "fault"):
            if not self._has_worked:
                when = "" if play.episode.calls else " before it did anything"
                raise ConfigError(f"the agent program ended with status {status}{when}: {last}")
            return Decision("", fault=f"the agent program ended with status {status}: {last}")
        if self.config.package:  # the package is not an agent: that it gives no score says nothing about the model
            how = "was out of time" if status is None else f"ended with status {status}"
            return Decision("", fault=f"the package gave no score, its process {how}: {last}")
        if status == 0 and self.config.answer != "post" and not play.has_answered:
            play.has_answered = self._has_worked = True
            return self._decision(play, self._answer(play))
        return replace(self._decision(play, ""), columns={"agent_program": play.episode.detail})

    def _answer(self, play: Play) -> str:
        """Return the answer of a program that has ended by itself."""
        if self.config.answer == "stdout":
            return play.program.output()
        said = [call.message.text for call in play.episode.calls if call.delivered]
        return self._read(said[-1]) if said else ""

    def forget(self, episode: int) -> None:
        """Tell a program that its episode has ended; it gets a moment to end by itself."""
        play = self._running.pop(episode, None)
        if play is not None:
            play.world.show("", is_done=True)
            play.program.shorten()

    def abandon(self) -> None:
        """End all programs."""
        for play in [*self.played.values()]:
            play.world.show("", is_done=True)
            play.program.end()
        self._running = {}

    def settle(self) -> None:
        """Wait until the programs of all episodes have ended by themselves or were ended, and close the episodes."""
        while any(not play.is_settled for play in self.played.values()):
            self._settle_ended()
            time.sleep(_LOOK_SECONDS)

    def clear(self) -> None:
        """Forget all episodes."""
        for play in self.played.values():
            self._drop(play)
        self.played = {}

    def _drop(self, play: Play) -> None:
        play.program.end()
        self.gateway.episodes.remove(play.episode)

    def details(self) -> dict[str, Any]:
        """Return the command, or the package whose tasks are played."""
        return {"agent_command": self.config.command or self.config.package}


@contextlib.contextmanager
def playing(
    gateway: Gateway, config: ProgramConfig, read: Callable[[str], str] | None = None
) -> Iterator[ProgramAgent]:
    """Serve a gateway and yield the agent whose programs use it; in the end all programs are ended.

    Args:
        gateway: The model of the programs.
        config: Settings of the programs.
        read: Returns the action in the text of an answer, for programs whose last answer is their action.

    Raises:
        ConfigError: There is no command.
    """
    if not config.is_used:
        raise ConfigError("agent programs need a command: pass --agent-command or agent.command.")
    with _launcher(config) as launcher, serving(gateway, path=launcher.socket) as url:
        agent = ProgramAgent(gateway, url, config, launcher, read)
        try:
            yield agent
        finally:
            agent.abandon()
            agent.clear()


def require_startable(config: ProgramConfig) -> None:
    """Raise if programs cannot be started, before anything is played.

    Raises:
        ConfigError: There is no such program.
        MissingExtra: The sandbox is missing.
    """
    found_program(config.words(dict.fromkeys(FIELDS, "-"))[0])
    _launcher(config).close()


def _launcher(config: ProgramConfig) -> Launcher:
    return SandboxLauncher(config) if config.sandbox == "bubblewrap" else HostLauncher(config.memory_mib)


def programs_of(agent: Agent, config: ProgramConfig) -> AbstractContextManager[ProgramAgent]:
    """Return programs that ask an agent's model, with its sampling, chat template and seed.

    Args:
        agent: The agent; it plays nothing itself.
        config: Settings of programs.

    Raises:
        ConfigError: It has no language model in this process.
    """
    if not isinstance(agent, ModelAgent):
        raise ConfigError(
            "an agent program asks a language model in this process: pass --agent hf:PATH_OR_NAME or vllm:PATH_OR_NAME."
        )
    generate = agent.generate
    if isinstance(generate, Sampler):
        generate = generate.appending()  # requests of agents append to one another
    gateway = Gateway(
        agent.model,
        generate,
        context=agent.context,
        limits=GatewayLimits(max_new_tokens=agent.sampling.max_new_tokens),
        rules=GatewayRules(temperature=agent.sampling.temperature, top_p=agent.sampling.top_p),
        prompt=agent.prompt,
        seed=agent.seed,
    )
    gateway.iteration = agent.iteration
    written = action_format(agent.format)
    return playing(gateway, config, lambda said: written.read(said, agent.thinking) or said.strip())
