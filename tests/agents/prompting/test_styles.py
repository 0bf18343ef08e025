"""Styles of prompting: what a model is shown and asked, the same behind a server and in this process."""

import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from chat_servers import QUICK, Body, ChatServerForTests, Reply, chat_server, request
from small import small_model

from turngym.agents.chat import Message, guessed_tokens
from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.core import Agent, Decision
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.players.styled import StyledAgent, StyledServerAgent, styled
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.prompting.fitting import note_of
from turngym.agents.prompting.styles import STYLES, ChatTurn, EpisodeMemory, Try, conversation, make_style, prompt_hash
from turngym.agents.usage import Usage
from turngym.errors import ConfigError, UnknownName

SUMMED_UP = "The door is not in the north."


def scripted(body: Body) -> Reply:
    """Answer every kind of call, with the number of the words that it was shown."""
    last = body["messages"][-1]["content"]
    if "Write the summary" in last:
        return Reply(SUMMED_UP, usage=(50, 7))
    if "did not solve the task" in last:
        return Reply("Go up first.", usage=(40, 5))
    return Reply("Thought: the door is above.\n<action>up</action>", usage=(20, 4))


@pytest.fixture
def server() -> Iterator[ChatServerForTests]:
    with chat_server(scripted) as running:
        yield running


def agent_in(server: ChatServerForTests, style: str, **prompt: Any) -> StyledServerAgent:
    prices = {"input": 1e6, "output": 1e6}
    settings = AgentSettings(prompt=prompt, server={**QUICK, "prices": prices}, style=style, seed=3)
    agent = make_agent(f"openai:model@{server.url}", settings)
    assert isinstance(agent, StyledServerAgent)
    return agent


def said(server: ChatServerForTests, number: int = -1) -> list[tuple[str, str]]:
    """Return the messages of a request that the server was sent."""
    return [(message["role"], message["content"]) for message in server.requests[number]["messages"]]


def play(agent: Agent, turns: int, episode: int = 0, observation: str = "wall {}") -> list[Decision]:
    return [agent.act([request(turn=t, observation=observation.format(t), episode=episode)])[0] for t in range(turns)]


def test_react_keeps_every_thought_in_view(server: ChatServerForTests) -> None:
    decisions = play(agent_in(server, "react"), 3)
    roles, texts = zip(*said(server), strict=True)
    assert roles == ("system", "user", "assistant", "user", "assistant", "user")
    assert texts[1::2] == ("wall 0", "wall 1", "wall 2")
    assert texts[2] == texts[4] == decisions[0].completion == "Thought: the door is above.\n<action>up</action>"
    assert texts[0].startswith("Find the door.") and "Answer format: " in texts[0] and "'Thought:'" in texts[0]
    assert [decision.action for decision in decisions] == ["up"] * 3


def test_episodes_do_not_see_one_another_and_forget(server: ChatServerForTests) -> None:
    agent = agent_in(server, "react")
    agent.act([request(turn=0, observation=f"episode {i}", episode=i) for i in range(5)])
    agent.act([request(turn=1, observation="again", episode=i) for i in range(5)])
    shown = sorted(said(server, -k)[1][1] for k in range(1, 6))
    assert shown == [f"episode {i}" for i in range(5)]
    agent.forget(0)
    agent.act([request(turn=1, observation="new", episode=0)])
    assert [text for role, text in said(server) if role == "user"] == ["new"]


def test_a_long_conversation_loses_its_oldest_turns_and_never_its_rules(server: ChatServerForTests) -> None:
    agent = agent_in(server, "react", max_prompt_tokens=400)
    play(agent, 12, observation="a wall of many stones, number {}")
    messages = said(server)
    assert messages[0][1].startswith("Find the door.") and messages[-1][1].endswith("number 11")
    left_out = 12 - sum(role == "user" for role, _ in messages)
    assert messages[1][1].endswith("number 0"), "the first observation, which often holds the task, stays"
    assert left_out > 3 and messages[3][1].startswith(f"({left_out} turns are left out here.)\n\n")
    sent = [Message("user", content) for _, content in messages]
    assert guessed_tokens(sent) <= 400


