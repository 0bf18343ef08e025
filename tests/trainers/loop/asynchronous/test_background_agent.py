"""Asynchronous rollouts with servers: no episode waits for another one's completion, and versions are as told."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import numpy as np
import pytest
import watched_env
from numpy.typing import NDArray
from small import agent_of, small_model

from turngym.agents.core import Decision, Request
from turngym.agents.episodes.stream import Feed, OpenTurn, play_stream
from turngym.agents.models.completion import Completion
from turngym.agents.sampling import Sampling
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.vector import make_vec
from turngym.trainers.loop.asynchronous.background import BackgroundAgent
from turngym.trainers.loop.asynchronous.weights import SamplerWeights

assert watched_env
LIMIT = 120.0
"""Seconds after which a test that waits for an event fails."""


class Scripted:
    """A background sampler whose completions end when the test says so."""

    def __init__(self, weights: SamplerWeights, on_submit: Callable[[Future[Completion], int], None]) -> None:
        self.weights = weights
        self.on_submit = on_submit
        self.version = -1
        self.may_follow = threading.Event()
        self.may_follow.set()
        self.in_flight: list[Future[Completion]] = []
        self.follows = 0

    def follow(self) -> None:
        assert self.may_follow.wait(LIMIT)
        self.follows += 1
        self.version = self.weights.model.version

    def submit(
        self, prompt: Sequence[int], uniforms: NDArray[np.float64], sampling: Sampling, given_up: threading.Event
    ) -> Future[Completion]:
        found: Future[Completion] = Future()
        self.in_flight.append(found)
        self.on_submit(found, self.version)
        return found


def answer(future: Future[Completion], version: int) -> None:
    future.set_result(Completion((12, 13), (-1.0, -1.0), version=version))


def played(on_submit: Callable[[Future[Completion], int], None]) -> tuple[BackgroundAgent, Scripted, SamplerWeights]:
    """An agent of a small model with weights of version 0."""
    model = small_model()
    weights = SamplerWeights(model)
    weights.publish(model.network, 0)
    sampler = Scripted(weights, on_submit)
    return BackgroundAgent(agent_of(weights.model), sampler, weights), sampler, weights


def ask(episode: int, turn: int) -> Request:
    return Request(episode, episode, turn, "player 2 3 box 3 3 goal 4 1", {}, "You push boxes onto goals.")


def all_of(agent: BackgroundAgent, count: int) -> dict[tuple[int, int], Decision]:
    found: dict[tuple[int, int], Decision] = {}
    while len(found) < count:
        found.update({(request.episode, request.turn): made for request, made in agent.decided(wait=True)})
    return found


def test_first_turns_wait_for_the_newest_weights_and_others_go_on() -> None:
    seen: list[int] = []
    agent, sampler, weights = played(lambda future, version: seen.append(version))
    agent.begin([ask(0, 0), ask(1, 0)])
    while len(sampler.in_flight) < 2:  # the first hand-over
        agent.rest(LIMIT)
        assert agent.decided(wait=False) == []
    assert (sampler.follows, seen) == (1, [0, 0])
    weights.publish(weights.model.network, 1)
    agent.begin([ask(2, 0), ask(3, 1)])
    assert (sampler.follows, len(sampler.in_flight)) == (1, 3), "a first turn is being sampled; another one waits"
    answer(sampler.in_flight[0], 0)
    answer(sampler.in_flight[1], 0)
    sampler.may_follow.clear()
    assert [found.policy_version for found in all_of(agent, 2).values()] == [0, 0]
    agent.begin([ask(0, 1)])
    assert len(sampler.in_flight) == 4, "while weights are handed over, episodes continue"
    answer(sampler.in_flight[3], 0)
    answer(sampler.in_flight[2], 0)
    assert {key: found.policy_version for key, found in all_of(agent, 2).items()} == {(0, 1): 0, (3, 1): 0}
    sampler.may_follow.set()
    while len(sampler.in_flight) < 5:
        agent.rest(LIMIT)
        assert agent.decided(wait=False) == []
    assert (sampler.follows, seen[-1]) == (2, 1)
    answer(sampler.in_flight[4], 1)
    assert all_of(agent, 1)[2, 0].policy_version == 1
    agent.abandon()


def test_what_fails_in_the_background_is_raised() -> None:
    agent, sampler, _ = played(lambda future, version: future.set_exception(ConnectionError("gone")))
    agent.begin([ask(0, 0)])
    with pytest.raises(ConnectionError, match="gone"):
        agent.decided(wait=True)
    agent.abandon()
    assert sampler.follows == 1


class Listed(Feed):
    """A feed of some groups that ends when all episodes are over."""

    def __init__(self, specs: list[EpisodeSpec], on_end: Callable[[int], None]) -> None:
        self.queue, self.count, self.on_end = specs, len(specs), on_end
        self.over: list[Trajectory] = []

    def take(self, free: int, wait: bool) -> Sequence[EpisodeSpec] | None:
        if len(self.over) == self.count:
            return None
        found, self.queue = self.queue[:free], self.queue[free:]
        return found

    def decided(self, turns: Sequence[OpenTurn]) -> None:
        pass

    def ended(self, trajectory: Trajectory) -> None:
        self.over.append(trajectory)
        self.on_end(len(self.over))


def test_a_straggling_completion_holds_up_no_other_episode() -> None:
    """The first completion of all ends when every other episode is over."""
    straggler: list[Future[Completion]] = []

    def on_submit(future: Future[Completion], version: int) -> None:
        if straggler:
            answer(future, version)
        else:
            straggler.append(future)

    def on_end(count: int) -> None:
        if count == 7:
            answer(straggler[0], 0)

    agent, _, _ = played(on_submit)
    specs = [EpisodeSpec(number, number // 4, number // 4) for number in range(8)]
    vector = make_vec("test/Watched-v0", 4, autoreset_mode="disabled")
    feed = Listed(specs, on_end)
    play_stream(vector, agent, feed, snapshots=False, final_prompts=False)
    vector.close()
    assert sorted(each.spec.episode for each in feed.over) == list(range(8))
    assert feed.over[-1].spec.episode == 0 and not any(each.fault for each in feed.over)
    assert {turn.policy_version for each in feed.over for turn in each.turns} == {0}


def test_giving_up_waits_for_no_completion() -> None:
    agent, sampler, _ = played(lambda future, version: None)
    agent.begin([ask(0, 0)])
    while not sampler.in_flight:
        agent.rest(LIMIT)
        agent.decided(wait=False)
    agent.abandon()
    assert not agent.is_working() and sampler.in_flight[0].cancelled()


def test_turns_that_were_written_before_are_not_sampled_again() -> None:
    agent, sampler, _ = played(lambda future, version: answer(future, version))
    agent.begin([ask(0, 0)])
    made = all_of(agent, 1)[0, 0]
    other, fresh, _ = played(lambda future, version: answer(future, version))
    other.expect(0, [as_turn(made)])
    other.begin([ask(0, 0)])
    assert all_of(other, 1)[0, 0] == made
    assert (len(sampler.in_flight), len(fresh.in_flight)) == (1, 0)
    agent.abandon()
    other.abandon()


def as_turn(made: Decision) -> Turn:
    return Turn(
        "",
        "",
        made.action,
        made.completion,
        made.prompt_ids,
        made.completion_ids,
        made.logprobs,
        cut_off=made.cut_off,
        policy_version=made.policy_version,
    )
