"""Random batches with awkward shapes in them, for every registered algorithm and for compositions of them."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pytest
import torch
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Credit, LossInputs, Need, Term
from turngym.trainers.core.columns import lay_out_column
from turngym.trainers.core.turn_table import TurnTable, turn_table
from turngym.trainers.functional import NORMALISATIONS, loss_weights

torch.set_num_threads(1)

WIDE: dict[str, dict[str, object]] = {"mis": {"level": "turn", "low": 0.7, "high": 1.5}}
NARROW: dict[str, dict[str, object]] = {"icepop": {"low": 0.7, "high": 1.5}}
"""Limits that mask some of the tokens here, and not all."""

VARIANTS: dict[str, tuple[str, dict[str, dict[str, object]]]] = {
    **{name: (name, {}) for name in ALGORITHMS},
    "dr_grpo": ("dr_grpo", {"dr_grpo": {"constant": 1.0}}),
    "maxrl": ("maxrl", {"maxrl": {"epsilon": 1e-6}}),  # returns have negative means here
    "mis": ("mis", WIDE),
    "icepop": ("icepop", NARROW),
    **{
        name: (name, {})
        for name in (
            "grpo+epo",
            "gigpo+s_ppo",
            "grpo+st_ppo",
            "turn_ppo+epo+s_ppo",
            "reinforce+turn_is",
            "ppo+epo+turn_is",
        )
    },
    "grpo nested, with divergence and entropy": (
        "grpo",
        {"grpo": {"normalisation": "nested", "kl_coef": 0.1, "entropy_coef": 0.01, "scale_by_std": False}},
    ),
    "gigpo over rows, by group": ("gigpo", {"gigpo": {"over": "rows", "normalisation": "group", "kl_coef": 0.1}}),
    "ppo per row, by trajectory": ("ppo", {"ppo": {"per_row": True, "normalisation": "trajectory_sum"}}),
    "ppo discounted": ("ppo", {"ppo": {"gamma": 0.9, "lam": 0.8, "whiten": False, "normalisation": "turn"}}),
    "turn_ppo at turn ends": ("turn_ppo", {"turn_ppo": {"value_position": "turn_end", "dual_clip": 0.0}}),
    "reinforce plain": ("reinforce", {"reinforce": {"objective": "plain", "ddof": 1}}),
    "epo released": (
        "ppo+epo",
        {"epo": {"form": "released", "released_max_turns": 4, "kappa_low": 0.9, "kappa_high": 1.1}},
    ),
    "turn_is token": ("gigpo+turn_is", {"turn_is": {"gradient": "token"}}),
    "gspo token": ("gspo", {"gspo": {"ratio": "turn_geometric_by_token"}}),
    "cispo": ("cispo", {"cispo": {"clip_low": 0.2, "clip_high": 0.28}}),
    "cispo by turn": (
        "cispo",
        {"cispo": {"ratio": "turn_geometric_by_token", "normalisation": "nested", "clip_low": 0.2, "clip_high": 0.28}},
    ),
    "hgpo with base": ("hgpo", {"hgpo": {"base_group": True, "mode": "mean_norm", "weight_offset": 0}}),
    "gdpo by trajectory": ("gdpo", {"gdpo": {"whiten_over": "trajectory", "weights": "valid_actions=2"}}),
    "dapo overlong": ("dapo", {"dapo": {"overlong_limit": 3, "overlong_buffer": 2}}),
    "a3po by turn": ("a3po", {"a3po": {"ratio": "turn_geometric", "weight_cap": 0.0}}),
    "ppo+mmd with both divergences": ("ppo+mmd", {"mmd": {"proximal_coef": 0.5, "magnet_decay": 0.5}}),
    "poad by tokens": ("poad", {"poad": {"discount_tokens": True, "whiten": False}}),
    "vc_ppo adaptive": ("vc_ppo", {"vc_ppo": {"alpha": 0.05, "pretrain_iterations": 0}}),
    "t_ppo ended": ("t_ppo", {"t_ppo": {"bootstrap_truncated": False}}),
    "vine_ppo discounted": ("vine_ppo", {"vine_ppo": {"gamma": 0.9, "whiten": False}}),
    "archer clipped": ("archer", {"archer": {"objective": "clipped", "expectile": 0.9, "critic_iterations": 0}}),
    "arpo+epo": ("arpo+epo", {}),
    "grpo+tis of episodes": ("grpo+tis", {"tis": {"level": "episode", "normalise": True}}),
    "gigpo+mis+tis": ("gigpo+mis+tis", WIDE),
    "gspo+icepop": ("gspo+icepop", NARROW),
    "grpo+opd_advantage": ("grpo+opd_advantage", {"opd_advantage": {"discount": 0.9, "task_weight": 0.5}}),
    "sdpo blended": ("sdpo", {"sdpo": {"weight": 0.25, "kl_coef": 0.1}}),
    "sdft without first tokens": ("sdft", {"sdft": {"skip": 1, "top": 2}}),
    "iw_opd by turn": ("iw_opd", {"iw_opd": {"unit": "turn", "normalisation": "nested"}}),
    "dmpo": ("grpo+dmpo", {}),
    "dpo ipo of means": ("dpo", {"dpo": {"loss": "ipo", "normalisation": "trajectory", "pairs": "extremes"}}),
    "dpo lambda": ("dpo", {"dpo": {"weights": "lambda"}}),
    "dpo apo_zero": ("dpo", {"dpo": {"loss": "apo_zero"}}),
    "dpo acceptance": ("dpo", {"dpo": {"loss": "hinge", "weights": "acceptance"}}),
    "a_lol by token": ("a_lol", {"a_lol": {"weight": "token", "clip": 0.2, "priority": False}}),
    "gspo of episodes": ("gspo", {"gspo": {"level": "episode", "normalisation": "trajectory"}}),
    "dpo tdpo1": ("dpo", {"dpo": {"loss": "tdpo1"}}),
    "dpo tdpo2 of means": ("dpo", {"dpo": {"loss": "tdpo2", "normalisation": "trajectory"}}),
    "grpo_s": ("grpo_s", {"grpo_s": {"threshold": 0.0}}),
    "kto": ("kto", {"kto": {"threshold": 0.5}}),
    "gbpo": ("gbpo", {"gbpo": {"clip_high": 0.28}}),  # no target is 1
    "seed_grpo by mean": ("seed_grpo", {"seed_grpo": {"likelihood": "mean", "shape": "exponential", "alpha": 0.5}}),
    "trpa": ("trpa", {"trpa": {"threshold": 0.5}}),
    "gflownet detailed": ("gflownet", {"gflownet": {"objective": "detailed", "flow": "return", "floor": 0.1}}),
    "gflownet trajectory": ("gflownet", {"gflownet": {"objective": "trajectory", "temperature": 0.5}}),
    "var_tb of returns": ("var_tb", {"var_tb": {"flow": "return", "floor": 0.1}}),
    "nft": ("nft", {"nft": {"threshold": 0.0}}),
    "nft by odds": ("nft", {"nft": {"threshold": 0.0, "weight": "odds", "ratio": "turn_geometric"}}),
    "opmd soft": ("opmd", {"opmd": {"baseline": "soft", "tau": 0.5}}),
    "pf_ppo of a group": ("ppo+pf_ppo", {"pf_ppo": {"among": "group", "filter": "max_random"}}),
    "ppo+icepop, all counted": ("ppo+icepop", {"icepop": {**NARROW["icepop"], "counted": "all"}}),
}
PLAIN = {
    "reinforce plain",
    "gspo of episodes",
    "archer",
    "dro",
    "kl_cov",
    "nft",
    "nft by odds",
    "opmd",
    "opmd soft",
    "r2vpo",
    "vespo",
    "gkd",
    "iw_opd",
    "iw_opd by turn",
    "sdft",
    "sdft without first tokens",
}
TAUGHT = {"gkd", "opd", "sdft", "sdft without first tokens", "sdpo", "sdpo blended"}
"""Methods whose policy loss is not the advantage times a ratio: their signal is the teacher's, at the policy as it is
now, or their policy loss has no weight."""
PRETRAINED = {"archer", "offline", "vc_ppo"}
CRITIC_AT_SOME_TOKENS = ("turn_ppo", "t_ppo", "gflownet")
COLLECTING = {"archer", "d3s", "dapo", "grpo_s", "igrpo", "nash_md", "remax", "arpo", "seed_grpo", "spo", "vine_ppo"}
EVERY = pytest.mark.parametrize("variant", sorted(VARIANTS))
COMPARING = sorted(
    variant
    for variant, (name, configs) in VARIANTS.items()
    if Need.GROUPS in build(name, configs).needs and "opd_advantage" not in name  # its teacher teaches all episodes
)
GROUPED = pytest.mark.parametrize("variant", COMPARING)


def made(variant: str) -> Algorithm[Any]:
    """The algorithm, with some history for methods that keep one."""
    name, configs = VARIANTS[variant]
    algorithm = build(name, configs)
    algorithm.begin_iteration(3, 10)
    algorithm.observe({"entropy_nested": 0.5, "entropy_turn_0": 0.5, "entropy_turn_1": 0.6, "entropy_turn_2": 0.4})
    return algorithm


def loss_path(variant: str) -> tuple[object, ...]:
    """Code and settings that compute a variant's loss; variants with equal paths differ only in their credit."""
    algorithm: Any = made(variant)
    path: list[object] = [algorithm.needs & {Need.VALUES, Need.ENTROPY, Need.REFERENCE_LOGPROBS}, variant in PLAIN]
    while True:
        kind, config = type(algorithm), algorithm.config
        path += [kind.loss, kind.surrogate, kind.transform_gradients]
        path += [getattr(kind, name, None) for name in ("changed", "penalty", "corrected")]
        path += [getattr(config, name, None) for name in ("ratio", "objective", "normalisation", "gradient", "form")]
        path += [bool(getattr(config, name, 0)) for name in ("dual_clip", "kl_coef", "entropy_coef")]
        if not isinstance(algorithm, Modifier):
            return tuple(path)
        algorithm = algorithm.base