def test_history_limits_the_turns_that_are_shown(server: ChatServerForTests) -> None:
    play(agent_in(server, "react", history=2), 5)
    users = [text for role, text in said(server) if role == "user"]
    assert users == ["(2 earlier turns are left out.)\n\nwall 2", "wall 3", "wall 4"]


@pytest.mark.parametrize("style", ["react", "summary", "reflexion", "notes", "critic"])
def test_rules_that_do_not_fit_are_refused_clearly(style: str, server: ChatServerForTests) -> None:
    [decision] = play(agent_in(server, style, max_prompt_tokens=10), 1)
    assert not decision.fault
    assert re.search(
        r"tokens with all earlier turns left out.*--prompt max_prompt_tokens=N", decision.too_long, re.DOTALL
    )
    assert not server.requests, "nothing was sent"


def test_a_summary_takes_the_place_of_older_turns(server: ChatServerForTests) -> None:
    agent = agent_in(server, "summary:budget=200,keep=1,words=30")
    decisions = play(agent, 6, observation="a wall of many stones, number {}")
    written = [i for i, decision in enumerate(decisions) if decision.notes]
    assert written and decisions[written[0]].notes[0].purpose == "summary"
    assert decisions[written[0]].notes[0].text == SUMMED_UP
    asked = next(r["messages"] for r in server.requests if "Write the summary" in r["messages"][-1]["content"])
    assert "number 0" in asked[-1]["content"] and "at most 30 words" in asked[-1]["content"]
    after = said(server)
    assert after[0][1].endswith(f"written by you:\n{SUMMED_UP}") and "number 1" not in str(after[1:])
    assert after[1][1].endswith("number 0"), "the first observation, which often holds the task, stays"
    assert "left out" not in str(after), "the summary stands for them"


def test_extra_calls_are_counted_with_their_turn(server: ChatServerForTests) -> None:
    decisions = play(agent_in(server, "summary:budget=200,keep=1"), 6, observation="a wall of many stones, number {}")
    for decision in decisions:
        usage = decision.usage
        assert usage is not None
        calls = 1 + len(decision.notes)
        tokens = (20 + 50 * (calls - 1), 4 + 7 * (calls - 1))
        assert (usage.calls, usage.tokens_in, usage.tokens_out, usage.cost) == (calls, *tokens, sum(tokens))
    assert sum(d.usage.calls for d in decisions if d.usage) == len(server.requests) > 6


def test_a_summary_that_never_comes_is_told_as_turns_left_out() -> None:
    def answer(body: Body) -> Reply:
        is_summary = "Write the summary" in body["messages"][-1]["content"]
        return Reply(status=400, raw=b"no") if is_summary else scripted(body)

    with chat_server(answer) as server:
        decisions = play(
            agent_in(server, "summary:budget=200,keep=1"), 6, observation="a wall of many, many, many stones, number {}"
        )
        assert decisions[-1].action == "up" and "left out here.)" in said(server)[3][1]
        lost = [d.usage.lost for d in decisions if d.usage]
        assert sum(lost) == sum(len(d.notes) for d in decisions) > 0, "counted, and the episode continues"


def test_notes_stay_when_the_turns_that_they_were_written_in_are_left_out() -> None:
    turn = iter(range(20))

    def answer(body: Body) -> Reply:
        noted = f"<think><note>no</note></think><note>stone  {next(turn) % 9}</note>"
        return Reply(f"{noted} <action><note>up</note></action> <note>late</note>", usage=(20, 4))

    with chat_server(answer) as server:
        agent = agent_in(server, "notes:share=0.06", max_prompt_tokens=500)
        decisions = play(agent, 14, observation="a wall of many stones, number {}")
        texts = [text for role, text in said(server) if role == "user"]
        assert [decision.action for decision in decisions] == ["<note>up</note>"] * 14
        notes, _, now = texts[-1].removeprefix("Your notes:\n").partition("\n\n")
        stones = [f"- stone {i}" for i in (4, 5, 6, 7, 8, 0, 1, 2, 3)]
        kept = len(notes.splitlines())
        assert now == "a wall of many stones, number 13" and notes.splitlines() == stones[-kept:]
        assert 4 <= kept < 9 and "number 5" not in str(texts), "the oldest notes and turns go"
        assert not any("Your notes" in text for text in texts[:-1]), "once, above the current observation"


