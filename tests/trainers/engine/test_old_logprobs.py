"""Ratios against the trainer's own log-probabilities, and corrections for the gap between trainer and sampler."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from small import group_specs, play, small_model
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers import PreparedBatch, build, prepare
from turngym.trainers.algorithms.base.clipped import PolicyMethod
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner

torch.set_num_threads(1)

BF16 = 0.043
"""Deviation of gaps as rounding in bfloat16 gives them: measured with a model of 135 M parameters, mean |gap| 0.034."""
NO_KL = {"grpo": {"kl_coef": 0.0}}
STALE = 0.4


def with_gaps(model: LanguageModel, played: Sequence[Trajectory], deviation: float) -> list[Trajectory]:
    """The episodes with log-probabilities that differ from the model's own by random gaps."""
    generator = torch.Generator().manual_seed(1)
    exact = prepare(played, model, build("grpo", NO_KL), old_logprobs="trainer").table.token_trainer_logprob
    assert exact is not None
    noisy = iter((exact + deviation * torch.randn(len(exact), generator=generator, dtype=torch.float64)).tolist())
    return [
        replace(each, turns=[replace(turn, logprobs=tuple(next(noisy) for _ in turn.logprobs)) for turn in each.turns])
        for each in played
    ]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_model(dtype=torch.float64)


@pytest.fixture(scope="module")
def episodes(model: LanguageModel) -> list[Trajectory]:
    """Stale episodes with unequal returns in every group."""
    played = play(model, specs=group_specs(3, 4))
    for number, each in enumerate(played):
        each.turns[-1].reward = float(number % 3)
    return with_gaps(model, played, STALE)


def long_answers(model: LanguageModel) -> list[Trajectory]:
    """Answers of 256 tokens in groups of four, half of them right."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for number in range(12):
        ids = tuple(torch.randint(5, 60, (256,), generator=generator).tolist())
        turn = Turn("s", "s", "up", prompt_ids=(3, 4), completion_ids=ids, logprobs=(0.0,) * 256, reward=number % 2)
        found.append(Trajectory(EpisodeSpec(number, 0, number // 4), "game", turns=[turn], terminated=True))
    return with_gaps(model, found, BF16)


def ratios(algorithm: Algorithm[Any], batch: PreparedBatch) -> Tensor:
    """The importance ratio of each sampled token."""
    assert isinstance(algorithm, PolicyMethod)
    found = [algorithm.surrogate(part).ratio[part.action_mask].detach() for part in batch.micro_batches()]
    return torch.cat(found)


def test_rounding_alone_clips_gspo_unless_ratios_are_against_the_trainer(model: LanguageModel) -> None:
    """The weights that sampled are those that are trained, and only rounding in bfloat16 lies between them."""
    answers, gspo = long_answers(model), build("gspo")
    against_sampler = ratios(gspo, prepare(answers, model, gspo))
    outside = (against_sampler < 1 - 3e-4) | (against_sampler > 1 + 4e-4)
    assert outside.double().mean() >= 0.75
    against_trainer = ratios(gspo, prepare(answers, model, gspo, old_logprobs="trainer"))
    torch.testing.assert_close(against_trainer, torch.ones_like(against_trainer), rtol=0, atol=1e-9)
    fractions = {}
    for way in ("sampler", "trainer"):
        learner = Learner(small_model(dtype=torch.float64), build("gspo"), UpdateConfig(old_logprobs=way))
        fractions[way] = learner.update(answers, 0)["loss/clip_fraction"]
    assert fractions["sampler"] > 0.25  # the clip decides on one side only, by the sign of the advantage
    assert fractions["trainer"] == 0


@pytest.mark.parametrize(
    "name", ["grpo", "ppo", "turn_ppo", "gigpo", "gspo", "gmpo", "cispo", "dapo", "rloo", "ppo+turn_is", "grpo+mis"]
)
def test_at_the_first_update_every_ratio_is_one(name: str, episodes: list[Trajectory]) -> None:
    wide = {"mis": {"low": 0.5, "high": 2.0}} if name.endswith("mis") else {}
    algorithm = build(name, wide)
    metrics = Learner(small_model(dtype=torch.float64), algorithm, UpdateConfig(old_logprobs="trainer")).update(
        episodes, 0
    )
    assert metrics["loss/ratio_mean"] == pytest.approx(1, abs=1e-9)
    assert metrics["loss/clip_fraction"] == 0
    assert metrics["policy/sampler_gap_k3"] == pytest.approx(STALE**2 / 2, rel=0.5)
    assert metrics["policy/kl_sampler"] == pytest.approx(metrics["policy/sampler_gap_k3"], rel=1e-6)
    assert metrics["train/logprob_gap"] > STALE


def test_later_updates_have_ratios_against_the_policy_before_the_first(episodes: list[Trajectory]) -> None:
    config = UpdateConfig(old_logprobs="trainer", epochs=3)
    learner = Learner(small_model(dtype=torch.float64), build("grpo", NO_KL), config)
    batch = learner.prepare(episodes)
    before = batch.table.token_trainer_logprob
    learner.update(episodes, 0)
    (part,) = batch.micro_batches(max_tokens=10**6)
    assert torch.equal(torch.sort(part.old_logprobs[part.action_mask])[0], torch.sort(before)[0])  # type: ignore[arg-type]
    assert (ratios(learner.algorithm, batch) - 1).abs().max() > 1e-3


def policy_gradients(name: str, model: LanguageModel, played: list[Trajectory], **options: Any) -> dict[str, Tensor]:
    """The gradient by each token's log-probability, its advantage, weight and gap, token by token."""
    algorithm = build(name, {**NO_KL, **options})
    batch = prepare(played, model, algorithm)
    found: dict[str, list[Tensor]] = {key: [] for key in ("gradient", "advantage", "average", "gap", "ratio")}
    for part in batch.micro_batches():
        output = algorithm.loss(part)
        (gradient,) = torch.autograd.grad(output.total(part), part.logprobs)
        assert part.sampler_logprobs is not None
        values = {
            "gradient": gradient,
            "advantage": part.advantages,
            "average": part.weights["trajectory"],
            "gap": part.old_logprobs - part.sampler_logprobs,
            "ratio": (part.logprobs - part.old_logprobs).exp().detach(),
        }
        for key, value in values.items():
            found[key].append(value[part.action_mask])
    return {key: torch.cat(value) for key, value in found.items()}


