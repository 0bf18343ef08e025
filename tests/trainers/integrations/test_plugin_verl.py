"""verl's own agent-loop worker plays our episodes; its batch, advantages and loss are taken for real."""

import asyncio
import doctest
import importlib
import importlib.metadata
from typing import Any

import pytest
import torch
from plugin_examples import code_lines, example

from turngym.errors import ConfigError

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not any(importlib.metadata.distributions(name="verl")),
        reason="verl is in .venvs/verl only: run make test-integration",
    ),
]
WALK = "turngym/NumberLine-v0"


@pytest.fixture(scope="module")
def played() -> Any:
    """The example, run once: verl's batch, the server with all that it answered, and the loss."""
    return example("verl_agent_loop").main()


def rows_of(batch: Any) -> list[dict[str, Any]]:
    """Return the episodes of a batch without their padding."""
    found = []
    for row in range(len(batch)):
        data = {name: batch.batch[name][row] for name in batch.batch.keys()}  # noqa: SIM118  (a TensorDict)
        width = data["prompts"].shape[0]
        said, answered = data["attention_mask"][:width].bool(), data["attention_mask"][width:].bool()
        found.append(
            {
                "prompt": data["prompts"][said].tolist(),
                "response": data["responses"][answered].tolist(),
                "mask": data["response_mask"][answered].tolist(),
                "rollout": data["rollout_log_probs"][answered],
                "now": data["log_probs"][answered] if "log_probs" in data else None,
                "score": float(data["rm_scores"].sum()),
            }
        )
    return found


