"""Episodes in a world of the laboratory, as trajectories of the trainer."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from lab.network import ContextPolicy
from lab.worlds import Integers, Numbers, World
from turngym.agents.episodes.groups import group_specs
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.seeding import stream
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.task import Evaluation, TaskSource

_FIRST_TEST = 2**31
_FIRST_BRANCH = 2**40
_SNAPSHOT = struct.Struct("<qq")


@dataclass(frozen=True)
class Play:
    """How the policy plays a world.

    Args:
        groups: Instances of an iteration.
        group_size: Episodes of each.
        turn_tokens: Tokens of a turn; an action is its symbol that many times, anything else is invalid.
        shared_anchors: Share of turns whose anchor is that of every other visit of the state; the rest have one of
            their own, which methods that compare states cannot use. The policy sees the same in both cases.
        snapshots: Whether turns keep the state.
        entropies: Whether turns keep the entropy of what each token was sampled from.
        evaluation_episodes: Episodes of an evaluation.
        instances: Different instances that training draws from; 0 for one of its own in every group.
    """

    groups: int = 8
    group_size: int = 8
    turn_tokens: int = 1
    shared_anchors: float = 1.0
    snapshots: bool = False
    entropies: bool = False
    evaluation_episodes: int = 512
    instances: int = 0


class _Move(NamedTuple):
    """One turn of the episodes that still go on."""

    who: Integers
    state: Integers
    tokens: Integers
    logprobs: Numbers
    entropies: Numbers
    reward: Numbers
    valid: Any


class _Played(NamedTuple):
    moves: list[_Move]
    state: Integers
    terminated: Any
    solved: Any


class LabTask(TaskSource):
    """A world of the laboratory as a task of the trainer.

    Args:
        world: The world.
        play: How it is played.
        seed: Seed of the run.
    """

    def __init__(self, world: World, play: Play, seed: int) -> None:
        self.world = world
        self.settings = play
        self.seed = seed

    @property
    def has_expert(self) -> bool:
        """There is none."""
        return False

    def texts(self) -> list[str]:
        """Return nothing: there is no tokenizer."""
        return []

    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        """Return none."""
        return []

    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return the success of the policy as it samples."""
        return {"eval/success": self.success(model)}

    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Return nothing: :meth:`success` is what is measured."""
        return iter(())

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of an iteration.

        Raises:
            ConfigError: They are to be greedy, which no method of the laboratory needs.
        """
        if greedy:
            raise ConfigError("the laboratory plays no greedy episodes: leave out remax.")
        play = self.settings
        specs = group_specs(play.groups, play.group_size, iteration=iteration, seed=self.seed, attempt=attempt)
        states = np.array([self.world.start(self._instance(spec.seed)) for spec in specs], dtype=np.int64)
        turns = np.zeros(len(specs), dtype=np.int64)
        return self._trajectories(model, specs, states, turns, ("play", self.seed, iteration, attempt))

    def _instance(self, seed: int) -> int:
        return seed % self.settings.instances if self.settings.instances else seed

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Go on from turns of episodes."""
        specs, found = [], []
        for number, branch in enumerate(branches, _FIRST_BRANCH + first):
            origin = branch.trajectory.spec
            specs.append(EpisodeSpec(number, origin.seed, origin.group, origin.options, branch))
            found.append(_SNAPSHOT.unpack(branch.trajectory.turns[branch.turn].snapshot))
        states, turns = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return self._trajectories(model, specs, states, turns, ("branch", self.seed, iteration, first))

    def success(self, model: LanguageModel) -> float:
        """Return the share of solved episodes on fixed instances, the same for every policy of a seed."""
        played = self._play(model, self._tests, np.zeros(len(self._tests), dtype=np.int64), ("test", self.seed))
        return float(played.solved.mean())

    @cached_property
    def _tests(self) -> Integers:
        """First states of the instances that success is measured on."""
        seeds = (self._instance(_FIRST_TEST + k) for k in range(self.settings.evaluation_episodes))
        return np.array([self.world.start(seed) for seed in seeds], dtype=np.int64)

    def _play(self, model: LanguageModel, states: Integers, turns: Integers, key: tuple[int | str, ...]) -> _Played:
        """Play episodes from states at turns to their ends."""
        world, tokens = self.world, self.settings.turn_tokens
        table = cast("ContextPolicy", model.network).log_probabilities()
        cumulative = np.exp(table).cumsum(1)
        entropy = -(np.exp(table) * table).sum(1) / np.log(world.num_actions)
        rng, state = stream("lab", *key), states.copy()
        terminated, solved = np.zeros(len(states), dtype=bool), np.zeros(len(states), dtype=bool)
        who = np.arange(len(states))
        limits, moves = world.max_turns - turns, []
        for turn in range(int(limits.max(initial=0))):
            who = who[limits[who] > turn]
            if not len(who):
                break
            draws = rng.random((len(states), tokens + 1))[who]
            contexts, written = self._write(cumulative, world.observe(state[who]), draws)
            symbols = written[:, 0]
            action = np.where((written == symbols[:, None]).all(1), symbols, -1)
            step = world.step(state[who], action, draws[:, -1])
            found = table[contexts, written], entropy[contexts]
            moves.append(_Move(who, state[who], written, *found, step.reward, step.valid))
            state[who] = step.state
            terminated[who], solved[who] = step.ended, step.solved
            who = who[~step.ended]
        return _Played(moves, state, terminated, solved)

    def _write(self, cumulative: Numbers, seen: Integers, draws: Numbers) -> tuple[Integers, Integers]:
        """Return the context of each token and the token, ``[episode, token]``."""
        tokens, symbols = self.settings.turn_tokens, self.world.num_actions
        base = seen * (1 + (tokens - 1) * symbols)
        contexts = np.empty((len(seen), tokens), dtype=np.int64)
        written = np.empty_like(contexts)
        for k in range(tokens):
            contexts[:, k] = base if k == 0 else base + 1 + (k - 1) * symbols + written[:, k - 1]
            above = draws[:, k, None] > cumulative[contexts[:, k]]
            written[:, k] = np.minimum(above.sum(1), symbols - 1)
        return contexts, written

    def _trajectories(
        self,
        model: LanguageModel,
        specs: Sequence[EpisodeSpec],
        states: Integers,
        turns: Integers,
        key: tuple[int | str, ...],
    ) -> list[Trajectory]:
        played = self._play(model, states, turns, key)
        found = [Trajectory(spec, "lab", str(begin)) for spec, begin in zip(specs, states.tolist(), strict=True)]
        alone = stream("lab-anchors", *key).random((len(played.moves), len(specs))) >= self.settings.shared_anchors
        first = turns.tolist()
        for number, move in enumerate(played.moves):
            for place, state, turn in zip(move.who.tolist(), move.state.tolist(), self._turns(move), strict=True):
                if alone[number, place]:
                    turn.anchor += f" of episode {specs[place].episode} at turn {number}"
                if self.settings.snapshots:
                    turn.snapshot = _SNAPSHOT.pack(state, first[place] + number)
                found[place].turns.append(turn)
        seen = self.world.observe(played.state) + self.world.num_actions
        ends = (played.terminated, played.solved, self.world.anchor(played.state), seen)
        for trajectory, ended, solved, last, prompt in zip(found, *(each.tolist() for each in ends), strict=True):
            trajectory.terminated, trajectory.truncated = ended, not ended
            trajectory.success, trajectory.score = int(solved), float(solved)
            trajectory.final_anchor = f"state {last}"
            trajectory.final_prompt_ids = () if ended else (prompt,)
            trajectory.truncation_reason = "" if ended else "environment"
        return found

    def _turns(self, move: _Move) -> Iterator[Turn]:
        """Yield the turn of each episode that still goes on."""
        prompts = (self.world.observe(move.state) + self.world.num_actions).tolist()
        columns = (self.world.anchor(move.state), move.tokens, move.logprobs, move.entropies, move.reward, move.valid)
        listed = (each.tolist() for each in columns)
        for prompt, (state, tokens, logprobs, entropies, reward, valid) in zip(
            prompts, zip(*listed, strict=True), strict=True
        ):
            anchor, action = f"state {state}", f"symbol {tokens[0]}" if len(set(tokens)) == 1 else "nothing"
            yield Turn(
                anchor,
                anchor,
                action,
                prompt_ids=(prompt,),
                completion_ids=tuple(tokens),
                logprobs=tuple(logprobs),
                reward=reward,
                action_is_valid=valid,
                entropies=tuple(entropies) if self.settings.entropies else (),
            )
