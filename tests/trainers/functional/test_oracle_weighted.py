"""Methods that weigh groups, episodes or parts of the reward, against the vectors of released code."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from oracle import Vector, every, vectors
from test_oracle_credit import check as check_credit
from test_oracle_credit import in_precision, outcome_table, turn
from test_oracle_newer import compare, inputs_of, outcomes

from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.a_lol import clamped_ratios
from turngym.trainers.algorithms.aspo import ASPO
from turngym.trainers.algorithms.base.clipped import PolicyMethod
from turngym.trainers.algorithms.dmpo import matching_slopes
from turngym.trainers.algorithms.dpo import DPOConfig, Shape, preferences
from turngym.trainers.algorithms.dvao import spread_weighted
from turngym.trainers.algorithms.nft import NFT
from turngym.trainers.algorithms.pf_ppo import PFPPOConfig, filter_weights
from turngym.trainers.algorithms.ppo_max import Moments
from turngym.trainers.algorithms.spo import TASK, updated
from turngym.trainers.algorithms.trpa import compared
from turngym.trainers.core.turn_table import turn_table


@every("dgpo_advantage")
def test_dgpo(vector: Vector) -> None:
    """The rate is a part of the reward."""
    lengths, size = vector["lengths"], vector.settings["group_size"]
    episodes = []
    for number, (reward, rate) in enumerate(zip(vector["rewards"], vector["accuracy"], strict=True)):
        parts = {"reward/accuracy": rate, "reward/rest": reward - rate}
        whole = replace(turn(reward, lengths[number]), columns=parts)
        episodes.append(Trajectory(EpisodeSpec(number, 0, number // size), turns=[whole], terminated=True))
    table = in_precision(turn_table(episodes), vector)
    method = build("dgpo", {"dgpo": {"temperature": vector.settings["temperature"], "rate": "accuracy"}})
    found = method.credit(table).advantages[torch.tensor(lengths).cumsum(0) - 1]
    vector.close(found, vector["advantages"])


@pytest.mark.parametrize("vector", [*vectors("verl_otb"), *vectors("verl_otb_tir")])
def test_otb(vector: Vector) -> None:
    """Every token under the mask is a turn; the form for tools is that of sampled tokens alone.

    The weights of verl's sampler, which we leave to ``tis``, multiply 1 - 2 p + squares: they are put into the squares.
    """
    episodes, names = [], sorted(set(vector["index"]))
    rows = zip(vector["token_level_rewards"], vector["old_log_probs"], vector.mask().tolist(), strict=True)
    for row, (rewards, logprobs, mask) in enumerate(rows):
        turns = [
            replace(turn(reward, 1), logprobs=(logprob,))
            for reward, logprob, here in zip(rewards, logprobs, mask, strict=True)
            if here
        ]
        spec = EpisodeSpec(row, 0, names.index(vector["index"][row]))
        episodes.append(Trajectory(spec, turns=turns, terminated=True))
    mask, table = vector.mask(), in_precision(turn_table(episodes), vector)
    squares, chances = vector.real(vector["sum_pi_squared"])[mask], vector.real(vector["old_log_probs"])[mask].exp()
    weights = vector.real(vector["rollout_is_weights"] or torch.ones(mask.shape).tolist())[mask]
    table = replace(table, token_squares=weights**2 * (1 - 2 * chances + squares) - 1 + 2 * chances)
    check_credit(vector, table, "otb", singleton="raw")


@every("a_lol_loss")
def test_a_lol(vector: Vector) -> None:
    """The expected return is a value there; the loss is the mean of the weight times minus the log-likelihood."""
    nll, reference = vector.real(vector["nll"]), vector.real(vector["ref_nll"])
    better = (vector.real(vector["rewards"]) - vector.real(vector["values"])).clamp_min(0)
    slopes = better * clamped_ratios(reference - nll, vector.settings["clip"]) / len(nll)
    vector.close((slopes * nll).sum(), vector["loss"])
    vector.close(slopes, vector["grad"])


@every("tdpo_loss")
def test_tdpo(vector: Vector) -> None:
    settings = vector.settings
    loss: Shape = "tdpo1" if settings["version"] == 1 else "tdpo2"
    config = DPOConfig(loss=loss, beta=settings["beta"], drift_weight=settings["alpha"])
    first = torch.tensor([[False, True], [False, False]])
    names = ("chosen_margin", "rejected_margin", "chosen_kl", "rejected_kl")
    losses = []
    for pair in zip(*(vector[name] for name in names), strict=True):
        told = vector.real(list(pair))
        losses.append(preferences(told[:2], first, config, drifts=told[2:]).loss)
    vector.close(torch.stack(losses), vector["losses"])


@every("rto_token_rewards")
def test_rto(vector: Vector) -> None:
    """With values of 0 and lambda 0 the advantage of a token is its reward."""
    mask, names = vector.mask(), ("log_prob", "ref_log_prob", "dpo_log_prob")
    told = zip(vector["rewards"], mask.sum(-1).tolist(), strict=True)
    episodes = [Trajectory(EpisodeSpec(k, 0), turns=[turn(*each)], terminated=True) for k, each in enumerate(told)]
    own, reference, teacher = (vector.real(vector[name])[mask] for name in names)
    table = replace(in_precision(turn_table(episodes), vector), token_logprob=own, token_reference_logprob=reference)
    none = torch.zeros(len(episodes), dtype=vector.dtype)
    table = replace(table, token_teacher_logprob=teacher).with_values(none, torch.zeros_like(own), none)
    found, settings = torch.zeros(mask.shape, dtype=vector.dtype), vector.settings
    config = {
        "reward_kl_coef": settings["kl_coef"],
        "preference_coef": settings["dpo_scale"],
        "preference_clip": settings["dpo_clip"],
        "reward_clip": settings["reward_clip"],
    }
    credit = build("rto", {"rto": {"lam": 0.0, "whiten": False, **config}}).credit(table)
    found[mask] = credit.advantages
    vector.close(found, vector["token_rewards"])


@every("dvao")
def test_dvao(vector: Vector) -> None:
    parts = vector.real(vector["components"]).T
    groups = torch.zeros(parts.shape[1], dtype=torch.long)
    found = spread_weighted(list(parts), vector.settings["weights"], groups, vector.settings["eps"])
    vector.close(found, vector["advantages"])


@every("rec_advantage")
def test_opmd(vector: Vector) -> None:
    """The one of AsymRE too, which has a shift, and that of REC, which is its form with the mean."""
    whole, settings = outcomes(vector), vector.settings
    chosen: dict[str, Any] = {"shift": settings.get("shift", 0.0), "tau": settings.get("tau", 1.0)}
    chosen["baseline"] = "soft" if settings.get("baseline") == "logavgexp" else "mean"
    assert not settings.get("std")
    check_credit(whole, outcome_table(whole), "opmd", singleton="raw", **chosen)


@every("pf_ppo_weights")
def test_pf_ppo(vector: Vector) -> None:
    config = PFPPOConfig(filter=vector.settings["method"], power=vector.settings["pow"])
    vector.close(filter_weights(vector.real(vector["scores"]), config), vector["weights"])


@every("prime_hierarchical_grpo")
def test_hierarchical_grpo(vector: Vector) -> None:
    """Traces that do not train are not episodes here, as those of a fixed opponent and of a fault are not."""
    expected, episodes = [], []
    for game, given in zip(vector["episodes"], vector["advantages"], strict=True):
        for seat, (trace, advantage) in enumerate(zip(game["traces"], given, strict=True)):
            if trace["has_error"] or not trace["trainable"] or not trace["sampled_tokens"]:
                assert advantage == 0
                continue
            played = replace(turn(trace["reward"], 1), agent=f"player_{seat}")
            episodes.append(Trajectory(EpisodeSpec(0, 0), turns=[played], terminated=True, role=trace["agent"]))
            expected.append(advantage)
    table = in_precision(turn_table(episodes), vector)
    within = ",".join(vector.settings["episode_agents"])
    found = build("hierarchical_grpo", {"hierarchical_grpo": {"within_game": within}}).credit(table).advantages
    vector.close(found, expected)


@every("prime_echo_loss")
def test_echo(vector: Vector) -> None:
    """With the loss that prime-rl trains with, DPPO; weights of roles that ours has not are in those of the tokens."""
    settings, logprobs = vector.settings, vector.real(vector["log_prob"]).requires_grad_()
    limits = {"low": settings["dppo_mask_low"], "high": settings["dppo_mask_high"], "penalty_coef": settings["kl_tau"]}
    given = inputs_of(
        vector.like({**vector, "advantages": (settings["adv_tau"] * vector.real(vector["advantages"])).tolist()}),
        logprobs,
    )
    told = vector.real(vector["ce_weights"])
    weights = {**given.weights, "observation": told / (told > 0).sum().clamp_min(1)}
    inputs = replace(given, observed=told > 0, weights=weights)
    chosen = {"grpo": {"normalisation": "token", "kl_coef": 0.0}, "dppo": limits, "echo": {"coef": 1.0}}
    output = build("grpo+dppo+echo", chosen).loss(inputs)
    vector.close(output.terms["echo"].total(inputs), vector["ce_loss"])
    compare(vector, output.total(inputs), logprobs)


@every("trpa_loss")
def test_trpa(vector: Vector) -> None:
    """The gradient by a token is that of its row's mean; without a pair theirs imitates, and ours does nothing."""
    mask, settings, logprobs = vector.mask(), vector.settings, vector.real(vector["log_prob"])
    lengths = mask.sum(-1)
    gaps = (logprobs - vector.real(vector["ref_log_prob"])) * mask
    names = sorted(set(vector["index"]))
    groups, levels = torch.tensor([names.index(each) for each in vector["index"]]), torch.tensor(vector["levels"])
    margins = gaps.sum(-1) / lengths.clamp_min(1)
    found = compared(margins, levels, groups, beta=settings["beta"], best=settings["anisotropy"])
    assert found.pairs == vector["pairs"]
    if not found.pairs:
        assert not found.slopes.any() and float(found.loss) == 0
        return
    vector.close(found.loss, vector["loss"])
    vector.close((found.slopes / lengths.clamp_min(1))[:, None] * mask, vector["grad"])