def test_the_gradient_of_decoupled_ppo_is_minus_weight_times_advantage(
    model: LanguageModel, episodes: list[Trajectory]
) -> None:
    """Where the current policy is the proximal one: -w A, averaged as the base does."""
    found = policy_gradients("grpo+tis", model, episodes)
    weight = found["gap"].exp().clamp_max(2.0)
    assert 0.02 < (weight == 2).double().mean() < 0.5
    torch.testing.assert_close(found["gradient"], -weight * found["advantage"] * found["average"])


def test_without_a_gap_every_weight_is_one(model: LanguageModel, episodes: list[Trajectory]) -> None:
    exact = with_gaps(model, episodes, 0.0)
    plain = build("grpo", NO_KL)
    (expected,) = prepare(exact, model, plain).micro_batches(max_tokens=10**6)
    gradient = torch.autograd.grad(plain.loss(expected).total(expected), expected.logprobs)[0][expected.action_mask]
    for name in ("grpo+tis", "grpo+icepop", "grpo+mis", "grpo+mis+tis"):
        found = policy_gradients(name, model, exact)
        torch.testing.assert_close(torch.sort(found["gradient"])[0], torch.sort(gradient)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("counted", ["kept", "all"])
def test_masked_tokens_leave_the_loss_and_by_default_its_average(
    counted: str, model: LanguageModel, episodes: list[Trajectory]
) -> None:
    found = policy_gradients("grpo+icepop", model, episodes, icepop={"low": 0.8, "high": 1.5, "counted": counted})
    kept = (found["gap"].exp() >= 0.8) & (found["gap"].exp() <= 1.5)
    assert 0.2 < kept.double().mean() < 0.9
    assert not found["gradient"][~kept].any()
    expected = -found["gap"].exp() * found["advantage"] * found["average"]
    torch.testing.assert_close(found["gradient"][kept], expected[kept])
    assert found["average"].sum() == pytest.approx(1)
    assert bool(found["average"][~kept].any()) == (counted == "all")


@pytest.mark.parametrize("level", ["turn", "episode"])
def test_a_segment_leaves_as_a_whole(level: str, model: LanguageModel, episodes: list[Trajectory]) -> None:
    limits = {"level": level, "low": 0.93, "high": 1.07}
    batch = prepare(episodes, model, build("grpo+mis", {**NO_KL, "mis": limits}))
    masked, table = batch.credit.masked, batch.table
    assert masked is not None and table.token_trainer_logprob is not None
    segments = table.token_turn if level == "turn" else table.to_tokens(table.episode)
    gaps = table.token_trainer_logprob - table.token_logprob
    for segment in segments.unique():
        here = segments == segment
        outside = not 0.93 <= float(gaps[here].mean().exp()) <= 1.07
        assert masked[here].tolist() == [outside] * int(here.sum())
    assert 0 < masked.double().mean() < 1
    assert batch.credit.metrics["mis_masked"] == pytest.approx(float(masked.double().mean()))


def test_a_batch_of_which_nothing_stays_trains_nothing(episodes: list[Trajectory]) -> None:
    model = small_model(dtype=torch.float64)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    narrow = {"mis": {"low": 1.0, "high": 1.0 + 1e-12}}
    metrics = Learner(model, build("ppo+mis", narrow), UpdateConfig(learning_rate=0.1)).update(episodes, 0)
    assert metrics["credit/mis_masked"] == 1
    assert metrics["train/grad_norm"] == 0
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())


