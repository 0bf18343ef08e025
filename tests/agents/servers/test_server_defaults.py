"""Chat models behind servers with default settings: they see the whole conversation and one notation of actions."""

import re
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
from chat_servers import Body, Reply, agent_of, chat_server, request

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.evaluate import evaluate
from turngym.agents.players import AgentSettings, make_agent, settings_for
from turngym.agents.players.expert import ExpertAgent
from turngym.agents.prompting.fitting import note_of
from turngym.envs.registration import specs
from turngym.envs.vector import TextVectorEnv
from turngym.wrappers.actions.action_format import FORMATS

WORLDS = {
    "turngym/SearchQAEasy-v0": {},
    "turngym/MathPythonEasy-v0": {"max_turns": 3},
    "turngym/WebShop-v0": {"products": 50},
    "turngym/HouseholdEasy-v0": {},
    "turngym/WerewolfSmallSeat-v0": {"max_turns": 4},
    "turngym/TicTacToeSeat-v0": {},
    "turngym/GuessTheNumber-v0": {},
}


class Literal(Agent):
    """Lets a server answer with the expert's actions, written in the one notation that its prompt gives.

    Args:
        url: Address of the server.
        written: Filled with the expert's action of each request, by its newest message.
    """

    def __init__(self, url: str, written: dict[str, str]) -> None:
        self.agent, self.expert, self.written = make_agent(f"openai:model@{url}"), ExpertAgent(), written
        self.first: dict[int, str] = {}

    def attach(self, vector: TextVectorEnv) -> None:
        self.expert.attach(vector)

    def act(self, requests: Any) -> list[Decision]:
        self.first |= {one.episode: one.observation for one in requests if one.turn == 0}
        found = []
        for one in requests:
            [decision] = self.expert.act([one])
            self.written["now"] = decision.action
            found += self.agent.act([one])
        return found


def literally(written: dict[str, str]) -> Callable[[Body], Reply]:
    """Return a server that thinks aloud and then obeys its rules to the letter."""

    def answer(body: Body) -> Reply:
        rules, action = body["messages"][0]["content"], written["now"]
        if "<action>" in rules:
            return Reply(f"Let me see.\n<action>{action}</action>")
        return Reply(f"Let me see.\n[{action}]" if "one action, in brackets" in rules else f"Let me see.\n{action}")

    return answer


@pytest.mark.parametrize("env_id", WORLDS)
def test_a_server_that_follows_the_rules_to_the_letter_is_understood_and_always_sees_the_question(env_id: str) -> None:
    written: dict[str, str] = {}
    with chat_server(literally(written)) as server:
        agent = Literal(server.url, written)
        _, played = evaluate(env_id, agent, episodes=4, env_kwargs=WORLDS[env_id])
    assert len(played) == 4 and all(turn.action_is_valid for t in played for turn in t.turns)
    turns = iter(server.requests)
    for body in turns:
        system, *messages = body["messages"]
        assert system["role"] == "system" and messages[0]["content"] in set(agent.first.values())
        assert [message["role"] for message in messages] == ["user", *["assistant", "user"] * (len(messages) // 2)]


def test_rules_that_give_a_notation_and_the_format_never_contradict_each_other() -> None:
    """No environment whose rules ask for elements such as <search> adds the sentence about <action>, or the reverse."""
    own = {str(spec.entry_point): env_id for env_id, spec in specs().items()}
    seen = 0
    for env_id in own.values():
        try:
            env = gymnasium.make(env_id)
        except Exception:  # needs a package or a server
            continue
        rules, finds = env.get_wrapper_attr("instructions"), env.get_wrapper_attr("finds_action")
        elements = re.findall(r"<(\w+)>", rules)
        assert bool(elements) <= finds, (env_id, elements)
        seen += 1
        env.close()
    assert seen > 25


def test_the_default_is_said_and_a_window_can_be_asked_for() -> None:
    assert settings_for("openai:model@http://localhost:1").prompt == {"mode": "conversation"}
    assert settings_for("openai:model@http://localhost:1", prompt={"history": 2}).prompt["mode"] == "window"
    assert settings_for("random").prompt == {}
    with chat_server(lambda body: Reply()) as server:
        assert agent_of(server).prompts_text == (
            "the whole conversation; actions are native tool calls where the environment "
            "declares tools and the server takes them, else written in the environment's own notation, else as "
            "<action>...</action>"
        )
        told = agent_of(server, {"history": 3}).prompts_text
    assert told.startswith("the last 3 turns and the current observation;")


def test_a_custom_format_stays_as_asked() -> None:
    with chat_server(lambda body: Reply("\\boxed{up}")) as server:
        agent = make_agent(f"openai:model@{server.url}", settings_for("openai:m", format="boxed"))
        [decision] = agent.act([Request(0, 0, 0, "a wall", {}, "Find the door.", finds_action=True)])
    assert decision.action == "up" and FORMATS["boxed"].sentence in server.requests[0]["messages"][0]["content"]


def refusing(most: int) -> Callable[[Body], Reply]:
    """Return a server whose context holds so many messages."""

    def answer(body: Body) -> Reply:
        if len(body["messages"]) <= most:
            return Reply()
        return Reply(status=400, raw=b'{"error": {"code": "context_length_exceeded", "message": "too long"}}')

    return answer


def test_a_conversation_beyond_the_context_loses_its_oldest_turns_and_never_the_question() -> None:
    with chat_server(refusing(12)) as server:
        agent = agent_of(server)
        decisions = [agent.act([request(turn, f"wall {turn}")])[0] for turn in range(12)]
        details = [decision.usage for decision in decisions]
    assert [decision.action for decision in decisions] == ["up"] * 12
    sent = [[message["content"] for message in body["messages"]] for body in server.requests]
    assert all(messages[1] == "wall 0" for messages in sent)
    assert sent[-1][-1] == "wall 11" and sent[-1][3] == f"{note_of('drop_middle', ['up'] * 8, False)}\n\nwall 9"
    shortened = [usage.shortened for usage in details if usage]
    assert shortened[:5] == [0] * 5 and sum(shortened) >= 5 and set(shortened) == {0, 1}


@pytest.mark.parametrize("style", ["react", "summary:keep=1", "reflexion"])
def test_a_style_shows_less_of_the_past_where_the_server_refuses_a_prompt(style: str) -> None:
    with chat_server(refusing(9)) as server:
        agent = make_agent(f"openai:model@{server.url}", AgentSettings(style=style))
        decisions = [agent.act([request(turn, f"wall {turn} " + "brick " * 20)])[0] for turn in range(12)]
    assert [decision.too_long for decision in decisions] == [""] * 12
    assert all(decision.action for decision in decisions)
    spent = [decision.usage for decision in decisions if decision.usage]
    assert sum(usage.calls for usage in spent) == len(server.requests), "what was refused is counted"
    assert "wall 11" in server.requests[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("prompt", [{}, {"fit": "none"}])
@pytest.mark.parametrize("style", ["", "react"])
def test_a_question_that_does_not_fit_ends_the_episode(prompt: dict[str, Any], style: str) -> None:
    with chat_server(refusing(1)) as server:
        settings = AgentSettings(style=style, prompt=prompt) if style else None
        agent = make_agent(f"openai:model@{server.url}", settings) if settings else agent_of(server, prompt)
        [decision] = agent.act([request()])
    assert decision.too_long and len(server.requests) == 1
