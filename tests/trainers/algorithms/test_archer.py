"""ArCHer: the critic of turns, its targets and replay, and what the actor's tokens are credited with."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from algorithm_batches import batch_of, episodes, reduced
from small import small_model
from torch import Tensor, nn, tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.archer import ArCHer, transitions_of, with_texts
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.columns import lay_out_column
from turngym.trainers.core.turn_table import TurnTable, turn_table
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.critics.twin import Transition, TwinCritic, expectile_loss
from turngym.trainers.engine.learner import Learner

torch.set_num_threads(1)


class Fixed(nn.Module):
    """A critic that says the same of every text."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = nn.Parameter(tensor(value, dtype=torch.float64))

    def forward(self, texts: Sequence[str]) -> Tensor:
        return self.value.expand(len(texts))


def saying(q: Sequence[float], v: Sequence[float]) -> TwinCritic:
    critic = TwinCritic(8, 4)
    critic.action_values = nn.ModuleList(map(Fixed, q))
    critic.state_values = nn.ModuleList(map(Fixed, v))
    return critic


def archer(**config: Any) -> ArCHer:
    algorithm = build("archer", {"archer": {"entropy_coef": 0.0, **config}})
    assert isinstance(algorithm, ArCHer)
    return algorithm


def played(
    actions: Sequence[str], rewards: Sequence[float], end: str = "terminated", tokens: int = 2, final: str = "far"
) -> Trajectory:
    turns = [
        Turn("", f"state {k}", action, completion_ids=(1,) * tokens, logprobs=(-1.0,) * tokens, reward=reward)
        for k, (action, reward) in enumerate(zip(actions, rewards, strict=True))
    ]
    ends: dict[str, Any] = {"terminated": end == "terminated", "truncated": end == "truncated"}
    return with_texts([Trajectory(EpisodeSpec(0, 0), turns=turns, final_anchor=final, **ends)])[0]


def with_prompt(trajectory: Trajectory) -> Trajectory:
    return replace(trajectory, turns=[replace(turn, prompt_ids=(3, 4)) for turn in trajectory.turns])


def critic_losses(algorithm: ArCHer, table: TurnTable, credit: Credit) -> tuple[Tensor, Tensor]:
    """The losses of Q and of V at every turn of a batch."""
    first = table.first_tokens()
    return algorithm.critic_losses({name: column[first] for name, column in credit.columns.items()})


def step(algorithm: ArCHer, trajectories: Sequence[Trajectory]) -> Credit:
    """What an iteration does to the state."""
    credit = algorithm.credit(turn_table(trajectories))
    algorithm.update_state(trajectories, credit)
    algorithm.observe({})
    return credit


# Worked numbers


def test_the_worked_numbers_of_the_critic() -> None:
    # Section 10.1: r 0, gamma .95, V_slow .8 -> y .76; Q .7 and .5 -> L_Q .0712.
    algorithm = archer()
    algorithm.critic, algorithm.slow = saying([0.7, 0.5], [0.6, 0.55]), saying([0.65, 0.45], [0.8, 0.8])
    table = turn_table([played(["go", "stop"], [0.0, 0.0], end="truncated")])
    credit = algorithm.credit(table)
    assert credit.columns["q_target"][table.first_tokens()].tolist() == [[[pytest.approx(0.76)] * 2]] * 2
    q_loss, v_loss = critic_losses(algorithm, table, credit)
    assert q_loss.tolist() == [pytest.approx(0.0712)] * 2
    # The index is kept: V_1 learns from Q_1 and V_2 from Q_2.
    assert v_loss.tolist() == [pytest.approx((0.6 - 0.65) ** 2 + (0.55 - 0.45) ** 2)] * 2
    assert credit.advantages.tolist() == [pytest.approx(-0.05)] * 4


