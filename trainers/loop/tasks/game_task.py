"""A multi-agent game as a training task, by self-play or against frozen copies and players."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from turngym.agents.core import Agent
from turngym.agents.episodes.evaluate import EvaluationResult, summarise
from turngym.agents.episodes.self_play import LEARNER, GameSpec, PlayerAgent, SelfPlay
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.players import make_player
from turngym.envs.multiagent.registration import is_game, make_game
from turngym.envs.multiagent.table import Table
from turngym.envs.vector.slots.boundary import closing_quietly
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.seeding import stream, stream_seed
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.core.context import require_turns
from turngym.trainers.engine.ranks import SINGLE, Ranks
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.setup import policy_agent
from turngym.trainers.loop.sft import DemonstrationAgent
from turngym.trainers.loop.tasks.matchmaking import Matchmaking, Result
from turngym.trainers.loop.tasks.opponent_pool import PREFIX, PastSelves
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.shared_play import played_by_all, slots_of
from turngym.trainers.loop.tasks.task import CURVE_SAMPLING, FINAL_SAMPLING, Evaluation, TaskSource, curve_metrics
from turngym.trainers.records.rollout_metrics import CacheMeter
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig
from turngym.wrappers.actions.action_format import action_format

_TEXT_GAMES = 200
_DEALS = 20
"""Number of deals inspected for roles, because roles may vary between deals."""
_TABLE_OPTIONS = ("retries", "invalid_penalty")


def rules_of(config: TrainConfig) -> Game:
    """Return the rules of a run's game."""
    of_game = {key: value for key, value in config.env_options.items() if key not in _TABLE_OPTIONS}
    return make_game(config.env, **of_game)


def require_roles(config: TrainConfig, algorithm: Algorithm[Any]) -> None:
    """Raise unless every role named by a method's settings exists in the run's games.

    Raises:
        UnknownName: A game has no such role.
    """
    if not algorithm.named_roles:
        return
    games = [rules_of(member.config) for member in config.members if is_game(member.config.env)]
    known = {name for game in games for name in _roles_of(game)}
    for name in algorithm.named_roles:
        if name not in known:
            there = nearest(name, known) if known else "Its environments have one agent: leave the role out."
            raise UnknownName(f"{config.algorithm} compares {name!r}, the role of no seat. {there}")


def _roles_of(game: Game) -> set[str]:
    """Return the roles in some deals, or the names of seats without roles."""
    found = set()
    with closing_quietly(game):
        for seed in range(_DEALS):
            begin_game(Table(game), seed)
            found |= {game.role(seat) or game.seats[seat] for seat in game.everyone}
    return found


def require_player(name: str, game: Game) -> None:
    """Raise unless an opponent exists; the message considers a misspelt ``past:N``.

    Raises:
        UnknownName: There is no such player.
    """
    try:
        make_player(name, game)
    except UnknownName:
        kind, sign, count = name.partition(":")
        if count.isdecimal() and nearest(kind, ("past",)).startswith("Did"):
            raise UnknownName(f"no player named {name!r}. Did you mean 'past{sign}{count}'?") from None
        raise