def test_notes_of_turns_that_were_decided_elsewhere_are_kept_and_can_be_replaced(server: ChatServerForTests) -> None:
    agent = agent_in(server, "notes")
    for turn, written in enumerate(("<note>a 1</note>", "<note>b 2</note>", "<notes>c 3\n\n- d 4</notes>")):
        agent.follow(request(turn=turn, observation="wall"), "up", f"{written}<action>up</action>")
    agent.act([request(turn=3, observation="door")])
    assert said(server)[-1][1] == "Your notes:\n- c 3\n- d 4\n\ndoor"


def test_notes_need_a_format_with_text_around_the_action() -> None:
    settings = AgentSettings(format="plain", style="notes")
    with pytest.raises(ConfigError, match="got 'plain': use --format tag, boxed or json"):
        styled(transformers_agent(small_model(), settings), "notes").act([request(turn=0, observation="wall")])


TRIES = (
    Try((ChatTurn("wall", "I go <action>left</action>", "left"),), "the end", False),
    Try((ChatTurn("wall", "<action>up</action>", "up"),), "the end", False, (("reflection", "Left was wrong."),)),
)


def test_reflexion_tells_what_was_learnt_in_earlier_tries(server: ChatServerForTests) -> None:
    agent = agent_in(server, "reflexion")
    agent.remind(7, TRIES)
    decisions = play(agent, 2, episode=7)
    looked_back, acted, later = said(server, 0), said(server, 1), said(server, 2)
    assert "You answered:\n<action>up</action>" in looked_back[-1][1] and "the end" in looked_back[-1][1]
    assert "left</action>" not in looked_back[-1][1], "only the last try is looked back at"
    for prompt in (acted, later):
        assert prompt[0][1].endswith("What you noted then:\n- Left was wrong.\n- Go up first.")
    assert [[note.text for note in d.notes] for d in decisions] == [["Go up first."], []]


def test_after_a_success_nothing_is_reflected_on(server: ChatServerForTests) -> None:
    agent = agent_in(server, "reflexion")
    agent.remind(7, [TRIES[0], Try(TRIES[1].turns, "a door", True, TRIES[1].notes)])
    assert not play(agent, 1, episode=7)[0].notes and len(server.requests) == 1
    assert said(server)[0][1].endswith("- Left was wrong.")


def test_a_reflection_on_a_long_try_leaves_its_first_turns_out(server: ChatServerForTests) -> None:
    agent = agent_in(server, "reflexion", max_prompt_tokens=300)
    turns = tuple(ChatTurn(f"a wall of many stones, number {i}", "<action>up</action>", "up") for i in range(40))
    agent.remind(0, [Try(turns, "the end", False)])
    play(agent, 1)
    text = said(server, 0)[-1][1]
    assert "turns are left out.)" in text and "number 39" in text and "number 0\n" not in text


def test_calls_of_one_turn_have_seeds_of_their_own_that_repeat() -> None:
    def seeds() -> list[int]:
        with chat_server(scripted) as server:
            agent = agent_in(server, "reflexion")
            agent.remind(0, TRIES)
            play(agent, 2)
            return [body["seed"] for body in server.requests]

    first = seeds()
    assert len(set(first)) == 3 and seeds() == first


def test_pictures_of_the_current_turn_alone_are_sent(server: ChatServerForTests) -> None:
    agent = agent_in(server, "react")
    picture = np.zeros((2, 2, 3), np.uint8)
    for turn in range(2):
        agent.act([request(turn=turn, observation=f"wall {turn}", image=picture)])
    users = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "user"]
    assert users[0] == "wall 0" and [part["type"] for part in users[1]] == ["text", "image_url"]


def test_turns_run_side_by_side_whatever_calls_they_need() -> None:
    meeting = threading.Barrier(3, timeout=30)  # opens only once three episodes are at the server together

    def answer(body: Body) -> Reply:
        if "did not solve the task" in body["messages"][-1]["content"]:
            meeting.wait()
        return scripted(body)

    with chat_server(answer) as server:
        agent = agent_in(server, "reflexion")
        for episode in range(3):
            agent.remind(episode, TRIES[:1])
        assert len(agent.act([request(episode=i) for i in range(3)])) == 3
        agent.abandon()  # nothing is under way