def test_the_worked_number_of_the_actor() -> None:
    """A -.05 and two log-probabilities that sum to -2: L = -.1, and it is the mean over turns, not over tokens."""
    from turngym.trainers.core.algorithm import LossInputs
    from turngym.trainers.functional import loss_weights

    for copies in (1, 3):
        algorithm = archer()
        algorithm.critic = saying([0.7, 0.5], [0.6, 0.55])
        table = turn_table([played(["go"], [0.0])] * copies)
        credit = algorithm.credit(table)
        logprobs = torch.full((1, 2 * copies), -1.0, dtype=torch.float64)
        inputs = LossInputs(
            logprobs,
            logprobs,
            credit.advantages[None],
            torch.ones(1, 2 * copies, dtype=torch.bool),
            table.token_turn[None],
            {name: loss_weights(table, name)[None] for name in algorithm.normalisations},
            columns={
                name: lay_out_column(column, torch.arange(2 * copies)[None]) for name, column in credit.columns.items()
            },
        )
        assert float(reduced(inputs, algorithm.loss(inputs).terms)["policy"].detach()) == pytest.approx(-0.1)


def test_the_slow_copy_moves_by_its_rate_and_once_an_iteration() -> None:
    algorithm = archer(slow_rate=0.1)
    algorithm.slow, algorithm.critic = saying([1.0, 1.0], [1.0, 1.0]), saying([2.0, 2.0], [2.0, 2.0])
    algorithm.observe({})
    assert [p.item() for p in algorithm.slow.parameters()] == [pytest.approx(1.1)] * 4
    assert [p.item() for p in algorithm.critic.parameters()] == [2.0] * 4


def test_where_nothing_follows_the_target_is_the_reward() -> None:
    slow = saying([0, 0], [0.8, 0.8])
    targets = slow.targets([Transition("s", "a", 0.3, None), Transition("s", "a", 0.3, "t")], 0.95)
    assert targets.tolist() == [[0.3, 0.3], [pytest.approx(1.06)] * 2]


