"""The style critic: each action is read before it is played, by a model or by another agent."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_servers import QUICK, Body, ChatServerForTests, Reply, chat_server, request
from small import small_model, sokoban_vector
from vision_models import embedded_model

from turngym.__main__ import main
from turngym.agents.core import Decision
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.loading import LanguageModel
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.players.styled import StyledAgent, styled
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.prompting.styles import make_style
from turngym.agents.prompting.styles.critic import Verdict, read_verdict
from turngym.agents.trajectory import EpisodeSpec
from turngym.errors import ConfigError, ServerDown


def player(body: Body) -> Reply:
    """Propose up; after an objection, what the critic says last."""
    last = body["messages"][-1]["content"]
    found = last.partition("\n\n")[0].rpartition("The critic: go ")[2] if "a critic calls wrong" in last else "up"
    return Reply(f"<action>{found}</action>", usage=(20, 4))


def strict(body: Body) -> Reply:
    """Call every action but down wrong."""
    last = body["messages"][-1]["content"]
    is_wrong = "Proposed action:\ndown" not in last
    text = "Verdict: wrong\nSuggestion: go left\nAction: right" if is_wrong else "It is fine.\nVerdict: right"
    return Reply(text, usage=(50, 7))


@pytest.fixture
def server() -> Iterator[ChatServerForTests]:
    with chat_server(player) as running:
        yield running


def agent_in(server: ChatServerForTests, style: str, **prompt: Any) -> StyledAgent:
    settings = AgentSettings(
        prompt=prompt, server={**QUICK, "prices": {"input": 1e6, "output": 1e6}}, style=style, seed=3
    )
    agent = make_agent(f"openai:model@{server.url}", settings)
    assert isinstance(agent, StyledAgent)
    return agent


def play(agent: StyledAgent, turns: int) -> list[Decision]:
    return [agent.act([request(turn=turn, observation=f"wall {turn}")])[0] for turn in range(turns)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Verdict: right", Verdict(False)),
        ("Verdict: right?\nNo. **Verdict**: WRONG\n**Suggestion:** wait\n", Verdict(True, "wait")),
        ("verdict - wrong\n- Suggestion: a: b\nAction:  run `ls`\nps", Verdict(True, "a: b", "run `ls`\nps")),
        ("Action: left\nVerdict: wrong", Verdict(True)),
        ("Verdict: right or wrong", Verdict(None)),
        ("I am not sure. Verdict: rightly so", Verdict(None)),
        ("", Verdict(None)),
    ],
)
def test_verdicts_are_read_from_any_text(text: str, expected: Verdict) -> None:
    assert read_verdict(text) == expected


def test_the_player_is_asked_again_with_the_suggestion(server: ChatServerForTests) -> None:
    with chat_server(strict) as judge:
        decisions = play(agent_in(server, f"critic:by=openai:m@{judge.url},tries=2"), 2)
        assert [decision.action for decision in decisions] == ["left", "left"]
        assert [len(server.requests), len(judge.requests)] == [6, 4], "the last proposal is played unread"
        asked = judge.requests[2]["messages"]
        assert "Find the door." in asked[0]["content"] and "'Action: TEXT'" not in asked[0]["content"]
        for part in ("Seen:\nwall 0\nAction:\nleft", "Seen now:\nwall 1\nProposed action:\nup"):
            assert part in asked[1]["content"]
        again = server.requests[2]["messages"][-1]["content"]
        assert again.endswith("Action: left\nThe critic: go left\n\nwall 0") and "Action: up\n" in again
        assert [m["content"] for m in server.requests[3]["messages"][1:3]] == ["wall 0", "<action>left</action>"]
        assert len({body["seed"] for body in server.requests}) == 6
    for decision in decisions:
        usage = decision.usage
        assert usage is not None
        tokens = 3 * 20 + 2 * 50, 3 * 4 + 2 * 7
        assert (usage.calls, usage.tokens_in, usage.tokens_out, usage.cost) == (5, *tokens, sum(tokens))
        assert (usage.reviews, usage.objections, usage.unreadable) == (2, 2, 0)
        assert [note.purpose for note in decision.notes] == ["critic", "rejected"] * 2


@pytest.mark.parametrize("tries", [0, 1])
def test_the_critics_own_action_is_played_if_asked_for(server: ChatServerForTests, tries: int) -> None:
    with chat_server(strict) as judge:
        agent = agent_in(server, f"critic:by=openai:m@{judge.url},tries={tries},play=suggested")
        [decision] = play(agent, 1)
        assert (decision.action, decision.completion) == ("right", "<action>right</action>")
        assert "'Action: TEXT'" in judge.requests[0]["messages"][0]["content"]
        assert decision.usage is not None and decision.usage.calls == 2 * (tries + 1)
        assert decision.notes[-1].purpose == "rejected" and not decision.completion_ids


@pytest.mark.parametrize(
    "verdict", [Reply("no idea", usage=(50, 7)), Reply(status=400, raw=b"no"), Reply("", usage=(50, 0))]
)
def test_an_unreadable_verdict_is_no_objection_and_counted(server: ChatServerForTests, verdict: Reply) -> None:
    with chat_server(lambda body: verdict) as judge:
        decisions = play(agent_in(server, f"critic:by=openai:m@{judge.url}"), 2)
    assert [decision.action for decision in decisions] == ["up", "up"]
    assert [(d.usage.objections, d.usage.unreadable) for d in decisions if d.usage] == [(0, 1)] * 2
    assert len(server.requests) == 2


def test_the_players_own_model_judges_by_default_and_sees_what_the_player_sees() -> None:
    def both(body: Body) -> Reply:
        return strict(body) if "Give your verdict." in str(body["messages"][-1]["content"]) else player(body)

    with chat_server(both) as server:
        picture = np.zeros((2, 2, 3), np.uint8)
        [decision] = agent_in(server, "critic").act([request(turn=0, observation="wall", image=picture)])
        kinds = [[part["type"] for part in body["messages"][-1]["content"]] for body in server.requests]
        assert kinds == [["text", "image_url"]] * 3 and decision.usage is not None and decision.usage.calls == 3


SHORT = AgentSettings(temperature=1.0, max_new_tokens=5, seed=1)


def test_a_local_model_plays_and_judges_the_same_alone_and_in_company() -> None:
    def decisions(count: int) -> list[Decision]:
        agent = styled(transformers_agent(small_model(), SHORT), "critic:tries=2")
        return agent.act([request(episode=i, observation="goal 4 1") for i in range(count)])

    together = decisions(4)
    assert decisions(1)[0].completion_ids == together[0].completion_ids != together[1].completion_ids
    for decision in together:
        usage = decision.usage
        assert usage is not None and usage.calls == 2 and usage.unreadable == 1
        assert decision.prompt_ids and len(decision.completion_ids) == len(decision.logprobs) > 0
        assert usage.tokens_in > len(decision.prompt_ids)


@pytest.mark.parametrize("by_another", [True, False])
def test_player_and_critic_share_the_cost_limit(by_another: bool, server: ChatServerForTests) -> None:
    with chat_server(player) as judge:
        settings = {**QUICK, "prices": {"input": 1e6, "output": 0}, "max_cost": 100}
        style = f"critic:by=openai:m@{judge.url}" if by_another else "critic"
        agent: Any = make_agent(f"openai:m@{server.url}", AgentSettings(server=settings, style=style))
        with pytest.raises(ServerDown, match=r"has spent 100\.0000 USD"):
            play(agent, 9)
        assert len(server.requests) + len(judge.requests) == 5, "20 USD each"


@pytest.mark.parametrize("suggestion", ["x " * 5000, "x" * 5000])
def test_long_objections_end_no_episode(suggestion: str, server: ChatServerForTests) -> None:
    server.answer = lambda body: Reply("<action>up</action>")
    with chat_server(lambda body: Reply(f"Verdict: wrong\nSuggestion: {suggestion}")) as judge:
        agent = agent_in(server, f"critic:by=openai:m@{judge.url},tries=3,words=20", max_prompt_tokens=300)
        decisions = play(agent, 3)
    assert not any(decision.too_long or decision.fault for decision in decisions)
    assert any("The critic: x" in body["messages"][-1]["content"] for body in server.requests)


def test_a_critic_whose_prompt_does_not_fit_has_no_verdict() -> None:
    settings = AgentSettings(temperature=1.0, max_new_tokens=5, prompt={"max_prompt_tokens": 200})
    agent = styled(transformers_agent(small_model(), settings), "critic")
    [decision] = agent.act([request(observation="goal 4 1")])
    assert not decision.too_long and decision.usage is not None
    assert (decision.usage.calls, decision.usage.unreadable) == (1, 1)


@pytest.fixture(scope="module")
def seeing() -> LanguageModel:
    return embedded_model()


def test_a_local_model_that_sees_is_shown_the_picture_of_the_turn(seeing: LanguageModel) -> None:
    def played(brightness: int) -> Decision:
        agent = styled(transformers_agent(seeing, SHORT), "critic")
        picture = np.full((32, 48, 3), brightness, np.uint8)
        for turn in range(2):
            [decision] = agent.act([request(turn=turn, observation=f"push {turn}", image=picture)])
        assert len(decision.pictures) == 1 and seeing.pictures is not None
        assert decision.prompt_ids.count(seeing.pictures.placeholder) == len(seeing.pictures.ids_of(48, 32))
        assert decision.usage is not None and decision.usage.calls == 2
        return decision

    dark, bright = played(0), played(250)
    assert dark.prompt_ids[:20] == bright.prompt_ids[:20] and dark.pictures != bright.pictures
    assert dark.logprobs != bright.logprobs, "the model sees the picture"


def test_an_expert_reads_what_an_untrained_model_proposes() -> None:
    with sokoban_vector(4, max_turns=8) as vector:
        agent = styled(transformers_agent(small_model(), SHORT), "critic:by=expert,tries=0,play=suggested")
        played = rollout(vector, agent, [EpisodeSpec(i, i) for i in range(6)])
    usages = [turn.usage for each in played for turn in each.turns]
    assert all(usage is not None and usage.objections == 1 for usage in usages)
    assert sum(each.success == 1 for each in played) >= 3 and not any(each.fault for each in played)


def shares(env: str, *words: str, capsys: pytest.CaptureFixture[str]) -> tuple[float, float]:
    """Return the interval of the random player's success."""
    assert main(["eval", env, "--agent", "random", "--json", *words]) == 0
    numbers = json.loads(capsys.readouterr().out)["environments"]
    [found] = numbers.values()
    return found["success"]["ci_low"], found["success"]["ci_high"]


