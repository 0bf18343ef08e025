"""A run is explained in one sentence from its metrics, with the page that helps, and it never claims too much."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from report_pages import written
from synthetic_runs import metrics_record, run_folder

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.explanation import CAUSES, LAST, PAGE, explanation, look_at
from turngym.trainers.report.findings import RunData, read_run
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

DOCS = Path(__file__).parents[3]
SHORT = RolloutConfig(groups=2, group_size=3, max_new_tokens=16)
TINY = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 4, "highest": 3},
    algorithm="grpo",
    iterations=12,
    max_seconds=0,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=300),
    warmup=SupervisedConfig(demonstrations=60, epochs=40, learning_rate=0.01),
    rollout=SHORT,
    update=UpdateConfig(minibatches=2),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)


def changed(section: str, **options: Any) -> dict[str, Any]:
    return {section: dataclasses.replace(getattr(TINY, section), **options)}


FAILING: Mapping[str, tuple[dict[str, Any], str]] = {
    "answers cut off": (
        {**changed("rollout", max_new_tokens=2), **changed("warmup", demonstrations=0), "iterations": 2},
        r"9\d\.\d % of the completions|100.0 % of the completions were cut at their longest length",
    ),
    "format never met": (
        {
            **changed("rollout", max_new_tokens=600, groups=1, group_size=2),
            **changed("warmup", demonstrations=0),
            "iterations": 1,
        },
        "100.0 % of the actions were invalid in the last iteration",
    ),
    "equal groups": (changed("rollout", temperature=0.001), r"\d % of the groups had equal returns"),
    "no entropy": (
        {"algorithm": "reinforce", **changed("rollout", temperature=0.001)},
        r"the entropy was \S+ nats per token in the last 10 iterations",
    ),
}


@pytest.mark.parametrize("fault", FAILING)
def test_a_run_that_is_built_to_fail_is_explained(fault: str, tmp_path: Path) -> None:
    options, expected = FAILING[fault]
    result = train(dataclasses.replace(TINY, **options), tmp_path / "run")
    assert re.search(expected, result.explanation), result.explanation
    assert result.explanation == explanation(read_run(RunFolder(result.path)))
    assert result.explanation in result.report.read_text("utf8").replace("&#34;", '"').replace("&#39;", "'")


def run_of(metrics: Sequence[Mapping[str, Any]], **config: Any) -> RunData:
    return RunData("run", {"env": "turngym/NumberLine-v0", **config}, metrics, {}, {}, None, ())


def flat(**metrics: float) -> list[dict[str, Any]]:
    return [{"rollout/success": 0.2 + 0.01 * (number % 2), **metrics} for number in range(20)]


def test_success_that_rises_or_falls_in_training_is_said_with_its_ends() -> None:
    rising = [metrics_record(number, gain=0.03) for number in range(20)]
    assert explanation(run_of(rising)).startswith("Success rose from 43.5 % to 73.5 % (training, first and last 10")
    assert "look at" not in explanation(run_of(rising))
    falling = [{**record, "policy/kl_sampler": 0.4} for record in reversed(rising)]
    assert "fell from 73.5 % to 43.5 %" in explanation(run_of(falling))
    assert "updates moved the policy by 0.4 nats" in explanation(run_of(falling))


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({}, "no single cause is seen in the metrics"),
        ({"rollout/context": 0.5}, "50.0 % of the episodes ended because the next prompt did not fit"),
        ({"rollout/faults": 1.0, "rollout/episodes": 3.0}, "25.0 % of the episodes broke"),
        ({"rollout/success": 1.0, "credit/groups_with_equal_returns": 1.0}, "at least 95.0 % succeeded from the start"),
        ({"train/grad_norm": 0.0}, "every gradient was 0"),
        ({"policy/staleness_mean": 6.0}, "samples were 6.0 iterations old"),
        ({"policy/sampler_gap_k3": 0.05}, "sampler and trainer differed by 0.05 nats"),
        ({"policy/sampler_gap_k3": 0.05, "policy/staleness_mean": 2.0}, "the policy was 0.05 nats"),
        ({"rollout/episodes": 1.0}, "success varies so much that a change of"),
        ({"rollout/overlong": 0.9, "rollout/invalid_actions": 0.9}, "90.0 % of the completions were cut"),
    ],
)
def test_the_first_cause_in_the_metrics_is_named(metrics: dict[str, float], expected: str) -> None:
    assert expected in explanation(run_of(flat(**metrics)))


def test_a_tiny_learning_rate_and_a_run_that_is_too_short_are_named() -> None:
    assert "the learning rate is 1e-12" in explanation(run_of(flat(), update={"learning_rate": 1e-12}))
    assert "3 iterations are too few to tell" in explanation(run_of(flat()[:3]))


def test_the_hint_to_play_has_the_options_of_the_run() -> None:
    options = {"data": "my questions.jsonl", "tools": ["python"]}
    found = explanation(
        run_of(flat(**{"rollout/invalid_actions": 1.0}), env="turngym/Questions-v0", env_options=options)
    )
    command = """play turngym/Questions-v0 --option 'data=my questions.jsonl' --option 'tools=["python"]' --agent hf:"""
    assert command in found


def test_nothing_is_made_up_where_nothing_is_recorded() -> None:
    assert explanation(run_of([])).startswith("Nothing was trained") and look_at(run_of([])) == []
    assert explanation(run_of([{"iteration": 0}] * 12)).startswith("Whether success changed is not known; no single")
    huge = [{"rollout/success": 0.5, "rollout/faults": 10**400, "policy/kl_sampler": "x"}] * 20
    assert "no single cause" in explanation(run_of(huge, update=[]))
    game = run_of([metrics_record(number) for number in range(20)], env="turngym/TicTacToe-v0")
    assert explanation(game).startswith("Whether success changed is not known"), "opponents change in self-play"


def test_only_the_last_iterations_count() -> None:
    early, late = flat(**{"rollout/invalid_actions": 1.0}), flat(**{"rollout/invalid_actions": 0.0})
    assert "invalid" not in explanation(run_of([*early, *late[:LAST]]))
    assert "invalid in the last 10 iterations" in explanation(run_of([*late, *early[:LAST]]))
    unplayed = [{name: value for name, value in each.items() if "invalid" not in name} for each in late]
    found = explanation(run_of([*early[:1], *unplayed[: LAST - 1]]))
    assert "invalid in 1 of the last 10 iterations (the others have no value)" in found


def test_the_other_causes_are_listed_on_the_page(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {"warmup-sampled": [0] * 8, "final-sampled": [0] * 8})
    assert "What to look at" not in written(folder)[0]
    for number in range(LAST):
        broken = {"rollout/invalid_actions": 1.0, "rollout/overlong": 1.0, "rollout/success": 0.1}
        folder.append_metrics({**metrics_record(20 + number), **broken})
    text = written(folder)[0]
    assert "100.0 % of the completions were cut" in text.partition("What to look at")[0]
    assert "100.0 % of the actions were invalid in the last 10 iterations." in text.partition("What to look at")[2]


def test_every_cause_has_a_section_on_the_page() -> None:
    sections = re.findall(r'"([a-z-]+)"[,)]\n', (DOCS / "trainers/report/explanation.py").read_text("utf8"))
    page = (DOCS / PAGE).read_text("utf8")
    titles = {title.lower().replace(" ", "-").replace(",", "") for title in re.findall(r"^### (.+)$", page, re.M)}
    assert len(CAUSES) >= len(titles) >= 8 and {each for each in sections if each != "update"} == titles
