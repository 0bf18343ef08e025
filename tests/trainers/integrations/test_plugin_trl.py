"""TRL's GRPOTrainer, the installed one, trains on our environments through both of its hooks."""

import importlib.metadata
from typing import Any

import pytest
import torch
from plugin_examples import code_lines, example

from turngym.agents.models.generate import Completion
from turngym.trainers.integrations.episode import Episode

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not any(importlib.metadata.distributions(name="trl")),
        reason="trl is in .venvs/plugins only: run make test-integration",
    ),
]


def spy(trainer_class: Any, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Note what each generation gives to the loss: the padded tensors, and the lists that they are made of."""
    seen: list[dict[str, Any]] = []
    generate, score = trainer_class._generate, trainer_class._generate_and_score_completions

    def noting_generate(self: Any, prompts: Any) -> Any:
        found = generate(self, prompts)
        seen.append({"prompt_ids": found[0], "completion_ids": found[1], "mask": found[2], "logprobs": found[4]})
        return found

    def noting_score(self: Any, inputs: Any) -> Any:
        found = score(self, inputs)
        seen[-1]["trained"] = found
        return found

    monkeypatch.setattr(trainer_class, "_generate", noting_generate)
    monkeypatch.setattr(trainer_class, "_generate_and_score_completions", noting_score)
    return seen


def moved(trainer: Any, before: dict[str, torch.Tensor]) -> bool:
    return any(not torch.equal(value, before[name]) for name, value in trainer.model.state_dict().items())


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The example with tools, run once: the trainer, and all that its generations, tools and rewards saw."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
        script = example("trl_tools")
        record: dict[str, Any] = {"calls": [], "returns": [], "sampled": []}
        step = Episode.step

        def noting_step(self: Episode, action: str) -> str:
            record["calls"].append(action)
            return step(self, action)

        patch.setattr(Episode, "step", noting_step)

        def noting_reward(environments: Any, **columns: Any) -> list[float]:
            both = zip(environments, columns["seed"], strict=True)
            record["returns"].append([(env.episode.result, env.get_reward(), seed) for env, seed in both])
            return [0.0] * len(environments)

        single = script.GRPOTrainer._generate_single_turn

        def noting_single(self: Any, *args: Any, **options: Any) -> Any:
            found = single(self, *args, **options)
            record["sampled"] += found[0]
            return found

        patch.setattr(script.GRPOTrainer, "_generate_single_turn", noting_single)
        patch.setattr(script, "solved", noting_reward)
        record["generations"] = spy(script.GRPOTrainer, patch)
        weights: dict[str, torch.Tensor] = {}
        make = script.tiny_model

        def noting_model(*args: Any) -> Any:
            model, tokenizer = make(*args)
            record["calls"].clear()  # those of its demonstrations
            weights.update({name: value.clone() for name, value in model.state_dict().items()})
            return model, tokenizer

        patch.setattr(script, "tiny_model", noting_model)
        trainer = script.main(str(tmp_path_factory.mktemp("tools")))
        return trainer, record, weights


def test_three_steps_of_grpo_with_tools_change_the_weights(tools: Any) -> None:
    trainer, _, weights = tools
    assert trainer.state.global_step == 3
    assert moved(trainer, weights)


def test_the_model_reaches_the_tool_and_its_arguments_are_actions(tools: Any) -> None:
    trainer, record, _ = tools
    assert {"+", "-"} <= set(record["calls"])
    assert all(entry["tools/call_frequency"] > 0.5 for entry in trainer.state.log_history if "reward" in entry)


def test_the_reward_of_trl_is_the_return_of_the_environment(tools: Any) -> None:
    trainer, record, _ = tools
    logged = list(trainer._logs["rewards"]["NumberLine"])
    returns = [reward for results in record["returns"] for _, reward, _ in results]
    assert logged == returns[-len(logged) :]
    assert returns == [float(sum(result.rewards)) for results in record["returns"] for result, _, _ in results]
    assert {0.0, 1.0} == set(returns), "some were solved, some were not"


def test_members_of_a_group_play_the_same_task(tools: Any) -> None:
    _, record, _ = tools
    seeds = [seed for results in record["returns"] for _, _, seed in results]
    groups = [seeds[start : start + 4] for start in range(0, len(seeds), 4)]
    assert all(len(set(group)) == 1 for group in groups)
    assert len({group[0] for group in groups}) > 1


def test_with_tools_only_sampled_tokens_are_trained_on_and_the_tools_tokens_are_masked(tools: Any) -> None:
    trainer, record, _ = tools
    pieces = {tuple(ids) for ids in record["sampled"]}
    said_by_tools = 0
    for generation in record["generations"]:
        for row, (ids, mask) in enumerate(zip(generation["completion_ids"], generation["mask"], strict=True)):
            spans = split(ids, mask)
            assert all(tuple(span) in pieces for span in spans), "what is trained on was sampled as it is"
            text = trainer.processing_class.decode([token for token, kept in zip(ids, mask, strict=True) if not kept])
            assert "You are at" in text or len(spans) == 1
            said_by_tools += text.count("You are at")
            trained = generation["trained"]
            assert trained["completion_ids"][row, : len(ids)].tolist() == ids
            assert trained["tool_mask"][row, : len(ids)].tolist() == mask
    assert said_by_tools == len(record["calls"])


def test_rows_of_one_run_choose_among_several_environments(tools: Any, tmp_path: Any) -> None:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from turngym.trainers.integrations.trl import tool_environment

    factories = {
        "walk": tool_environment("turngym/NumberLine-v0", highest=3, max_turns=4),
        "cards": tool_environment("turngym/KuhnPokerSeat-v0", opponents="random"),
    }
    config = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=8,
        report_to="none",
        max_completion_length=300,
        max_tool_calling_iterations=4,
        use_cpu=True,
        bf16=False,
        save_strategy="no",
    )
    prompt = [{"role": "user", "content": "Play."}]
    rows = [{"prompt": prompt, "seed": seed, "environment": name} for seed in range(4) for name in factories]
    trainer = GRPOTrainer(
        tools[0].model,
        processing_class=tools[0].processing_class,
        args=config,
        train_dataset=Dataset.from_list(rows),
        environment_factory=factories,
    )
    trainer.train()
    kinds = {type(env).__name__ for env in trainer.environments}
    assert kinds == {"NumberLine", "KuhnPokerSeat"}
    assert all(env.get_reward() is not None for env in trainer.environments)


def split(ids: list[int], mask: list[int]) -> list[list[int]]:
    """Return the runs of tokens whose mask is 1."""
    spans: list[list[int]] = []
    for position, (token, kept) in enumerate(zip(ids, mask, strict=True)):
        if kept and (position == 0 or not mask[position - 1]):
            spans.append([])
        if kept:
            spans[-1].append(token)
    return spans


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The example with a rollout function, run once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
        script = example("trl_rollout")
        from turngym.trainers.integrations.trl import Rollout

        answers: list[Completion] = []
        sample = Rollout._generate_here

        def noting(self: Any, *args: Any) -> list[Completion]:
            found = sample(self, *args)
            answers.extend(found)
            return found

        patch.setattr(Rollout, "_generate_here", noting)
        generations = spy(script.GRPOTrainer, patch)
        trainer = script.main(str(tmp_path_factory.mktemp("rolled")))
        return trainer, generations, answers


def test_three_steps_of_grpo_with_a_rollout_function(rolled: Any) -> None:
    trainer, generations, _ = rolled
    assert trainer.state.global_step == len(generations) == 3
    assert any(entry.get("grad_norm", 0) > 0 for entry in trainer.state.log_history)


def test_a_rollout_trains_on_the_sampled_tokens_with_their_log_probabilities(rolled: Any) -> None:
    _, generations, answers = rolled
    sampled = {answer.ids: answer.logprobs for answer in answers}
    count = 0
    for generation in generations:
        columns = (generation[name] for name in ("completion_ids", "mask", "logprobs"))
        for ids, mask, logprobs in zip(*columns, strict=True):
            spans = split(ids, mask)
            assert all(tuple(span) in sampled for span in spans)
            assert len(logprobs) == len(ids)
            assert all((value == 0.0) or kept for value, kept in zip(logprobs, mask, strict=True))
            count += len(spans)
        trained = generation["trained"]
        rows = range(len(generation["mask"]))
        assert [trained["tool_mask"][row, : len(generation["mask"][row])].tolist() for row in rows] == generation[
            "mask"
        ]
    assert count == len(answers), "no answer is lost"


def test_two_games_share_a_batch(rolled: Any) -> None:
    trainer, generations, _ = rolled
    texts = [trainer.processing_class.decode(ids) for each in generations for ids in each["prompt_ids"]]
    assert any("number line" in text for text in texts)
    assert any("Kuhn poker" in text for text in texts)


@pytest.mark.parametrize("name", ["trl_tools", "trl_rollout"])
def test_the_examples_are_short(name: str) -> None:
    assert code_lines(name) < 60
