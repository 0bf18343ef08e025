"""What the warm-up's loss counts: tokens that are written, and, where wished, tokens that are read."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from small import agent_of, small_model, sokoban_vector
from torch import Tensor, nn

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError
from turngym.seeding import stream
from turngym.trainers.core.rows import Read, Row, build_rows
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop import control
from turngym.trainers.loop.setup import build_supervised
from turngym.trainers.loop.sft import SupervisedConfig, SupervisedLearner, demonstrations, with_observations
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.supervised import WarmupPrecision


@pytest.fixture(scope="module")
def played() -> list[Trajectory]:
    """Conversations, two of which are the same: a sequence that is met twice counts twice."""
    vector = sokoban_vector(4, max_moves=2)
    try:
        found = demonstrations(vector, agent_of(small_model(), "conversation"), 6, 0)
    finally:
        vector.close()
    return [*found, found[0]]


def expected_gradients(model: LanguageModel, played: Sequence[Trajectory], weight: float) -> tuple[float, list[Tensor]]:
    """Return the mean loss of a written token and the gradients, sequence by sequence and token by token."""
    total, divisor, written_loss, written = torch.zeros((), dtype=torch.float64), 0.0, 0.0, 0
    for row in build_rows(played, with_final_prompts=False):
        ids = torch.tensor([row.ids.tolist()])
        losses = -torch.log_softmax(model.network(input_ids=ids).logits[0, :-1], -1)
        losses = losses.gather(1, ids[0, 1:, None])[:, 0]
        places = {read.position for read in row.reads}
        for place, loss in enumerate(losses):
            share = 1.0 if place in places else weight
            total, divisor = total + share * loss, divisor + share
            written_loss, written = written_loss + float(loss.detach()) * (place in places), written + (place in places)
    parameters = list(model.network.parameters())
    return written_loss / written, list(torch.autograd.grad(total / divisor, parameters))


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_read_tokens_weigh_as_much_as_was_said(weight: float, played: list[Trajectory]) -> None:
    model = small_model(dtype=torch.float64)
    mean, gradients = expected_gradients(model, played, weight)
    config = SupervisedConfig(learning_rate=1e-9, observation_weight=weight)
    learner = SupervisedLearner(model.network, played, config, 0)
    assert learner.run_epoch() == pytest.approx(mean, rel=1e-9)
    length = torch.stack([gradient.norm() for gradient in gradients]).norm().clamp(min=1.0)  # they are clipped
    for parameter, gradient in zip(model.network.parameters(), gradients, strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, gradient / length, rtol=1e-4, atol=1e-9)


def written_logprobs(network: nn.Module, row: Row) -> Tensor:
    """Return the log-probability of each token of a sequence that is written."""
    logprobs = torch.log_softmax(network(input_ids=torch.tensor([row.ids.tolist()])).logits[0, :-1], -1)
    places = torch.tensor([read.position for read in row.reads])
    return logprobs[places, torch.tensor(row.ids.tolist())[places + 1]]


def test_proximal_updates_take_ratios_to_the_model_without_dropout(played: list[Trajectory]) -> None:
    model = small_model(dtype=torch.float64)
    for layer in model.network.model.layers:
        layer.self_attn.attention_dropout = 0.5
    learner = SupervisedLearner(model.network, played[:2], SupervisedConfig(learning_rate=1e-9, clip=0.28), 0)
    learner.run_epoch()
    rows = build_rows(played[:2], with_final_prompts=False)
    expected = [written_logprobs(model.network, row) for row in rows]  # the network is in eval mode again
    for number, row in enumerate(expected):
        torch.testing.assert_close(learner._kept_logprobs[number][: len(row)], row, rtol=1e-5, atol=1e-6)


def test_only_the_lack_of_an_expert_advises_to_go_without_demonstrations(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any, **options: Any) -> None:
        raise ConfigError("a wrong setting")

    advice = "pass --warmup.demonstrations 0"
    student = agent_of(small_model())
    no_expert = make_vec("turngym/Gymnasium-v0", 1, autoreset_mode="disabled")
    with no_expert as vector, pytest.raises(ConfigError, match=f"no expert action.*{advice}"):
        demonstrations(vector, student, 1, 0)
    monkeypatch.setattr(student.builder, "prompt", refused)
    with sokoban_vector(1) as vector, pytest.raises(ConfigError, match="a wrong setting") as raised:
        demonstrations(vector, student, 1, 0)
    assert advice not in str(raised.value)


@pytest.mark.parametrize("clip", [0.28, 0.01])
def test_proximal_updates_take_ratios_to_the_model_before_them_and_stop_at_the_clip(
    clip: float, played: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PSFT: PPO's clip with an advantage of 1; the first update of a pass is that of supervised learning."""
    model = small_model(dtype=torch.float64)
    start, parameters = copy.deepcopy(model.network), list(model.network.parameters())
    config = SupervisedConfig(learning_rate=1e-2, batch_size=2, clip=clip)
    learner = SupervisedLearner(model.network, played, config, 0)
    order = stream("supervised", 0, 0).permutation(len(learner.batch.sequences)).tolist()
    ended, largest = iter([False, False, True]), list[float]()
    step = learner.optimizer.step
    updates: list[list[int]] = []

    def checked() -> None:
        chosen = order[2 * len(updates) : 2 * len(updates) + 2]
        terms = []
        for number in chosen:
            row = learner.batch.sequences[number]
            ratio = (written_logprobs(model.network, row) - written_logprobs(start, row).detach()).exp()
            largest.append(float(ratio.detach().max()))
            terms += [ratio.clamp_max(1 + clip)] * int((learner.batch.sequence_of == number).sum())
        expected = torch.autograd.grad(-torch.cat(terms).mean(), parameters)
        length = torch.stack([each.norm() for each in expected]).norm().clamp(min=1.0)  # they are clipped
        for parameter, gradient in zip(parameters, expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient / length, rtol=1e-4, atol=1e-9)
        step()
        updates.append(chosen)

    monkeypatch.setattr(learner.optimizer, "step", checked)
    learner.run_epoch(lambda: next(ended))
    assert len(updates) == 2 and largest[:2] == pytest.approx([1, 1]) and max(largest[2:]) > 1.01


