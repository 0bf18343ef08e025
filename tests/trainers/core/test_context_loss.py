"""Episodes that are masked because a prompt did not fit: nothing of them enters the loss, whatever surrounds them."""

import copy
from typing import Any

import pytest
import torch
from layout_batches import exact_norms
from small import small_model

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.algorithms import build
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.prepared import prepare
from turngym.trainers.engine.scoring import Critic


def episode(number: int, reward: float, *turns: tuple[int, ...], **fields: Any) -> Trajectory:
    """Return an episode with a completion for each turn, which may be empty."""
    made = [
        Turn(f"s{k}", f"s{k}", "up", prompt_ids=(3, 4 + k), completion_ids=ids, logprobs=(-1.0,) * len(ids))
        for k, ids in enumerate(turns)
    ]
    made[-1].reward = reward
    fields = fields if "truncated" in fields else {"terminated": True, **fields}
    return Trajectory(EpisodeSpec(number, 0, number // 2), "game", turns=made, **fields)


def cut(number: int, reward: float, *turns: tuple[int, ...], **fields: Any) -> Trajectory:
    return episode(number, reward, *turns, truncated=True, truncation_reason="context", **fields)


def trained(algorithm: str, played: list[Trajectory], **update: Any) -> torch.Tensor:
    """Return the weights after an update."""
    model = small_model(dtype=torch.float64)
    Learner(model, build(algorithm), UpdateConfig(learning_rate=1e-2, **update)).update(played, 0)
    return torch.cat([p.detach().flatten() for p in model.network.parameters()])


@pytest.mark.parametrize("algorithm", ["grpo", "gigpo", "dapo"])
def test_what_a_masked_episode_says_moves_no_weight(algorithm: str) -> None:
    """Its reward stays in the statistics of its group, so only what it says is changed; padding and empty turns too."""
    whole = [episode(0, 1.0, (5, 6), (7,)), episode(2, 0.0, (8, 9, 10, 11)), episode(3, 1.0, (5,))]
    found = [
        trained(algorithm, [whole[0], masked, *whole[1:]], on_context="mask")
        for masked in (cut(1, 0.0, (5, 6)), cut(1, 0.0, (9, 9, 9, 9, 9, 9, 9)), cut(1, 0.0, ()))
    ]
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=1e-12)
    assert not torch.equal(
        found[0], trained(algorithm, [whole[0], cut(1, 0.0, (5, 6)), *whole[1:]], on_context="train")
    )


def test_micro_batches_and_rows_do_not_change_a_masked_update(monkeypatch: pytest.MonkeyPatch) -> None:
    exact_norms(monkeypatch)  # sums of single precision would differ between layouts
    played = [episode(0, 1.0, (5, 6), (7,)), cut(1, 0.0, (9, 9, 9, 9)), episode(2, 0.0, (8, 9)), episode(3, 1.0, (5,))]
    together = trained("grpo", played, on_context="mask")
    apart = trained("grpo", played, on_context="mask", max_micro_batch_tokens=1)
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-12)


def test_an_episode_without_turns_is_in_no_table_and_stops_nothing() -> None:
    empty = Trajectory(EpisodeSpec(1, 0), "game", truncated=True, truncation_reason="context")
    played = [episode(0, 1.0, (5, 6)), empty, episode(2, 0.0, (7,)), episode(3, 1.0, (8,))]
    assert turn_table(played).num_episodes == 3
    without = [each for each in played if each.turns]
    for way in ("train", "mask", "drop"):
        assert torch.equal(trained("grpo", played, on_context=way), trained("grpo", without, on_context=way))


def test_the_last_value_of_an_episode_that_ends_with_an_empty_turn_is_that_of_its_prompt() -> None:
    model = small_model()
    critic = Critic(model.network)
    torch.nn.init.normal_(critic.head.weight)
    played = [cut(0, 0.0, (5, 6), ()), episode(2, 1.0, (5,))]
    table = prepare(played, model, build("turn_ppo"), critic=critic, reference=copy.deepcopy(model.network)).table
    assert table.turn_value is not None and table.final_value is not None
    assert table.final_value[0] == table.turn_value[1] != 0
    assert table.final_value[1] == 0