@pytest.mark.parametrize(
    ("env", "style", "episodes"),
    [
        ("turngym/FrozenLake-v0", "critic:by=expert,tries=8", "20"),
        ("turngym/WebSite-v0", "critic:by=expert,play=suggested", "8"),
    ],
)
def test_random_play_gets_better_with_an_expert_critic(
    env: str, style: str, episodes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--episodes", episodes
    assert shares(env, *words, "--style", style, capsys=capsys)[0] > shares(env, *words, capsys=capsys)[1]


def test_an_evaluation_is_resumed_with_the_same_verdicts(server: ChatServerForTests, tmp_path: Path) -> None:
    """Resume an evaluation whose critic asks the environments, with a player behind a server."""
    words = ["eval", "turngym/GuessTheNumber-v0", "--agent", f"openai:model@{server.url}", "--option", "high=8"]
    words += ["--episodes", "4", "--style", "critic:by=expert,tries=1,play=suggested", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    lines = (tmp_path / "out" / "episodes.jsonl").read_text().splitlines(keepends=True)
    seats = [json.loads(line)["seats"]["player_0"] for line in lines]
    assert sum(seat["objections"] for seat in seats) > 0
    (tmp_path / "out" / "episodes.jsonl").write_text("".join(lines[:2]))
    (tmp_path / "out" / "results.json").unlink()
    assert main([*words, "--resume"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "episodes.jsonl").read_text().splitlines()]
    assert [row["actions"] for row in rows] == [json.loads(line)["actions"] for line in lines]
    assert [row["seats"]["player_0"]["objections"] for row in rows] == [seat["objections"] for seat in seats]


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ("critic:tries=0", "whole number from 1 to 20, got 0"),
        ("critic:tries=-1,play=suggested", "whole number from 0 to 20"),
        ("critic:play=best", "must be last or suggested, got 'best'"),
        ("critic:words=0", "at least 1, got 0"),
        ("critic:by=3", "must name an agent"),
        ("critic:server=3", "must be a JSON object"),
    ],
)
def test_options_out_of_range_are_refused(style: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_style(style)


def test_an_agent_without_a_model_cannot_judge_itself() -> None:
    with pytest.raises(ConfigError, match="RandomAgent asks no language model: name one, as in critic:by=expert"):
        make_agent("random", AgentSettings(style="critic"))