@every("dmpo_regulariser")
def test_dmpo(vector: Vector) -> None:
    found = matching_slopes(
        vector.real(vector["mean_log_prob"]), vector.real(vector["rewards"]), vector.settings["alpha"]
    )
    vector.close(found, vector["grad"])


@every("aspo_asymmetric_loss")
def test_aspo(vector: Vector) -> None:
    logprobs, settings, mask = vector.real(vector["log_prob"]).requires_grad_(), vector.settings, vector.mask()
    inputs = inputs_of(vector, logprobs)
    chosen = {
        "narrow": settings["clip_low_entropy"],
        "wide": settings["clip_high_entropy"],
        "cap": settings["dual_clip"],
    }
    method = build("grpo+aspo", {"aspo": chosen, "grpo": {"kl_coef": 0.0}})
    assert isinstance(method, ASPO)
    found = method.weighted(method.base.surrogate(inputs).ratio, inputs, torch.tensor(vector["low_entropy"]).bool())
    compare(vector, F.aggregate(found.loss, mask, "token-mean"), logprobs)


@every("nft_loss")
def test_nft(vector: Vector) -> None:
    """A ratio of the sequence has one loss a row; there the sum over rows, of tokens over 1000, is the loss."""
    settings, mask, logprobs = vector.settings, vector.mask(), vector.real(vector["log_prob"]).requires_grad_()
    weight = {1: "failures", 2: "odds"}[settings["normalize"]]
    is_token = settings["ratio"] == "token"
    chosen = {"weight": weight, "negative": settings["neg_weight"], "least": settings["clamp_negative"]}
    method = build("nft", {"nft": {**chosen, "ratio": "token" if is_token else "turn_product"}})
    assert isinstance(method, NFT)
    rate, right = vector.real(vector["correct_rate"]), torch.tensor(vector["correct"]).bool()
    row = method.advantages_of(right, rate)[:, None].expand(mask.shape)
    rates = rate[:, None].expand(mask.shape)
    inputs = inputs_of(vector.like({**vector, "advantages": row.tolist()}), logprobs, nft_rate=rates)
    loss = method.surrogate(inputs).policy.loss * mask
    if is_token:
        compare(vector, loss.sum() / 1000, logprobs)
    else:
        compare(vector, (loss / mask.sum(-1, keepdim=True).clamp_min(1)).sum(), logprobs)