def test_equal_sequences_keep_their_own_gaps(model: LanguageModel, episodes: list[Trajectory]) -> None:
    """One pass through the network serves them, and each has its sampler's log-probabilities."""
    pair = [replace(episodes[0], spec=EpisodeSpec(e, 0, 0)) for e in range(2)]
    pair[1] = replace(pair[1], turns=[replace(turn, logprobs=(-1.0,) * len(turn.logprobs)) for turn in pair[1].turns])
    batch = prepare(pair, model, build("grpo", NO_KL), old_logprobs="trainer")
    assert batch.num_rows > batch.num_sequences
    table = batch.table
    assert table.token_trainer_logprob is not None
    half = len(table.token_logprob) // 2
    torch.testing.assert_close(table.token_trainer_logprob[:half], table.token_trainer_logprob[half:])
    assert not torch.equal(table.token_logprob[:half], table.token_logprob[half:])


def test_the_approximation_of_a3po_is_of_the_sampler_either_way(
    model: LanguageModel, episodes: list[Trajectory]
) -> None:
    """Against the trainer's log-probabilities its line from sampler to current policy would have no length."""
    stale = [replace(each, turns=[replace(turn, staleness=2) for turn in each.turns]) for each in episodes]
    found = []
    for way in ("sampler", "trainer"):
        algorithm = build("a3po")
        (part,) = prepare(stale, model, algorithm, old_logprobs=way).micro_batches(max_tokens=10**6)
        output = algorithm.loss(part)
        found.append(torch.autograd.grad(output.total(part), part.logprobs)[0])
        assert (output.metrics["behaviour_weight"].values[part.action_mask] - 1).abs().max() > 0.1
    torch.testing.assert_close(found[0], found[1])


def test_by_default_nothing_more_is_computed(model: LanguageModel, episodes: list[Trajectory]) -> None:
    batch = prepare(episodes, model, build("grpo", NO_KL))
    assert batch.table.token_trainer_logprob is None
    assert batch.table.token_old_logprob is batch.table.token_logprob
    assert all(part.sampler_logprobs is None for part in batch.micro_batches())


