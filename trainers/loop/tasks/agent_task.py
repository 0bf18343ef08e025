"""Training of agent programs on an environment, through a gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from turngym.agents.core import Agent
from turngym.agents.episodes.evaluate import open_vector
from turngym.agents.episodes.rollout import rollout
from turngym.agents.gateway.calls import TokenCounts
from turngym.agents.gateway.programs import (
    ProgramAgent,
    VerifierJudge,
    programs_of,
    require_startable,
    with_tokens,
)
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.multiagent.registration import is_game
from turngym.envs.vector import TextVectorEnv
from turngym.errors import ConfigError
from turngym.trainers.core.algorithm import Need
from turngym.trainers.engine.ranks import SINGLE, Ranks
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.tasks.agent_journal import EpisodeJournal, EpisodeKey, PlayedEpisode
from turngym.trainers.loop.tasks.task import EVALUATION_SLOTS, EnvTask
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

_SHOWN = ("share/kept", "share/appended", "share/reencoded", "calls/forked", "tokens/abandoned", "programs/failed")


class AgentTask(EnvTask):
    """Single-agent environment played by agent programs, whose model calls are the turns.

    Args:
        config: Settings of the run; ``agent`` configures the programs.
        needs: Needs of the method.
        ranks: The ranks that play the episodes of an iteration together.

    Raises:
        ConfigError: A setting is incompatible with agent programs.
    """

    def __init__(self, config: TrainConfig, needs: frozenset[Need] = frozenset(), ranks: Ranks = SINGLE) -> None:
        _require_sound(config, needs)
        super().__init__(config, ranks=ranks)
        self._report: dict[str, float] = {}
        self._journal: EpisodeJournal | None = None

    def play(
        self, agent: Agent, specs: Sequence[EpisodeSpec], on_episode: Callable[[Trajectory], None] | None = None
    ) -> list[Trajectory]:
        """Play training episodes, with one program per episode.

        Args:
            agent: Agent with the model and the sampling settings.
            specs: The episodes.
            on_episode: Called with each episode when all have ended.
        """
        assert isinstance(agent, ModelAgent)
        keys = {spec.episode: EpisodeKey(agent.iteration, agent.sampling.temperature, spec.episode) for spec in specs}
        found: dict[int, PlayedEpisode] = {}

        def keep(played: PlayedEpisode) -> None:
            number = played.trajectory.spec.episode
            found[number] = played
            if self._journal is not None:
                self._journal.add(keys[number], played)

        for number, key in keys.items():
            before = self._journal.find(key) if self._journal is not None else None
            if before is not None:
                found[number] = before
        left = [spec for spec in specs if spec.episode not in found]
        if left:
            with programs_of(agent, self.config.agent) as programs:
                self._play(self.vector, programs, left, agent, keep)
        self._count(found.values())
        played = [found[spec.episode].trajectory for spec in specs]
        if on_episode is not None:
            for trajectory in played:
                on_episode(trajectory)
        return played

    def _play_held_out(self, agent: ModelAgent, split: str, specs: Sequence[EpisodeSpec]) -> list[Trajectory]:
        settings = self.config.rollout
        slots = min(settings.num_envs or min(EVALUATION_SLOTS, settings.groups * settings.group_size), len(specs))
        options = self._options(split)
        with (
            open_vector(self.config.env, options, slots, settings.backend, self.config.wrappers) as vector,
            programs_of(agent, self.config.agent) as programs,
        ):
            found = dict[int, PlayedEpisode]()
            self._play(vector, programs, specs, agent, lambda each: found.update({each.trajectory.spec.episode: each}))
        self._count(found.values())
        return [found[spec.episode].trajectory for spec in specs]

    def _play(
        self,
        vector: TextVectorEnv,
        programs: ProgramAgent,
        specs: Sequence[EpisodeSpec],
        agent: ModelAgent,
        on_played: Callable[[PlayedEpisode], None],
    ) -> None:
        """Play episodes, and pass on each as soon as it ends, with its program's calls as turns."""
        verifier = self.config.agent.verifier
        judge = VerifierJudge(verifier, self.config.agent_settings(), agent) if verifier else None
        ended: dict[int, Trajectory] = {}

        def settled(number: int) -> None:
            play = programs.played[number]
            found = with_tokens(ended.pop(number), play)
            counts = TokenCounts()
            for call in play.episode.calls:
                counts.add(call)
            found = found if judge is None else judge.judged(found)
            on_played(PlayedEpisode(found, asdict(counts), bool(play.failed)))

        programs.on_settled = settled
        rollout(
            vector,
            programs,
            specs,
            schedule="continuous",  # no program waits for another
            on_episode=lambda each: ended.update({each.spec.episode: each}),
            final_prompts=False,
        )
        programs.settle()
        for trajectory in ended.values():  # faulted before its program started
            on_played(PlayedEpisode(trajectory, asdict(TokenCounts())))

    def _count(self, played: Iterable[PlayedEpisode]) -> None:
        """Add the token accounting of episodes."""
        counts, failed = TokenCounts(), []
        for each in played:
            counts.merge(TokenCounts(**each.counts))
            failed.append(each.has_failed)
        self._report = {**counts.report(), "programs/failed": sum(failed) / max(len(failed), 1)}

    @contextmanager
    def playing(self, folder: RunFolder, model: LanguageModel, iteration: int) -> Iterator[None]:
        """Context with a journal in the run folder from an iteration on, which reuses its earlier episodes."""
        if self.ranks.size > 1:
            yield
            return
        with EpisodeJournal(folder.path / "journal", iteration) as self._journal:
            yield
        self._journal = None

    def save(self, folder: RunFolder) -> None:
        """Start the journal's segment for the newest checkpoint."""
        if self._journal is not None:
            kept = [int(path.name) for path in all_checkpoints(folder.checkpoints)]
            self._journal.checkpoint(kept[-1], kept[0])

    def metrics(self) -> dict[str, float]:
        """Return the token accounting of the latest episodes."""
        shown = {f"rollout/gateway_{name.replace('/', '_')}": self._report.get(name, 0.0) for name in _SHOWN}
        return {**super().metrics(), **shown}


def _require_sound(config: TrainConfig, needs: frozenset[Need]) -> None:
    """Raise for settings that are incompatible with agent programs.

    Raises:
        ConfigError: A setting is incompatible.
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
