"""Training agent programs of any kind on an environment of ours, through a gateway."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turngym.agents.core import Agent
from turngym.agents.episodes.evaluate import EvaluationResult, open_vector, summarise
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.multiagent.registration import is_game
from turngym.envs.vector import TextVectorEnv
from turngym.errors import ConfigError
from turngym.trainers.core.algorithm import Need
from turngym.trainers.engine.ranks import SINGLE, Ranks
from turngym.trainers.integrations.gateway.programs import (
    ProgramAgent,
    VerifierJudge,
    programs_of,
    require_startable,
    with_tokens,
)
from turngym.trainers.loop.task import EVALUATION_SLOTS, EnvTask
from turngym.trainers.settings.config import TrainConfig

_SHOWN = ("share/kept", "share/appended", "share/reencoded", "calls/forked", "tokens/abandoned", "programs/failed")


class AgentTask(EnvTask):
    """An environment with one agent that agent programs play: turns are their calls of the model.

    Args:
        config: Settings of the run; ``agent`` says how programs are started.
        needs: Needs of the method.
        ranks: The ranks that play the episodes of an iteration together.

    Raises:
        ConfigError: A setting does not go together with agent programs.
    """

    def __init__(self, config: TrainConfig, needs: frozenset[Need] = frozenset(), ranks: Ranks = SINGLE) -> None:
        _require_sound(config, needs)
        super().__init__(config, ranks=ranks)
        self._report: dict[str, float] = {}

    def play(
        self, agent: Agent, specs: Sequence[EpisodeSpec], on_episode: Callable[[Trajectory], None] | None = None
    ) -> list[Trajectory]:
        """Play episodes for training with a program for each.

        Args:
            agent: The model of the programs, and how it samples.
            specs: The episodes.
            on_episode: Called with each when all have ended.
        """
        assert isinstance(agent, ModelAgent)
        with programs_of(agent, self.config.agent) as programs:
            played = self._played(self.vector, programs, specs, agent)
        if on_episode is not None:
            for trajectory in played:
                on_episode(trajectory)
        return played

    def _evaluate(self, agent: ModelAgent, split: str, seeds: list[int]) -> tuple[EvaluationResult, list[Trajectory]]:
        specs = [EpisodeSpec(number, seed, number) for number, seed in enumerate(seeds)]
        settings = self.config.rollout
        slots = min(settings.num_envs or min(EVALUATION_SLOTS, settings.groups * settings.group_size), len(specs))
        options = self._options(split)
        with (
            open_vector(self.config.env, options, max(slots, 1), settings.backend, self.config.wrappers) as vector,
            programs_of(agent, self.config.agent) as programs,
        ):
            trajectories = self._played(vector, programs, specs, agent)
        return summarise(self.config.env, trajectories), trajectories

    def _played(
        self, vector: TextVectorEnv, programs: ProgramAgent, specs: Sequence[EpisodeSpec], agent: ModelAgent
    ) -> list[Trajectory]:
        """Play episodes, and return them with the calls of their programs as turns."""
        played = rollout(vector, programs, specs, schedule=self.config.rollout.order, final_prompts=False)
        programs.settle()
        failed = sum(bool(play.failed) for play in programs.played.values())
        self._report = {**programs.gateway.report(), "programs/failed": failed / max(len(programs.played), 1)}
        found = [with_tokens(each, programs.played[each.spec.episode]) for each in played]
        if not self.config.agent.verifier:
            return found
        judge = VerifierJudge(self.config.agent.verifier, self.config.agent_settings(), agent)
        return [judge.judged(each) for each in found]

    def metrics(self) -> dict[str, float]:
        """Return what became of the tokens of the latest episodes."""
        shown = {f"rollout/gateway_{name.replace('/', '_')}": self._report.get(name, 0.0) for name in _SHOWN}
        return {**super().metrics(), **shown}


def _require_sound(config: TrainConfig, needs: frozenset[Need]) -> None:
    """Raise for settings that do not go together with agent programs.

    Raises:
        ConfigError: There is one.
    """
    if is_game(config.env):
        raise ConfigError(f"agent programs play environments with one agent, and {config.env} is a game between seats.")
    if config.rollout.ray.workers or config.rollout.is_journaled:
        raise ConfigError(
            "agent programs are started in the learner's process: leave out --rollout.ray.workers, --rollout.journal "
            "and --rollout.schedule async."
        )
    require_startable(config.agent)
    if needs & {Need.SNAPSHOTS, Need.SAMPLED_ENTROPIES}:
        raise ConfigError(
            f"{config.algorithm} needs snapshots or entropies, which agent programs do not have: take a method "
            "without, such as ppo, grpo or gigpo."
        )