def local(style: str, **prompt: Any) -> StyledAgent:
    settings = AgentSettings(temperature=1.0, max_new_tokens=5, prompt=prompt, seed=1)
    agent = styled(transformers_agent(small_model(), settings), style)
    assert isinstance(agent, StyledAgent)
    return agent


@pytest.mark.parametrize("style", ["react", "summary:budget=120,keep=1", "reflexion", "notes"])
def test_a_model_in_this_process_plays_in_the_same_styles(style: str) -> None:
    agent = local(style)
    agent.remind(0, TRIES)
    decisions = play(agent, 4, observation="player 2 3 box 3 3 goal 4 1 number {}")
    for decision in decisions:
        usage = decision.usage
        assert usage is not None and usage.calls == 1 + len(decision.notes)
        assert decision.prompt_ids and len(decision.completion_ids) == len(decision.logprobs) > 0
        assert usage.tokens_in >= len(decision.prompt_ids), "that of the call with the action, and of all together"
    assert any(d.notes for d in decisions) == (style not in ("react", "notes"))
    assert isinstance(agent.details(), dict) and agent.model is not None


def test_what_a_local_model_samples_does_not_depend_on_who_else_plays() -> None:
    together = local("react").act([request(episode=i, observation="goal 4 1") for i in range(4)])
    for i in (3, 1):
        [alone] = local("react").act([request(episode=i, observation="goal 4 1")])
        assert alone.completion_ids == together[i].completion_ids
    assert len({decision.completion_ids for decision in together}) > 1


def test_styles_are_found_by_name_with_their_options() -> None:
    assert {"plain", "react", "reflexion", "summary"} <= set(STYLES)
    assert make_style("summary:budget=70,keep=3").describe()["options"] == {"budget": 70, "keep": 3, "words": 120}
    with pytest.raises(UnknownName, match=r"no style of prompting named 'reakt'.*react"):
        make_style("reakt")
    with pytest.raises(ConfigError, match=r"the style 'summary' has no option 'bugdet'.*budget"):
        make_style("summary:bugdet=3")


@pytest.mark.parametrize(
    "text", ["summary:keep=-1", "summary:words=0", "summary:budget=x", "reflexion:keep=0", "notes:share=2"]
)
def test_options_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"must be (a whole number of at least|above 0)"):
        make_style(text)


def test_an_agent_without_a_model_has_no_style() -> None:
    with pytest.raises(ConfigError, match=r"'react' is for agents that ask a language model.*leave --style out"):
        make_agent("random", AgentSettings(style="react"))
    assert type(make_agent("random", AgentSettings(style="plain"))).__name__ == "RandomAgent"


def test_the_hash_covers_style_options_and_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = {prompt_hash("tag", {}, make_style(text).describe()) for text in ("react", "summary", "summary:keep=9")}
    kind: Any = STYLES["react"]
    monkeypatch.setattr(kind, "texts", {"how": "Think."})
    hashes |= {prompt_hash("tag", {}, make_style("react").describe()), prompt_hash("tag", {})}
    assert len(hashes) == 5


def test_plain_as_a_style_shows_the_conversation_and_adds_nothing() -> None:
    with chat_server(scripted) as server:
        inside = make_agent(f"openai:model@{server.url}", AgentSettings(server=QUICK))
        assert isinstance(inside, ServerAgent) and styled(inside, "plain") is inside
        agent = StyledServerAgent(make_style("plain"), inside)
        play(agent, 2)
        assert [role for role, _ in said(server)] == ["system", "user", "assistant", "user"]


def test_a_conversation_without_answers_says_so() -> None:
    messages = conversation([ChatTurn("wall", "", "")], Message("user", "door"), note_of("auto", ["up"]))
    assert messages[1].text == "(no answer)" and messages[0].text.startswith("(1 earlier turn is left out.)")
    assert EpisodeMemory().turns == [] and Usage() == Usage()
