"""The agent around a server at work: requests side by side, episodes that do not wait for others, interrupts."""

import threading
from concurrent.futures import Future
from typing import Any

import pytest
from chat_servers import Body, ChatServerForTests, Reply, agent_of, chaotic, chat_server, request

from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.chat_client.client import Answer, ChatServer
from turngym.agents.chat_client.config import ServerConfig, read_address
from turngym.agents.core import Decision, Request
from turngym.agents.episodes.evaluate import evaluate
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.sampling import Sampling
from turngym.agents.usage import Usage


def test_requests_run_side_by_side_and_never_more_than_allowed() -> None:
    meeting = threading.Barrier(4, timeout=120)  # opens only once four requests are at the server together

    def answer(body: Body) -> Reply:
        meeting.wait()
        return Reply()

    with chat_server(answer) as server:
        decisions = agent_of(server, concurrency=4).act([request(episode=i) for i in range(12)])
    assert [decision.action for decision in decisions] == ["up"] * 12 and server.most_at_once == 4


def test_answers_go_to_those_who_asked() -> None:
    def answer(body: Body) -> Reply:
        number = int(body["messages"][-1]["content"])
        return Reply(f"<action>{number}</action>", delay=0.01 * (number % 3))

    with chat_server(answer) as server:
        requests = [request(episode=i, observation=str(i)) for i in range(20)]
        assert [d.action for d in agent_of(server, concurrency=8).act(requests)] == [str(i) for i in range(20)]
    assert agent_of(server).act([]) == []


class Interrupted(ServerAgent):
    """Is interrupted, as by Ctrl-C, while it waits for its answers."""

    def __init__(self, reached: ChatServerForTests) -> None:
        config = ServerConfig(concurrency=2)
        super().__init__(ChatServer(read_address(reached.url)), "model", config, PromptConfig(), Sampling())
        self.reached = reached
        self.kept: list[Future[tuple[Answer, Usage]]] = []

    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        while len(self.reached.requests) < 2:
            self.reached.closing.wait(0.01)
        self.kept = list(self._background._pending)
        raise KeyboardInterrupt


@pytest.mark.parametrize("schedule", ["act", "lockstep", "continuous"])
def test_an_interrupt_does_not_wait_for_the_server(schedule: Any) -> None:
    with chat_server(lambda body: Reply(delay=60.0)) as server:
        agent = Interrupted(server)
        with pytest.raises(KeyboardInterrupt):
            if schedule == "act":
                agent.act([request(episode=i) for i in range(3)])
            else:
                evaluate("turngym/FrozenLake-v0", agent, episodes=3, schedule=schedule)
        assert [future.cancelled() for future in agent.kept] == [False, False, True]
        assert [future.result()[1].failures for future in agent.kept[:2]] == [{"connection": 1}] * 2, "cut, not retried"
        agent.abandon()  # with nothing begun it does nothing


def test_a_fast_episode_does_not_wait_for_a_slow_one() -> None:
    is_over, turns = threading.Event(), [0]

    def answer(body: Body) -> Reply:
        if body["seed"] == slow_seed:
            assert is_over.wait(120), "the slow answer comes only once the other episode is over"
            return Reply()
        turns[0] += 1
        if turns[0] == 6:
            is_over.set()
        return Reply("nonsense")

    with chat_server(answer) as server:
        agent = agent_of(server)
        slow_seed = agent._fields((0, 0), 0)["seed"]
        options = {"max_turns": 6}
        _, trajectories = evaluate(
            "turngym/FrozenLake-v0", agent, episodes=2, env_kwargs=options, schedule="continuous", num_envs=2
        )
    assert is_over.is_set() and len(trajectories[1].turns) == 6
    assert trajectories[0].turns[0].completion == "<action>up</action>"


def test_both_schedules_play_the_same_episodes() -> None:
    found = []
    with chat_server(chaotic) as server:
        for schedule in ("lockstep", "continuous"):
            for backend in ("sync", "thread"):
                agent = agent_of(server, concurrency=5, retries=2)
                _, trajectories = evaluate(
                    "turngym/FrozenLake-v0", agent, episodes=8, num_envs=4, schedule=schedule, backend=backend
                )
                found.append(trajectories)
    assert all(trajectories == found[0] for trajectories in found)