@every("rank_grpo")
def test_rank_grpo(vector: Vector) -> None:
    """A turn is an item, paid by itself; what follows the last item is trained on with an advantage of 0."""
    settings, logprobs, mask = vector.settings, vector.real(vector["log_prob"]).requires_grad_(), vector.mask()
    chosen = {name: settings[name] for name in ("clip_low", "clip_high")}
    chosen |= {"epsilon": settings["std_eps"], "gamma": 0.0, "kl_coef": 0.0}
    method = build("rank_grpo", {"rank_grpo": chosen})
    episodes = [
        Trajectory(EpisodeSpec(k, 0, k // settings["group_size"]), turns=[turn(r, 1) for r in row], terminated=True)
        for k, row in enumerate(vector["item_rewards"])
    ]
    advantages = method.credit(in_precision(turn_table(episodes), vector)).advantages.view(len(episodes), -1)
    vector.close(advantages, vector["item_advantages"])
    items = torch.tensor(vector["item_of_token"])
    by_token = torch.nn.functional.pad(advantages, (0, 1)).gather(1, items)
    rows = torch.arange(len(items))[:, None] * (settings["items"] + 1)
    weights = mask / mask.sum(-1, keepdim=True).clamp_min(1) / len(mask)
    given = inputs_of(vector.like({**vector, "advantages": by_token.tolist()}), logprobs)
    ids = torch.where(mask, items + rows, -1)
    inputs = replace(given, turn_ids=ids, weights={**given.weights, "trajectory": weights.to(vector.dtype)})
    compare(vector, method.loss(inputs).total(inputs), logprobs)


@every("gbpo")
def test_gbpo(vector: Vector) -> None:
    """Its advantages have the sign of the target here, and their own where the target is 1."""
    settings, logprobs, mask = vector.settings, vector.real(vector["log_prob"]).requires_grad_(), vector.mask()
    chosen = {name: settings[name] for name in ("temperature", "clip_low", "clip_high")}
    method = build("gbpo", {"gbpo": {**chosen, "scale_by_std": settings["norm_by_std"], "singleton": "raw"}})
    assert isinstance(method, PolicyMethod)
    whole = outcomes(vector)
    credit = method.credit(outcome_table(whole))
    vector.close(credit.advantages.abs(), [abs(each) for each in vector["advantages"]])
    offsets = credit.columns["gbpo_offset"]
    assert isinstance(offsets, torch.Tensor)
    rows = {"advantages": credit.advantages.tolist()}
    inputs = inputs_of(vector.like({**vector, **rows}), logprobs, gbpo_offset=offsets[:, None].expand(mask.shape))
    compare(vector, F.aggregate(method.surrogate(inputs).policy.loss, mask, settings["loss_agg_mode"]), logprobs)


@every("riskpo_advantage")
def test_riskpo(vector: Vector) -> None:
    """The questions of a bundle come one after another; quantiles are followed as means of three questions here."""
    settings, numbers = vector.settings, range(len(vector["rewards"]))
    order = sorted(numbers, key=lambda k: (vector["bundle"][k], vector["index"][k], k))
    names = sorted(set(vector["index"]))
    chosen: dict[str, Any] = {"low": settings["quantile_down"], "high": settings["quantile_up"], "bundle": 3}
    chosen |= {"share": settings["credit"], "quantiles": settings["quantile_mode"]}
    chosen |= {"tail_weight": settings["w_mix"], "scale_by_std": settings["norm_by_std"]}
    method = build("riskpo", {"riskpo": chosen if settings["mixed"] else {**chosen, "tail_weight": 0.0}})
    method.load_state({"followed": [each / 3 for each in settings["tracked"] or []]})
    episodes = [
        Trajectory(
            EpisodeSpec(place, 0, names.index(vector["index"][k])),
            turns=[turn(vector["rewards"][k], 1)],
            terminated=True,
        )
        for place, k in enumerate(order)
    ]
    found = method.credit(in_precision(turn_table(episodes), vector)).advantages
    vector.close(found, [vector["advantages"][k] for k in order])


@every("spo_single_stream")
def test_spo(vector: Vector) -> None:
    names = [str(number) for number, _ in enumerate(vector["rewards"])]
    method = build("spo")
    method.load_state({"rates": [list(each) for each in zip(names, vector["alpha"], vector["beta"], strict=True)]})
    episodes = [
        Trajectory(EpisodeSpec(k, 0, k), turns=[turn(reward, 1)], terminated=True, columns={TASK: names[k]})
        for k, reward in enumerate(vector["rewards"])
    ]
    vector.close(method.credit(in_precision(turn_table(episodes), vector)).advantages, vector["advantages"])
    given = zip(vector["alpha"], vector["beta"], vector["rewards"], vector["rho"], strict=True)
    after = [updated((good, bad), [reward], decay) for good, bad, reward, decay in given]
    vector.close(vector.real(after).T, [vector["new_alpha"], vector["new_beta"]])


@every("ppo_max_reward_scaling")
def test_ppo_max(vector: Vector) -> None:
    moments = Moments()
    for batch, mean, deviation in zip(vector["batches"], vector["running_mean"], vector["running_std"], strict=True):
        moments = moments.after(batch)
        vector.close(vector.real([moments.mean, moments.deviation]), [mean, deviation])
    limit = vector.settings["clip"]
    scaled = (vector.real(vector["batches"][-1]) / moments.deviation).clamp(-limit, limit)
    vector.close(scaled, vector["scaled_last_batch"])