def test_an_expectile_above_one_half_leans_towards_better_actions() -> None:
    errors = tensor([0.5, -0.5], dtype=torch.float64)
    assert expectile_loss(errors, 0.5).tolist() == [0.25, 0.25]
    assert expectile_loss(errors, 0.9).tolist() == [pytest.approx(0.45), pytest.approx(0.05)]
    samples = tensor([0.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    grid = torch.linspace(0, 1, 1001, dtype=torch.float64)
    best = [float(grid[expectile_loss(samples - x[:, None], e).sum(-1).argmin()]) for e in (0.5, 0.9) for x in [grid]]
    assert best == [pytest.approx(0.25), pytest.approx(0.75)], "the mean, and the 0.9 expectile by hand"


# Transitions and replay


def test_without_the_texts_of_actions_it_says_how_to_get_them() -> None:
    turns = [Turn("", "s", "go", completion_ids=(1,), logprobs=(-1.0,))]
    with pytest.raises(ConfigError, match=r"archer reads the actions of turns as a column: gather .* its collect\(\)"):
        archer().credit(turn_table([Trajectory(EpisodeSpec(0, 0), turns=turns)]))


def table_and_rewards(*trajectories: Trajectory) -> tuple[TurnTable, Tensor]:
    table = turn_table(trajectories)
    return table, table.reward


def test_transitions_end_where_the_rules_say_and_go_on_after_a_cut() -> None:
    ended, cut = played(["a", "b"], [0, 1]), played(["c"], [2], end="truncated")
    table, rewards = table_and_rewards(ended, cut)
    assert transitions_of(table, rewards, True) == [
        ("state 0", "a", 0.0, "state 1"),
        ("state 1", "b", 1.0, None),
        ("state 0", "c", 2.0, "far"),
    ]
    assert transitions_of(table, rewards, False)[2].following is None
    unknown, rewards = table_and_rewards(played(["c"], [2], end="truncated", final=""))
    assert transitions_of(unknown, rewards, True)[0].following is None, "a game between seats tells no last state"


def test_replay_holds_earlier_iterations_only_and_forgets_the_oldest() -> None:
    algorithm = archer(replay_turns=3, replay_ratio=2)
    batch = [played(["a", "b"], [0, 1])]
    assert step(algorithm, batch).metrics["replayed_turns"] == 0
    assert step(algorithm, batch).metrics["replayed_turns"] == 4
    assert [each.action for each in algorithm.replay] == ["b", "a", "b"]
    off = archer(replay_turns=0)
    step(off, batch)
    assert off.replay == []


def test_the_loss_of_q_is_the_mean_over_a_turn_and_what_was_replayed_for_it() -> None:
    algorithm = archer(replay_ratio=3)
    algorithm.critic, algorithm.slow = saying([0.0, 0.0], [0.0, 0.0]), saying([0.0, 0.0], [0.0, 0.0])
    table, _ = table_and_rewards(played(["a", "b"], [0, 1]))
    algorithm.replay = [Transition("s", "old", 2.0, None)]
    credit = algorithm.credit(table)
    q_loss, _ = critic_losses(algorithm, table, credit)
    assert q_loss.tolist() == [2 * (0 + 3 * 4) / 4, 2 * (1 + 3 * 4) / 4]
    second = {name: column[table.first_tokens()][tensor([1])] for name, column in credit.columns.items()}
    assert algorithm.critic_losses(second)[0].tolist() == [q_loss.tolist()[1]], "a turn keeps what was drawn for it"


def test_further_updates_learn_from_the_replay_and_the_slow_copy_follows_each() -> None:
    algorithm = archer(critic_updates=4, slow_rate=0.5, replay_ratio=2, gamma=0.0)
    algorithm.critic, algorithm.slow = saying([1.0, 1.0], [1.0, 1.0]), saying([0.0, 0.0], [0.0, 0.0])
    batch = [played(["a", "b"], [0.0, 3.0])]
    credit = algorithm.credit(turn_table(batch))
    algorithm.update_state(batch, credit)
    slow, losses = [], []
    for loss in algorithm.module_losses(credit):
        slow.append(algorithm.slow.v(["s"])[0, 0].item())
        losses.append(loss.item())
    assert slow == [0.0, 0.5, 0.75] and algorithm.slow.v(["s"])[0, 0].item() == 0.875
    # Twins of V miss the slow Q by 1, .5 and .25; those of Q miss the rewards 0 and 3 by 1 and 2, whichever are drawn.
    of_v = [2 * (1 - each) ** 2 for each in slow]
    of_q = [(loss - v) / 2 for loss, v in zip(losses, of_v, strict=True)]
    assert all(1 < each < 4 for each in of_q) and len(set(of_q)) > 1, "each update draws anew"
    assert list(archer().module_losses(credit)) == []
    with pytest.raises(ConfigError, match="critic_updates must be at least 1"):
        archer(critic_updates=0)


def test_the_learner_makes_the_further_updates_of_the_critic_alone() -> None:
    found = []
    for updates in (1, 6):
        options = {"entropy_coef": 0.0, "critic_updates": updates, "critic_iterations": 0}
        algorithm = build("archer", {"archer": options})
        learner = Learner(small_model(), algorithm, UpdateConfig(critic_learning_rate=0.01))
        learner.update([with_prompt(each) for each in (played(["a", "b"], [0.0, 1.0]), played(["c"], [0.5]))], 0)
        found.append((learner, algorithm))
    (one, first), (six, second) = found
    assert one.updates == six.updates == 1
    for a, b in zip(one.network.parameters(), six.network.parameters(), strict=True):
        assert torch.equal(a, b), "the policy takes the same step"
    assert isinstance(first, ArCHer) and isinstance(second, ArCHer)
    assert not torch.equal(first.critic.v(["state 0"]), second.critic.v(["state 0"]))
    assert max(int(state["step"]) for state in six.optimizer.state.values()) == 6


def test_the_replay_survives_a_checkpoint() -> None:
    algorithm = archer()
    step(algorithm, episodes())
    resumed = archer()
    resumed.load_state(algorithm.state())
    assert resumed.replay == algorithm.replay != []
    assert set(algorithm.modules()) == {"turn_critic", "turn_critic_slow"}
    assert not any(p.requires_grad for p in algorithm.slow.parameters())


# Learning


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A language model that the critic reads with."""
    folder = tmp_path_factory.mktemp("reader") / "model"
    small_model().save(folder)
    return f"model:{folder}"


@pytest.mark.parametrize("critic", ["words", "model"])
def test_the_critic_learns_which_action_pays_in_which_state(critic: str, reader: str) -> None:
    """A contextual bandit: go pays in the light, stay in the dark. Advantages get the signs, twins stay different."""
    algorithm = archer(slow_rate=1.0, replay_ratio=0, gamma=0.0, critic=reader if critic == "model" else critic)
    optimizer = torch.optim.Adam(algorithm.critic.parameters(), 1e-2)
    cases = [(light, action) for light in ("light", "dark") for action in ("go", "stay")]
    batch = []
    for light, action in cases:
        pays = float((light == "light") == (action == "go"))
        turn = Turn("", light, action, completion_ids=(1,), logprobs=(0.0,), reward=pays)
        batch.append(Trajectory(EpisodeSpec(0, 0), turns=[turn], terminated=True))
    table = turn_table(with_texts(batch))
    for _ in range(50 if critic == "model" else 150):
        credit = algorithm.credit(table)
        loss = torch.stack([each.sum() for each in critic_losses(algorithm, table, credit)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        algorithm.observe({})
    found = algorithm.credit(table).advantages
    assert found.tolist() == [pytest.approx(x, abs=0.15) for x in (0.5, -0.5, -0.5, 0.5)]
    first, second = (next(iter(head.parameters())) for head in algorithm.critic.action_values)
    assert not torch.equal(first, second)


def test_only_the_critic_is_trained_at_first_and_the_slow_copy_never_by_gradients() -> None:
    algorithm = archer(critic_iterations=2)
    assert [algorithm.trains_policy(k) for k in range(4)] == [False, False, True, True]
    batch = batch_of(algorithm, episodes())
    inputs = batch.inputs(batch.by_turn())
    terms = reduced(inputs, algorithm.loss(inputs).terms)
    (terms["q"] + terms["v"]).backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in algorithm.critic.parameters())
    assert all(p.grad is None for p in algorithm.slow.parameters())


def test_the_plain_objective_has_no_ratio_to_change() -> None:
    with pytest.raises(ConfigError, match="archer with objective='plain' has no importance ratio"):
        build("archer+turn_is")
    build("archer+turn_is", {"archer": {"objective": "clipped"}})
    with pytest.raises(ConfigError, match="expectile must be from 0 to 1"):
        archer(expectile=2.0)
    with pytest.raises(ConfigError, match="critic must be 'words' or 'model:FOLDER', got 'model:'"):
        archer(critic="model:")


def test_a_language_model_reads_each_text_by_itself_and_is_trained_as_a_whole(reader: str) -> None:
    options = {"entropy_coef": 0.0, "critic": reader, "critic_iterations": 0, "critic_updates": 2}
    algorithm: Any = build("archer", {"archer": options})
    texts = ["player 2 3", "wall", "", "player 2 3", "box 3 3 goal 4 1"]
    together = algorithm.critic.v(texts)
    assert together.dtype == torch.float64 and together.shape == (5, 2)
    alone = torch.cat([algorithm.critic.v([text]) for text in texts])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    assert torch.equal(together[0], together[3]) and not torch.equal(together[0], together[1])
    assert not torch.equal(algorithm.critic.q(["wall"], ["up"]), algorithm.critic.q(["wall"], ["down"]))
    assert torch.equal(algorithm.slow.v(texts), together) and algorithm.critic.v([]).shape == (0, 2)
    before = [p.detach().clone() for p in algorithm.critic.trunk.parameters()]
    learner = Learner(small_model(), algorithm, UpdateConfig(critic_learning_rate=0.01))
    learner.update([with_prompt(each) for each in (played(["a", "b"], [0.0, 1.0]), played(["c"], [0.5]))], 0)
    moved = [not torch.equal(a, b) for a, b in zip(before, algorithm.critic.trunk.parameters(), strict=True)]
    assert all(moved)
    assert not torch.equal(algorithm.slow.v(texts), together), "the slow copy follows the further update"