def loss_code(variant: str) -> tuple[object, ...]:
    """The functions and ratios that compute a variant's loss, whatever its other settings."""
    algorithm: Any = made(variant)
    path: list[object] = [Need.VALUES in algorithm.needs]
    while True:
        kind = type(algorithm)
        path += [kind.loss, kind.surrogate, kind.transform_gradients, getattr(algorithm.config, "ratio", None)]
        if not isinstance(algorithm, Modifier):
            return tuple(path)
        algorithm = algorithm.base


def code_of(variant: str, *hooks: str) -> tuple[object, ...]:
    """The functions of a method and of its modifiers that a training loop calls by these names."""
    algorithm: Any = made(variant)
    path: list[object] = []
    while True:
        path += [getattr(type(algorithm), name) for name in hooks]
        if not isinstance(algorithm, Modifier):
            return tuple(path)
        algorithm = algorithm.base


def one_of_each(code: Callable[[str], object]) -> list[str]:
    """One registered method for each code."""
    return sorted({code(name): name for name in sorted(ALGORITHMS, reverse=True)}.values())


_MODULES = ("modules", "module_losses", "trains_policy")
_HISTORY = ("collect", "observe", "update_state", *_MODULES)
METHODS = one_of_each(lambda name: (made(name).needs, *loss_code(name), *code_of(name, *_HISTORY)))
"""One registered method for each way of training; the others differ from it in their credit, or in settings."""
WITH_HISTORY = one_of_each(lambda name: code_of(name, *_HISTORY))
"""One for each way to gather episodes, and to depend on earlier iterations."""
OF_EACH_PASS = one_of_each(lambda name: (made(name).needs, *code_of(name, "transform_gradients", *_MODULES)))
"""One for each kind of passes through the networks, and of work on their gradients."""
OF_EACH_BASE = sorted({kind.__mro__[1]: name for name, kind in sorted(ALGORITHMS.items(), reverse=True)}.values())
"""One registered method of each base class, for what depends on the precision of numbers."""