def test_a_model_that_learns_what_it_reads_predicts_it_better(played: list[Trajectory]) -> None:
    def loss_of_reading(weight: float) -> float:
        model = small_model(hidden=32)
        learner = SupervisedLearner(
            model.network, played, SupervisedConfig(learning_rate=1e-2, observation_weight=weight), 0
        )
        for _ in range(20):
            learner.run_epoch()
        prompt = torch.tensor([played[0].turns[0].prompt_ids])
        with torch.no_grad():
            chances = torch.log_softmax(model.network(input_ids=prompt).logits[0, :-1], -1)
        return -float(chances.gather(1, prompt[0, 1:, None]).mean())

    assert loss_of_reading(0.5) < 0.5 * loss_of_reading(0.0)


@pytest.mark.parametrize("weight", [-0.1, 1.5, float("nan")])
def test_a_weight_out_of_range_is_told(weight: float) -> None:
    with pytest.raises(ConfigError, match=r"observation_weight must be a number in \[0, 1\], got"):
        SupervisedConfig(observation_weight=weight)


def test_where_only_a_critic_reads_the_next_token_is_still_an_observation() -> None:
    row = Row.of([5, 6, 7, 8], [Read(1, -1, -1, 2, 0), Read(2, 8, 0, 3, 0)])
    assert [(read.target, read.token) for read in with_observations(row).reads] == [(6, -1), (7, -1), (8, 0)]


