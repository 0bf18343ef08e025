"""``turngym play``: a person or an agent plays one episode in the terminal."""

from collections.abc import Iterable

import gymnasium
import pytest

from turngym.__main__ import main

GUESS = "turngym/GuessTheNumber-v0"


def type_in(monkeypatch: pytest.MonkeyPatch, lines: Iterable[str], at_end: type[BaseException] = EOFError) -> None:
    """Let ``input`` return these lines, then raise."""
    waiting = iter(lines)

    def read(prompt: str = "") -> str:
        for line in waiting:
            return line
        raise at_end

    monkeypatch.setattr("builtins.input", read)


def expert_actions(seed: int) -> list[str]:
    env = gymnasium.make(GUESS).unwrapped
    env.reset(seed=seed)
    actions, over = [], False
    while not over:
        actions.append(env.expert_action())  # type: ignore[attr-defined]
        _, _, terminated, truncated, _ = env.step(actions[-1])
        over = terminated or truncated
    return actions


def test_a_person_who_finds_the_number_is_told_return_and_score(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    actions = expert_actions(3)
    type_in(monkeypatch, actions)
    assert main(["play", GUESS, "--seed", "3"]) == 0
    shown = capsys.readouterr().out
    assert f"{GUESS}, seed 3" in shown and "I have chosen a whole number" in shown
    assert shown.count("reward 0, return 0") == len(actions) - 1 and shown.count("reward 1, return 1") == 1
    assert f"solved after {len(actions)} turns: return 1, score 1" in shown


def test_an_action_that_is_not_valid_is_said_to_be_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, ["[bold]?", *["1"] * 9])
    assert main(["play", GUESS, "--seed", "3"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("(not a valid action)") == 1
    assert "turn limit reached after 10 turns: return 0, score 0" in shown


@pytest.mark.parametrize("lines", [["5", "quit"], ["5", " EXIT "], ["5"]])
def test_quit_and_the_end_of_input_leave_cleanly(
    lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, lines)
    assert main(["play", GUESS, "--seed", "3"]) == 0
    assert "left after 1 turns" in capsys.readouterr().out


def test_an_interrupt_ends_with_status_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    type_in(monkeypatch, [], at_end=KeyboardInterrupt)
    assert main(["play", GUESS]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("agent", [["expert"], ["random", "--style", "critic:by=expert,play=suggested"]])
def test_the_expert_is_watched_and_solves_it(agent: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", GUESS, "--seed", "3", "--agent", *agent]) == 0
    shown = capsys.readouterr().out
    assert [line.removeprefix("action> ") for line in shown.splitlines() if "action> " in line] == expert_actions(3)
    assert "solved after" in shown


def test_the_random_agent_repeats_itself_with_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    seen = []
    for seed in ("3", "3", "4"):
        assert main(["play", GUESS, "--seed", seed, "--agent", "random"]) == 0
        seen.append(capsys.readouterr().out)
    assert seen[0] == seen[1] != seen[2]


def test_options_reach_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["play", GUESS, "--seed", "3", "--agent", "expert", "--option", "high=3", "--option", "max_turns=2"]
    assert main(words) == 0
    assert "from 1 to 3. Find it in at most 2 guesses" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([GUESS, "--option", "hihg=3"], "turngym/GuessTheNumber-v0 has no option 'hihg'. Did you mean 'high'?"),
        ([GUESS, "--option", "high=0"], "high of turngym/GuessTheNumber-v0 must be a whole number in"),
        ([GUESS, "--option", "high"], "--option takes KEY=VALUE, such as max_turns=20, got 'high'."),
        ([GUESS, "--split", "tset"], "turngym/GuessTheNumber-v0 has no split 'tset'. Did you mean 'test'?"),
        (["turngym/GuessNumber-v0"], "Did you mean 'turngym/GuessTheNumber-v0'?"),
        (["inspect:sums.py@task"], "with `turngym train --agent.package inspect:sums.py@task`."),
        (["CartPole-v1"], "CartPole-v1 is not a text environment of turngym"),
    ],
)
def test_a_wrong_word_is_explained(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", *words]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and message in shown and shown.count("\n") == 1


def test_an_agent_that_does_not_exist_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", GUESS, "--agent", "exprt"]) == 2
    assert "Did you mean 'expert'?" in capsys.readouterr().err