def credit_code(variant: str) -> tuple[object, ...]:
    """The functions and settings that assign a variant's credit; modifiers that leave it alone are not among them."""
    algorithm: Any = made(variant)
    path: list[object] = []
    while isinstance(algorithm, Modifier):
        path += [] if type(algorithm).credit is Modifier.credit else [type(algorithm).credit, algorithm.config]
        algorithm = algorithm.base
    return (*path, type(algorithm), algorithm.config)


def _modifies(variant: str) -> bool:
    return isinstance(made(variant), Modifier)


CREDITS = {
    credit_code(variant): variant
    for variant in sorted(VARIANTS, key=lambda each: (_modifies(each), each), reverse=True)
}
"""One variant for each way of assigning credit, a method without modifiers where there is one."""

BY_LOSS_PATH = {loss_path(variant): variant for variant in sorted(VARIANTS, reverse=True)}
LOSSES = pytest.mark.parametrize("variant", sorted(BY_LOSS_PATH.values()))
"""One variant for each way of computing a loss."""


def episodes(seed: int = 0, **fixed: Any) -> list[Trajectory]:
    """Three groups of four: one to four turns, zero to three tokens, few anchors, invalid actions, both ends."""
    generator = torch.Generator().manual_seed(seed)

    def draw(high: int) -> int:
        return int(torch.randint(0, high, (1,), generator=generator))

    def turn(number: int) -> Turn:
        tokens = fixed.get("tokens", draw(4))
        return Turn(
            "",
            f"state {draw(2)}" if number else "start",
            "",
            completion_ids=(1,) * tokens,
            logprobs=(-1.0,) * tokens,
            reward=fixed.get("reward", float(torch.randn(1, generator=generator, dtype=torch.float64))),
            action_is_valid=bool(fixed.get("valid", draw(4) > 0)),
            staleness=2 * (number % 2),
            columns={
                "joint_view": f"everybody knows state {number % 2}",
                "sampled_value": number / 4,
                "action": f"go {number}",
            },
        )

    return [
        Trajectory(
            EpisodeSpec(e, 0, group=fixed.get("group", e // 4)),
            turns=[turn(k) for k in range(fixed.get("turns", 1 + draw(4)))],
            terminated=(end := fixed.get("end", draw(2))) == 0,
            truncated=end == 1,
            columns={
                "final_joint_view": "everybody knows the end",
                "greedy_return": 0.25,
                "mixture_return": 0.1,
                "final_anchor": "the end",
            },
        )
        for e in range(fixed.get("count", 12))
    ]


def valued(table: TurnTable, seed: int = 1) -> TurnTable:
    """The table with a critic's columns; the value of a turn with tokens is that of its first one."""
    generator = torch.Generator().manual_seed(seed)
    token = torch.randn(len(table.token_turn), generator=generator, dtype=torch.float64)
    turn = torch.randn(table.num_turns, generator=generator, dtype=torch.float64)
    first = table.first_tokens()
    turn[table.token_turn[first]] = token[first]
    table = table.with_values(turn, token, torch.randn(table.num_episodes, generator=generator, dtype=torch.float64))
    place = torch.arange(len(table.token_turn)) - torch.cumsum(table.num_tokens, 0)[table.token_turn]
    gaps = 0.6 * torch.sin(3.0 * place + table.turn[table.token_turn])  # equal in equal episodes
    trainers = table.token_logprob + gaps
    silent = table.turn[table.token_turn] == 3
    return replace(
        table,
        token_reference_logprob=table.token_logprob - 0.3,
        token_trainer_logprob=trainers,
        token_teacher_logprob=torch.where(silent, float("nan"), table.token_logprob + 0.5 - gaps),
        token_squares=0.4 + 0.5 * gaps.abs(),
        token_divergence=0.3 * gaps.square(),
        token_other_logprob=torch.where(silent, float("nan"), table.token_logprob - 0.2 * gaps),
    )


@dataclass
class Batch:
    """Columns over sampled tokens, some of them leaves of the gradients."""

    table: TurnTable
    credit: Credit
    leaves: dict[str, Tensor]
    old_logprobs: Tensor

    def inputs(self, rows: Sequence[Sequence[int]], width: int = 0, junk: float = 0.0) -> LossInputs:
        """Lay turns out in rows with a token of observation before each, at least ``width`` wide, junk elsewhere."""
        cells = [[cell for turn in row for cell in (-1, *self._tokens[turn])] for row in rows]
        width = max([width, *map(len, cells)])
        index = torch.tensor([row + [-1] * (width - len(row)) for row in cells], dtype=torch.long).reshape(-1, width)

        def spread(flat: Tensor, fill: float) -> Tensor:
            padded = torch.cat([flat, torch.full((1,), fill, dtype=flat.dtype)])
            return padded[index]  # -1 reads the fill

        returns = self.credit.returns
        return LossInputs(
            logprobs=spread(self.leaves["logprobs"], junk),
            old_logprobs=spread(self.old_logprobs, junk),
            advantages=spread(self.credit.advantages, 0.0),
            action_mask=index >= 0,
            turn_ids=spread(self.table.token_turn, -1),
            weights={name: spread(weight, 0.0) for name, weight in self._weights.items()},
            entropy=spread(self.leaves["entropy"], junk),
            reference_logprobs=spread(self.old_logprobs + 0.3, junk),
            values=spread(self.leaves["values"], junk),
            old_values=None if self.table.token_value is None else spread(self.table.token_value, junk),
            returns=None if returns is None else spread(returns, float("nan")),
            columns={name: lay_out_column(column, index) for name, column in self.credit.columns.items()},
            divergence=spread((self.leaves["logprobs"] - 0.3).square(), junk),
        )

    @cached_property
    def _weights(self) -> dict[str, Tensor]:
        return {name: loss_weights(self.table, name, self.credit.masked) for name in NORMALISATIONS}

    @cached_property
    def _tokens(self) -> list[list[int]]:
        """The sampled tokens of each turn, by their places in the table."""
        found: list[list[int]] = [[] for _ in range(self.table.num_turns)]
        for place, turn in enumerate(self.table.token_turn.tolist()):
            found[turn].append(place)
        return found

    def by_turn(self) -> list[list[int]]:
        return [[turn] for turn in range(self.table.num_turns)]

    def by_episode(self) -> list[list[int]]:
        return [torch.nonzero(self.table.episode == e).flatten().tolist() for e in range(self.table.num_episodes)]


@functools.cache
def table_of(*fixed: tuple[str, Any], count: int = 12) -> TurnTable:
    """The table of the episodes with a critic's columns; the same one each time, because credit leaves it as it is."""
    return valued(turn_table(episodes(**{"count": count, **dict(fixed)})))


def batch_of(
    algorithm: Algorithm[Any], trajectories: Sequence[Trajectory] | None = None, on_policy: bool = False
) -> Batch:
    table = table_of() if trajectories is None else valued(turn_table(trajectories))
    credit = algorithm.credit(table)
    generator = torch.Generator().manual_seed(7)
    count = len(table.token_turn)
    old = -torch.rand(count, generator=generator, dtype=torch.float64) - 0.5
    shift = torch.zeros_like(old) if on_policy else torch.randn(count, generator=generator, dtype=torch.float64) * 0.4
    assert table.token_value is not None
    leaves = {
        "logprobs": old + shift,
        "entropy": torch.rand(count, generator=generator, dtype=torch.float64),
        "values": table.token_value + shift,
    }
    return Batch(table, credit, {name: leaf.requires_grad_() for name, leaf in leaves.items()}, old)


def reduced(inputs: LossInputs, terms: Mapping[str, Term]) -> dict[str, Tensor]:
    return {name: (inputs.weights[term.over] * term.values).sum() for name, term in terms.items()}


def everything(algorithm: Algorithm[Any], batch: Batch, parts: Sequence[LossInputs]) -> dict[str, Tensor]:
    """Summed terms, metrics and probes over micro-batches, and the gradients of the loss and of each probe."""
    found: dict[str, Tensor] = {}
    for inputs in parts:
        output = algorithm.loss(inputs)
        for kind in ("terms", "metrics", "probes"):
            for name, value in reduced(inputs, getattr(output, kind)).items():
                found[f"{kind}/{name}"] = found.get(f"{kind}/{name}", torch.zeros(())) + value
    losses = {name: value for name, value in found.items() if name.startswith("probes/")}
    losses["loss"] = torch.stack([value for name, value in found.items() if name.startswith("terms/")]).sum()
    for key, loss in losses.items():
        for leaf, tensor in batch.leaves.items():
            gradient = None
            if loss.requires_grad:
                (gradient,) = torch.autograd.grad(loss, tensor, retain_graph=True, allow_unused=True)
            found[f"gradient of {key} by {leaf}"] = torch.zeros_like(tensor) if gradient is None else gradient
    return {name: value.detach() for name, value in found.items()}


def assert_same(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert torch.allclose(value, expected[name], atol=1e-9, rtol=1e-9), name


def policy_gradient(algorithm: Algorithm[Any], batch: Batch) -> Tensor:
    inputs = batch.inputs(batch.by_episode())
    loss = reduced(inputs, algorithm.loss(inputs).terms)["policy"]
    return torch.autograd.grad(loss, batch.leaves["logprobs"])[0]


# The loss
