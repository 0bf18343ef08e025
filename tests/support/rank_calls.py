"""What each of two ranks does in the test of :mod:`turngym.trainers.engine.ranks`; it prints JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import torch

from turngym.errors import ConfigError, DivergenceError
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.engine.ranks.launch import launched
from turngym.trainers.engine.ranks.spread import Replicated


def failing(ranks: Ranks, rank: int, error: Exception) -> str:
    """Return the error that this rank gets where one rank fails."""

    def work() -> int:
        if ranks.rank == rank:
            raise error
        return 1

    return _said(lambda: ranks.exchange(work))


def _said(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        place = dict(error.where) if isinstance(error, DivergenceError) else {}
        return f"{type(error).__name__}: {error} {json.dumps(place)}"
    return "no error"


def _slow() -> dict[str, float]:
    time.sleep(1.5)  # longer than a heartbeat
    return {"eval/success": 0.1 + 0.2}


def _refused() -> None:
    raise ConfigError("no such split")


def _gradients(ranks: Ranks) -> list[list[float] | None]:
    """Sum gradients that only the first, only the second, both and no rank has."""
    parameters = [torch.nn.Parameter(torch.zeros(2, dtype=torch.float64)) for _ in range(4)]
    for index, owners in enumerate(([0], [1], [0, 1], [])):
        if ranks.rank in owners:
            parameters[index].grad = torch.full((2,), 0.1 + ranks.rank, dtype=torch.float64)
    Replicated(ranks).sum_gradients(parameters)
    return [None if parameter.grad is None else parameter.grad.tolist() for parameter in parameters]


def _sums(ranks: Ranks) -> list[Any]:
    """Sum tensors of several types and shapes; one is not contiguous."""
    grid = torch.arange(6.0).reshape(2, 3).t() + ranks.rank
    tensors = [torch.ones(2), torch.full((), 3.0), grid, torch.ones(3, dtype=torch.float64) / 3, torch.zeros(0)]
    ranks.sum(tensors)
    return [tensor.tolist() for tensor in tensors]


def main() -> None:
    """Call everything once, in the order that both ranks share."""
    with launched("cpu") as ranks:
        mine = ranks.rank
        found: dict[str, Any] = {
            "place": [mine, ranks.size, ranks.local_rank, ranks.is_first],
            "exchange": ranks.exchange(lambda: {"text": "\ud800 \u2603" * (1 + mine), "nan": float("nan")}),
            "agree": str(ranks.agree(lambda: torch.full((2,), mine))),
            "any": [ranks.any(mine == 1), ranks.any(False)],
            "maximum": ranks.maximum(float(mine)),
            "numbers": ranks.sum_numbers({"both": 0.1, f"only_{mine}": 0.2}),
            "concatenated": ranks.concatenated(torch.arange(3.0 * mine)).tolist(),
            "nothing": ranks.concatenated(torch.zeros(0)).tolist(),
            "from_first": ranks.from_first(f"rank {mine}"),
            "slow": ranks.on_first(_slow),
            "refused": _said(lambda: ranks.on_first(_refused)),
            "config": failing(ranks, 0, ConfigError("no such thing")),
            "divergence": failing(ranks, 1, DivergenceError("the loss is nan.", "loss", {"row": 3, "value": "nan"})),
            "foreign": failing(ranks, 1, ZeroDivisionError("division by zero")),
            "unequal": _said(lambda: ranks.require_equal("episodes", lambda: mine)),
            "equal": _said(lambda: ranks.require_equal("episodes", lambda: [0.1])),
            "sums": _sums(ranks),
            "gradients": _gradients(ranks),
        }
        ranks.barrier()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