class GameTask(TaskSource):
    """A multi-agent game.

    Args:
        config: Settings of the run; ``env`` is the game, ``env_options`` has options of the game and its tables.
        joint_views: Record the joint view of all seats in turns.
        final_prompts: Keep the next prompt of truncated trajectories.
        situations: Record the game's abstraction of each decision.
        ranks: The ranks that play the games of an iteration together.

    Raises:
        UnknownName: The game, or a player named in the settings, does not exist.
        ConfigError: An option is out of range.
    """

    def __init__(
        self,
        config: TrainConfig,
        joint_views: bool = False,
        final_prompts: bool = False,
        situations: bool = False,
        ranks: Ranks = SINGLE,
    ) -> None:
        if config.wrappers:
            raise ConfigError(f"wrappers go around environments with one agent, and {config.env} is a game: leave out.")
        self.config = config
        self.ranks = ranks
        of_table = {key: value for key, value in config.env_options.items() if key in _TABLE_OPTIONS}
        settings = config.rollout
        self.tables = SelfPlay(
            lambda: rules_of(config),
            settings.num_envs or slots_of(settings.groups, settings.group_size, ranks),
            env_id=config.env,
            joint_views=joint_views,
            situations=situations,
            final_prompts=final_prompts,
            **of_table,
        )
        self._cache = CacheMeter()
        self.past = PastSelves(config.self_play.num_past, config.self_play.freeze_every)
        self.matchmaking = Matchmaking(config.self_play.matching, config.self_play.matching_decay)
        for name in self._player_names():
            require_player(name, self.tables.rules)  # before the first game

    def close(self) -> None:
        """Release resources of the games."""
        self.tables.close()

    def _player_names(self) -> list[str]:
        chosen = self.config.self_play
        trained = [name for name in chosen.opponents if name != "self" and not name.startswith("past:")]
        evaluated = [name for name in chosen.evaluation_opponents if name != "self"]
        return [*trained, *evaluated, chosen.demonstrator]

    @property
    def has_expert(self) -> bool:
        """True if the demonstrator is better than random."""
        return self.config.self_play.demonstrator != "random"

    @property
    def has_comparable_rewards(self) -> bool:
        """True if the opponents never change; in self-play a better learner does not win more."""
        return self.config.self_play.has_fixed_opponents

    def warning(self, algorithm: Algorithm[Any]) -> str:
        """Warn if a method compares episodes of a group that have different seats.

        A group is one deal. If the learner plays both sides, its winning seats are compared with its losing ones, and
        the luck of a seat (its cards, the first move) is credited as skill. Against an opponent, the learner has one
        side per group.
        """
        mixes_seats = "self" in self.config.self_play.opponents and len(self.tables.sides) > 1
        if not mixes_seats or Need.GROUPS not in algorithm.needs or algorithm.compares_same_seat:
            return ""
        return (
            f"{self.config.algorithm} compares the episodes of a group, and in self-play those are of different seats: "
            "what a seat wins by its cards or by moving first counts as skill. Take --algorithm dr_mas, which compares "
            "each seat with itself, or rae or mappo, or play against others only, as in --self-play.opponents random."
        )

    # Warm-up.

    def _games_of(self, agent: Agent, count: int, purpose: str) -> list[Trajectory]:
        """Play some games with one agent in all seats."""
        specs = [GameSpec(i, stream_seed(purpose, self.config.seed, i) % 2**31, i) for i in range(count)]
        played = self.tables.play(specs, {LEARNER: agent})
        require_turns(played)
        return [t for t in played if not t.fault]

    def _demonstrator(self) -> PlayerAgent:
        return PlayerAgent(self.tables.vector.tables, self.config.self_play.demonstrator, self.config.seed)

    def texts(self) -> list[str]:
        """Return rules, observations and answers of the demonstrator's games."""
        rules = self.tables.rules
        write = action_format(self.config.rollout.format, rules.finds_action).write
        texts = list(dict.fromkeys(rules.instructions(seat) for seat in rules.everyone))
        for trajectory in self._games_of(self._demonstrator(), _TEXT_GAMES, "tokenizer"):
            for turn in trajectory.turns:
                texts += [turn.observation, write(turn.action)]
            texts.append(trajectory.final_observation)
        return texts

    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        """Return the trajectories of ``count`` games with the demonstrator in all seats."""
        student = policy_agent(self.config, model)
        return self._games_of(DemonstrationAgent(student, self._demonstrator()), count, "demonstration")

    # Training.

    def specs(self, iteration: int, attempt: int = 0) -> list[GameSpec]:
        """Return the games of one iteration: ``groups`` new deals, each with an opponent and a side.

        Every deal is played ``group_size`` times. The sides alternate, so that each is trained equally often.
        """
        settings, found = self.config.rollout, []
        for group in range(settings.groups):
            number = attempt * settings.groups + group
            seed = stream_seed("group", self.config.seed, iteration, attempt, group) % 2**31
            side = iteration * settings.groups + group
            opponent = self._opponent(iteration, number, side)
            for member in range(settings.group_size):
                of_game = number * settings.group_size + member
                found.append(GameSpec(of_game, seed, number, opponent, side))
        return found

    def _side(self, number: int) -> str:
        return self.tables.sides[number % len(self.tables.sides)]

    def _others(self) -> list[str]:
        """Return all opponents but the learner itself, frozen copies oldest first."""
        found: list[str] = []
        for name in self.config.self_play.opponents:
            if name.startswith("past:"):
                found += self.past.newest(int(name.partition(":")[2]))
            elif name != "self":
                found.append(name)
        return list(dict.fromkeys(found))

    def _opponent(self, iteration: int, group: int, side: int) -> str:
        generator = stream("opponent", self.config.seed, iteration, group)
        chosen = self.config.self_play.opponents
        name = chosen[int(generator.integers(len(chosen)))]
        if self.config.self_play.is_prioritised and name != "self":
            return self.matchmaking.draw(self._others(), self._side(side), generator)
        if name.startswith("past:"):
            names = self.past.newest(int(name.partition(":")[2]))
            return names[int(generator.integers(len(names)))]
        return LEARNER if name == "self" else name

    def agent(self, model: LanguageModel, iteration: int, temperature: float | None = None) -> Agent:
        """Return the agent that plays with a policy; the default temperature is that of training."""
        return policy_agent(self.config, model, iteration, temperature)

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the trajectories of the learner's seats; with ``greedy``, only of each group's first game."""
        self.past.notice(model, iteration)
        self.matchmaking.begin(iteration, self._others())
        specs = part.of(self.specs(iteration, attempt))[:: self.config.rollout.group_size if greedy else 1]
        learner = self.agent(model, iteration, 0.0 if greedy else None)
        agents: dict[str, Agent] = {LEARNER: learner}
        for name in sorted({spec.opponent for spec in specs if spec.opponent.startswith(PREFIX)}):
            agents[name] = self.agent(self.past.model(name), iteration)
        played = played_by_all(self.ranks, specs, lambda own: self.tables.play(own, agents))
        if isinstance(learner, ModelAgent):
            self._cache.note(learner)
        if not greedy:
            self.matchmaking.note(iteration, self._results(specs, played))
        return played

    def _results(self, specs: Sequence[GameSpec], played: Sequence[Trajectory]) -> list[Result]:
        """Return the results of games against opponents, without faulted and unfinished ones."""
        by_number = {spec.number: spec for spec in specs if spec.opponent != LEARNER}
        found: dict[int, Result] = {}
        for trajectory in played:
            number = trajectory.spec.episode // self.tables.rules.num_seats
            if number in by_number and not trajectory.fault and trajectory.terminated:
                spec = by_number[number]
                found.setdefault(number, Result(spec.opponent, self._side(spec.side), trajectory.success == 1))
        return list(found.values())

    def metrics(self) -> dict[str, float]:
        """Return metrics of opponents' forfeits because of prompts that did not fit, and of prompt tokens."""
        found, self.tables.cut_opponents = self.tables.cut_opponents, 0
        summed = self.ranks.sum_numbers({"rollout/context_opponents": float(found), **self._cache.metrics()})
        return {**summed, **self._matching_metrics()}

    def _matching_metrics(self) -> dict[str, float]:
        if not self.config.self_play.is_prioritised:
            return {}
        newest_first = self.past.newest(self.config.self_play.num_past)[::-1]
        ages = {name: f"past_{age}" for age, name in enumerate(newest_first, 1)}
        return self.matchmaking.metrics({name: ages.get(name, name) for name in self._others()}, self.tables.sides)

    def save(self, folder: RunFolder) -> None:
        """Write the checkpoint's frozen copies and the results against opponents."""
        kept = [int(path.name) for path in all_checkpoints(folder.checkpoints)]
        self.past.save(folder.path / "past", min(kept, default=0))
        if kept and self.config.self_play.is_prioritised:
            self.matchmaking.save(folder.path / "opponents", kept)

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:
        """Restore frozen copies and results against opponents."""
        self.past.load(folder.path / "past", model, iteration)
        if self.config.self_play.is_prioritised:
            self.matchmaking.load(folder.path / "opponents", iteration)

    # Evaluation.

    def _against(self, opponent: str, agent: ModelAgent, count: int, purpose: str) -> dict[str, list[Trajectory]]:
        """Return games against a player by side: each seed once per side, represented by its first seat."""
        sides = ("all",) if opponent == "self" else self.tables.sides
        name = LEARNER if opponent == "self" else opponent
        specs = [
            GameSpec(k * len(sides) + side, stream_seed(purpose, self.config.env, k) % 2**31, k, name, side)
            for k in range(count)
            for side in range(len(sides))
        ]
        firsts: dict[int, Trajectory] = {}
        for trajectory in played_by_all(self.ranks, specs, lambda own: self.tables.play(own, {LEARNER: agent})):
            firsts.setdefault(trajectory.spec.episode // self.tables.rules.num_seats, trajectory)
        found: dict[str, list[Trajectory]] = {}
        for spec in specs:
            found.setdefault(sides[spec.side], []).append(firsts[spec.number])
        return found

    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return the share of games won against every evaluation opponent; the first is the main metric."""
        metrics: dict[str, float] = {}
        for opponent in self.config.self_play.evaluation_opponents:
            agent = policy_agent(self.config, model, CURVE_SAMPLING)
            games = self._against(opponent, agent, self.config.evaluation.curve_episodes, "curve")
            result = self._summary([each for of_side in games.values() for each in of_side])
            metrics = {**curve_metrics(result), **metrics}
            metrics[f"eval/success_vs_{opponent}"] = result.success.value
            metrics[f"eval/reward_vs_{opponent}"] = result.reward_sum.value
        return metrics

    def _summary(self, trajectories: Sequence[Trajectory]) -> EvaluationResult:
        return summarise(self.config.env, trajectories)

    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Evaluate against every opponent, over all sides and per side; names omit the first opponent."""
        for index, opponent in enumerate(self.config.self_play.evaluation_opponents):
            agent: Any = policy_agent(self.config, model, FINAL_SAMPLING, temperature)
            games = self._against(opponent, agent, self.config.evaluation.episodes, "final")
            together = [each for of_side in games.values() for each in of_side]
            full = f"{name}-vs-{opponent}" if index else name
            yield Evaluation(full, self._summary(together), together)
            for side, of_side in games.items() if opponent != "self" else ():
                yield Evaluation(f"{full}-side-{side}", self._summary(of_side), of_side)