def test_products_in_bf16_give_about_the_same_gradients_and_weights_stay_float32(played: list[Trajectory]) -> None:
    def learnt(precision: WarmupPrecision) -> tuple[float, Tensor, set[torch.dtype]]:
        model, formats = small_model(), set[torch.dtype]()
        layer = model.network.get_submodule("model.layers.0.mlp.down_proj")
        layer.register_forward_hook(lambda module, inputs, out: formats.add(out.dtype))
        config = SupervisedConfig(learning_rate=1e-9, precision=precision)
        loss = SupervisedLearner(model.network, played, config, 0).run_epoch()
        found = [parameter.grad for parameter in model.network.parameters() if parameter.grad is not None]
        assert {each.dtype for each in (*found, *model.network.parameters())} == {torch.float32}
        return loss, torch.cat([gradient.flatten() for gradient in found]), formats

    loss, whole, formats = learnt("fp32")
    other_loss, short, other_formats = learnt("bf16")
    assert formats == {torch.float32} and other_formats == {torch.bfloat16}
    assert other_loss != loss and other_loss == pytest.approx(loss, rel=0.01)
    assert float(torch.cosine_similarity(whole, short, dim=0)) > 0.999
    assert float(whole.norm()) == pytest.approx(float(short.norm()), rel=0.02)


def test_a_precision_of_the_warm_up_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="precision must be one of 'fp32', 'bf16', got 'fp16'"):
        SupervisedConfig(precision="fp16")  # type: ignore[arg-type]


def gradients(played: Sequence[Trajectory], **memory: Any) -> tuple[list[Tensor], int, int]:
    """Return the gradients of an update, the largest micro-batch in tokens, and the bytes that backward passes need."""
    model = small_model()
    sizes: list[int] = []
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    model.network.get_input_embeddings().register_forward_hook(lambda _, inputs, out: sizes.append(inputs[0].numel()))
    learner = SupervisedLearner(model.network, played, SupervisedConfig(learning_rate=1e-9), 0, **memory)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        learner.run_epoch()
    found = [parameter.grad for parameter in model.network.parameters() if parameter.grad is not None]
    return found, max(sizes), sum(saved.values())


def test_checkpointed_layers_give_the_same_gradients_to_the_last_bit(played: list[Trajectory]) -> None:
    expected, _, whole = gradients(played)
    found, _, kept = gradients(played, gradient_checkpointing=True)
    assert kept < 0.8 * whole
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))


def test_micro_batches_keep_to_their_tokens(played: list[Trajectory]) -> None:
    expected, whole, _ = gradients(played)
    longest = max(len(row.ids) for row in build_rows(played, with_final_prompts=False))
    found, largest, _ = gradients(played, max_micro_batch_tokens=2 * longest)
    assert largest <= 2 * longest < whole
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


def test_the_warm_up_takes_the_memory_settings_of_the_run(played: list[Trajectory]) -> None:
    config = TrainConfig(update=UpdateConfig(max_micro_batch_tokens=77, gradient_checkpointing=True))
    learner = build_supervised(config, small_model(), played)
    assert learner.max_micro_batch_tokens == 77 and learner._checkpointed
    plain = build_supervised(TrainConfig(), small_model(), played)
    assert plain.max_micro_batch_tokens == 16_384 and not plain._checkpointed


def test_the_control_ends_when_it_knows_the_demonstrations_by_heart(
    played: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epochs after that let AdamW's steps grow until the loss went from 2e-9 to that of guessing."""
    monkeypatch.setattr(control, "_LEARNT_BY_HEART", 1.0)  # soon reached
    time = iter([False] * 300)
    learner = SupervisedLearner(small_model().network, played[:1], SupervisedConfig(learning_rate=1e-2), 0)
    losses = control.learn(learner, lambda: next(time, True))
    assert losses[-1] < 1.0 <= min(losses[:-1]) and next(time, None) is False, "there was time left"
    assert len(control.learn(learner, lambda: True)) == 0


def test_weight_decay_leaves_norms_and_biases_of_the_warm_up_alone(played: list[Trajectory]) -> None:
    network = small_model().network
    learner = SupervisedLearner(network, played, SupervisedConfig(), 0)
    decays = {id(p): group["weight_decay"] for group in learner.optimizer.param_groups for p in group["params"]}
    own = list(network.parameters())
    assert len(decays) == len(own) and {p.ndim for p in own} == {1, 2}
    assert all((decays[id(p)] > 0) == (p.ndim == 2) for p in own)