def answers_in(ids: list[int], mask: list[int]) -> list[tuple[int, int]]:
    """Return where the runs of sampled tokens begin and end."""
    edges = [i for i in range(len(mask) + 1) if (mask[i] if i < len(mask) else 0) != (mask[i - 1] if i else 0)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def test_every_turn_saw_all_tokens_before_it_and_none_of_them_changed(played: Any) -> None:
    batch, server, _ = played
    sampled = {(tuple(prompt), tuple(answer)) for prompt, answer in server.answers}
    turns = 0
    for row in rows_of(batch):
        spans = answers_in(row["response"], row["mask"])
        for start, end in spans:
            assert (tuple(row["prompt"] + row["response"][:start]), tuple(row["response"][start:end])) in sampled
        assert row["mask"][0] == row["mask"][-1] == 1, "a response begins and ends with an answer"
        turns += len(spans)
    assert turns == len(server.answers) == sum(batch.non_tensor_batch["turns"])


def test_the_masked_tokens_are_what_the_environment_said(played: Any) -> None:
    batch, server, _ = played
    for row, turns in zip(rows_of(batch), batch.non_tensor_batch["turns"], strict=True):
        said = [token for token, kept in zip(row["response"], row["mask"], strict=True) if not kept]
        text = server.model.tokenizer.decode(said)
        assert text.count("<|im_start|>user\n") == text.count("<|im_start|>assistant\n") == turns - 1
        assert "<action>" not in text


def test_the_score_is_the_return_of_the_episode_and_ends_are_told_apart(played: Any) -> None:
    batch, _, _ = played
    columns = batch.non_tensor_batch
    scores = [row["score"] for row in rows_of(batch)]
    assert scores == list(columns["episode_return"]) == [sum(each) for each in columns["turn_scores"]]
    assert set(scores) == {0.0, 1.0}, "some were solved, some were not"
    assert list(columns["terminated"] + columns["truncated"]) == [1.0] * len(scores)
    assert list(columns["terminated"]) == scores
    assert list(columns["faulted"]) == [0.0] * len(scores)


def test_members_of_a_group_begin_alike(played: Any) -> None:
    rows = rows_of(played[0])
    prompts = [row["prompt"] for row in rows]
    assert all(prompts[start : start + 4] == [prompts[start]] * 4 for start in range(0, len(rows), 4))


def test_log_probabilities_of_the_rollout_are_those_of_a_forward_pass_over_the_batch(played: Any) -> None:
    batch, _, loss = played
    for row in rows_of(batch):
        mask = torch.tensor(row["mask"], dtype=torch.bool)
        torch.testing.assert_close(row["rollout"][mask], row["now"][mask], rtol=0, atol=2e-4)
        assert not row["rollout"][~mask].any()
    assert loss == loss and abs(loss) < 10


def test_an_update_with_verls_loss_makes_good_answers_likelier(played: Any) -> None:
    """The gradient has the right sign: the advantage-weighted log-probability rises with the update."""
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    batch, server, _ = played
    data = batch.batch
    groups = [number // 4 for number in range(len(batch))]
    advantages, _ = compute_grpo_outcome_advantage(data["rm_scores"], data["response_mask"], groups)
    with torch.no_grad():
        logits = server.model.network(
            data["input_ids"], data["attention_mask"], position_ids=data["position_ids"]
        ).logits
    width = data["responses"].shape[1]
    after = logits[:, -width - 1 : -1].log_softmax(-1).gather(-1, data["responses"][..., None]).squeeze(-1)
    gain = ((after - data["log_probs"]) * advantages * data["response_mask"]).sum()
    assert gain > 0


class Scripted:
    """A server manager that always answers with the same text."""

    def __init__(self, tokenizer: Any, text: str) -> None:
        self.ids = [*tokenizer.encode(text), tokenizer.eos_token_id]
        self.prompts: list[list[int]] = []

    async def generate(self, *, prompt_ids: list[int], **other: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        self.prompts.append(list(prompt_ids))
        return TokenOutput(token_ids=self.ids, log_probs=[-0.5] * len(self.ids))


def play(text: str, row: dict[str, Any], room: int = 400, model_type: str = "qwen3", **settings: Any) -> Any:
    """Return the output of one episode, the server and the tokenizer."""
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap

    from turngym.trainers.integrations.verl import TurngymAgentLoop

    tiny = example("tiny_model")
    tokenizer = tiny.tiny_model(tiny.talks(8), steps=0)[1]
    rollout = {"prompt_length": 500, "response_length": room}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
    server = Scripted(tokenizer, text)

    async def run() -> Any:
        both = DictConfigWrap(config), DictConfigWrap(config.data)
        loop = TurngymAgentLoop(
            both[0],
            server,
            tokenizer,
            None,
            None,
            both[1],
            hf_model_type=model_type,
            **{"max_new_tokens": 16, **settings},
        )
        return await loop.run({"temperature": 1.0, "top_p": 1.0}, raw_prompt=row["prompt"], **row)

    return asyncio.run(run()), server, tokenizer


def row_of(env_id: str, seed: int, **task: Any) -> dict[str, Any]:
    from turngym.trainers.integrations.verl import verl_rows

    return verl_rows(env_id, range(seed, seed + 1), **task)[0]


@pytest.mark.parametrize("model_type", ["qwen3", "llama"])
def test_with_every_family_of_templates_the_tokens_are_those_of_the_whole_conversation(model_type: str) -> None:
    """verl's builder for Qwen adds the line end after an end token, which is not sampled; the default one does not."""
    output, server, tokenizer = play(
        "<action>A B</action>", row_of("turngym/TowerOfHanoi-v0", 0), model_type=model_type
    )
    text = tokenizer.decode(output.prompt_ids + output.response_ids)
    newline = "\n" if model_type == "qwen3" else ""
    assert text.count(f"<action>A B</action><|im_end|>{newline}<|im_start|>user") == len(server.prompts) - 1 > 1
    assert sum(output.response_mask) == len(server.prompts) * len(server.ids)
    assert output.num_turns == 2 * len(server.prompts)


def test_an_episode_without_room_for_a_further_turn_is_cut_and_truncated() -> None:
    output, server, _ = play("<action>-</action>", row_of(WALK, 3), room=60)
    info = output.extra_fields["reward_extra_info"]
    assert (info["truncated"], info["terminated"]) == (1.0, 0.0)
    assert 1 <= len(server.prompts) < 10
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs) <= 60
    assert output.response_mask[-1] == 1


@pytest.mark.parametrize("method", ["apply_action", "begin"])
def test_after_a_fault_no_token_counts_and_the_batch_goes_on(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from turngym.envs.textgames.number_line import NumberLine

    def break_down(self: Any, argument: Any) -> Any:
        raise OSError("gone")

    monkeypatch.setattr(NumberLine, method, break_down)
    output, _, _ = play("<action>+</action>", row_of(WALK, 3))
    assert output.extra_fields["reward_extra_info"]["faulted"] == 1.0
    assert output.response_ids and not any(output.response_mask)
    assert output.reward_score == 0.0


def test_what_does_not_fit_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match="response_length=60"):
        play("x", row_of(WALK, 3), room=60, max_new_tokens=61)
    with pytest.raises(ConfigError, match=r"tokens, more than rollout\.prompt_length=500"):
        play("x", {**row_of(WALK, 3), "prompt": [{"role": "system", "content": "Be brief. " * 200}]})
    with pytest.raises(ConfigError, match="column 'seed'"):
        play("x", {**row_of(WALK, 3), "seed": None})


def test_settings_wrappers_and_seats_of_games_come_with_the_row() -> None:
    row = row_of("turngym/KuhnPokerSeat-v0", 5, settings={"opponents": "random"}, wrappers=["turn_limit:limit=2"])
    output, _, tokenizer = play("<action>nonsense</action>", row, legal_actions=True)
    assert "Kuhn poker" in tokenizer.decode(output.prompt_ids)
    assert "Legal actions:" in tokenizer.decode(output.prompt_ids)
    assert output.extra_fields["reward_extra_info"]["invalid_actions"] >= 1.0


def test_the_example_is_short() -> None:
    assert code_lines("verl_agent_loop") < 60


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(importlib.import_module("turngym.trainers.integrations.verl")).failed == 0


def test_turngyms_credit_reads_the_batch_of_the_loop(played: Any) -> None:
    """GiGPO through verl's trainer's function: anchors and rewards of turns have arrived, nothing else is credited."""
    from verl.trainer.ppo import ray_trainer

    from turngym.trainers.integrations.verl_credit import register_all

    register_all()
    batch, _, _ = played
    batch.non_tensor_batch["uid"] = [f"group {number // 4}" for number in range(len(batch))]
    batch.batch["token_level_rewards"] = batch.batch["rm_scores"]
    found = ray_trainer.compute_advantage(batch, adv_estimator="turngym_gigpo")
    advantages, mask = found.batch["advantages"], found.batch["response_mask"].bool()
    assert advantages[mask].any() and not advantages[~mask].any()
    for row in range(len(batch)):
        ids = [len(each) for each in (batch.non_tensor_batch[f"turn_{name}"][row] for name in ("anchors", "valid"))]
        assert ids == [batch.non_tensor_batch["turns"][row]] * 2
    solved = batch.non_tensor_batch["success"] == 1
    totals = (advantages * mask).sum(-1) / mask.sum(-1)
    assert totals[solved].mean() > totals[~solved].mean()