def test_bad_settings_are_named() -> None:
    with pytest.raises(ConfigError, match="old_logprobs must be one of 'sampler', 'trainer', got 'vllm'"):
        UpdateConfig(old_logprobs="vllm")  # type: ignore[arg-type]
    for part, options, message in (
        ("tis", {"cap": 0.5}, "cap must be at least 1"),
        ("tis", {"level": "sequence"}, "level must be one of token, turn, episode"),
        ("icepop", {"low": 1.0, "high": 1.0}, "no ratio would stay"),
        ("icepop", {"counted": "none"}, "counted must be one of kept, all"),
        ("mis", {"by": "max"}, "a ratio has two sides"),
        ("mis", {"veto": -1.0}, "veto must be from 0 to 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            build(f"grpo+{part}", {part: options})


def test_a_table_without_the_trainers_log_probabilities_is_named(episodes: list[Trajectory]) -> None:
    from turngym.trainers.core.turn_table import turn_table

    with pytest.raises(ConfigError, match="has no 'token_trainer_logprob'"):
        build("grpo+tis").credit(turn_table(episodes))


def test_what_bfloat16_really_rounds_is_clipped_in_the_same_way() -> None:
    """A sampler in bfloat16 beside a trainer in single precision with the same weights."""
    low, model = small_model(hidden=64), small_model(hidden=64)
    for each in (low, model):
        # tied with the head: logits as of a trained model
        with torch.no_grad():
            next(iter(each.network.get_input_embeddings().parameters())).mul_(8)
    answers = long_answers(model)
    low.network.bfloat16()
    rounded = with_gaps(low, answers, 0.0)
    gspo = build("gspo")
    sampler = ratios(gspo, prepare(rounded, model, gspo))
    outside = (sampler < 1 - 3e-4) | (sampler > 1 + 4e-4)
    batch = prepare(rounded, model, gspo, old_logprobs="trainer")
    assert batch.table.token_trainer_logprob is not None
    gap = (batch.table.token_trainer_logprob - batch.table.token_logprob).abs().mean()
    assert 0.005 < gap < 0.5
    assert outside.double().mean() >= 0.75
    torch.testing.assert_close(ratios(gspo, batch), torch.ones_like(sampler), rtol=0, atol=1e-6)


@pytest.mark.parametrize("layout", ["rows", "packed"])
def test_a_trainer_in_bfloat16_agrees_with_itself_in_every_update_of_the_first_pass(layout: Any) -> None:
    """On some processors the other sequences of a batch change how one is rounded: prox has the updates' batches."""
    model = small_model(hidden=64)
    with torch.no_grad():
        next(iter(model.network.get_input_embeddings().parameters())).mul_(8)
    cut = [replace(each.turns[0]) for each in long_answers(model)]
    for number, turn in enumerate(cut):
        length = 100 + 13 * number
        turn.completion_ids, turn.logprobs = turn.completion_ids[:length], turn.logprobs[:length]
    played = [Trajectory(EpisodeSpec(e, 0, e // 4), "game", turns=[turn]) for e, turn in enumerate(cut)]
    model.network.bfloat16()
    gspo = build("gspo")
    config = UpdateConfig(minibatches=4, old_logprobs="trainer", layout=layout)
    learner = Learner(model, gspo, config)
    batch = learner.prepare(played, iteration=3)
    found = [
        gspo.surrogate(part).ratio[part.action_mask].detach()  # type: ignore[attr-defined]
        for sequences in learner._updates_of(batch.sequences, 3, 0)
        for part in batch.micro_batches(sequences=sequences)
    ]
    torch.testing.assert_close(torch.cat(found), torch.ones(sum(map(len, found))))


@pytest.mark.parametrize("name", ["grpo", "ppo", "gspo", "gigpo", "cispo", "gmpo", "rloo", "grpo+mis", "reinforce_pp"])
def test_the_only_update_of_an_iteration_needs_no_pass_before_it(name: str, episodes: list[Trajectory]) -> None:
    wide = {"mis": {"low": 0.5, "high": 2.0}} if name.endswith("mis") else {}
    config = UpdateConfig(old_logprobs="trainer", epochs=1, minibatches=1)
    found = []
    for saves_a_pass in (True, False):
        learner = Learner(small_model(dtype=torch.float64), build(name, wide), config)
        if not saves_a_pass:
            learner = _EarlyLearner(small_model(dtype=torch.float64), build(name, wide), config)
        metrics = learner.update(episodes, 0)
        found.append((metrics, [p.detach().clone() for p in learner.network.parameters()]))
    (own, own_weights), (early, early_weights) = found
    assert own == pytest.approx(early, rel=1e-9, abs=1e-9)
    for one, other in zip(own_weights, early_weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


class _EarlyLearner(Learner):
    """Computes the trainer's log-probabilities before the only update of an iteration as well."""

    _makes_one_update = False


@pytest.mark.parametrize(("name", "passes"), [("grpo", 0), ("reinforce_pp", 1), ("grpo+tis", 1)])
def test_a_credit_that_reads_the_trainers_log_probabilities_has_them(
    name: str, passes: int, model: LanguageModel, episodes: list[Trajectory]
) -> None:
    options = {"reinforce_pp": {"reward_kl_coef": 0.1}} if name == "reinforce_pp" else {}
    batch = prepare(episodes, model, build(name, options), reference=model.network, old_logprobs="own")
    assert (batch.table.token_trainer_logprob is not None) == bool(passes)
    (part,) = batch.micro_batches(max_tokens=10**6)
    assert torch.equal(part.old_logprobs[part.action_mask], part.logprobs[part.action_mask]) or passes
    torch.testing.assert_close(part.old_logprobs[part.action_mask], part.logprobs[part.action_mask])
    assert part.sampler_logprobs is not None


def test_the_ratio_of_an_episode_is_that_of_all_its_turns_in_every_update() -> None:
    """Turns are sequences of their own here, and each in a micro-batch of its own."""
    policy = small_model()
    trajectories = play(policy)
    for number, each in enumerate(trajectories):
        each.turns[-1].reward = float(number % 2)
    options = {"gspo": {"level": "episode", "normalisation": "trajectory", "clip_low": 1.0, "clip_high": 9.0}}
    method = build("gspo", options)
    batch = prepare(trajectories, policy, method, old_logprobs="trainer", merge_rows=False)
    assert max(len(each.turns) for each in trajectories) > 1
    with torch.no_grad():
        for parameter in policy.network.parameters():
            parameter.mul_(1.02)
    batch = batch.refreshed(method)
    for inputs in batch.micro_batches(max_tokens=1):
        method.loss(inputs).total(inputs).backward()
    found = [parameter.grad.clone() for parameter in policy.network.parameters() if parameter.grad is not None]
    policy.network.zero_grad()
    now = prepare(trajectories, policy, build("grpo"), old_logprobs="trainer", reference=policy.network).table
    gaps = now.token_old_logprob - batch.table.token_old_logprob
    ratios = now.token_mean(gaps).exp()
    assert float((ratios - 1).abs().max()) > 1e-3
    losses = []
    for number, each in enumerate(trajectories):
        means = []
        for turn in each.turns:
            ids, count = torch.tensor([[*turn.prompt_ids, *turn.completion_ids]]), len(turn.completion_ids)
            logprobs = policy.network(ids).logits[0, -count - 1 : -1].log_softmax(-1)
            means.append(logprobs[range(count), ids[0, -count:]])
        first = int((batch.table.episode[batch.table.token_turn] < number).sum())
        advantage, whole = float(batch.credit.advantages[first]), torch.cat(means)
        old = batch.table.token_old_logprob[first : first + len(whole)]
        losses.append(-advantage * (whole - old.float()).mean().exp())
    torch.stack(losses).mean().backward()
    for gradient, parameter in zip(found, policy.network.parameters(), strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-6, rtol=2e-3)


def test_ratios_of_episodes_are_computed_before_each_update() -> None:
    policy = small_model()
    trajectories = play(policy)
    for number, each in enumerate(trajectories):
        each.turns[-1].reward = float(number % 2)
    method = build("gspo", {"gspo": {"level": "episode", "normalisation": "trajectory"}})
    learner = Learner(policy, method, UpdateConfig(epochs=3, learning_rate=1e-2, old_logprobs="trainer"))
    assert learner.update(trajectories, 0)["loss/clip_fraction"] > 0.1
    once = Learner(small_model(), method, UpdateConfig(epochs=1, learning_rate=1e-2, old_logprobs="trainer"))
    assert once.update(trajectories, 0)["loss/clip_fraction"] == 0
