"""Teachers: whose log-probabilities they give, in which layout, with adapters, after a lesson, and from checkpoints."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import play, small_model
from torch import Tensor, nn

from turngym.agents.models.embedded import build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Divergence
from turngym.trainers.core.rows import build_rows
from turngym.trainers.engine import divergences
from turngym.trainers.engine.adapters import adapters_off, add_adapters
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.lessons import lessons_of, transcript
from turngym.trainers.engine.other_prompts import PromptEditor
from turngym.trainers.engine.prepared import prepare
from turngym.trainers.engine.scoring import score
from turngym.trainers.engine.teachers import OWN_TEACHERS, Teaching
from turngym.trainers.loop.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from turngym.trainers.loop.setup import build_algorithm
from turngym.trainers.settings.config import TrainConfig

SETTINGS = UpdateConfig(learning_rate=1e-2)


@pytest.fixture(scope="module")
def trajectories() -> list[Trajectory]:
    """Two groups of four; of each the second and the last episode solved the task."""
    played = play(small_model())
    for number, each in enumerate(played):
        each.success = int(number % 4 in (1, 3))
        for turn in each.turns:
            turn.reward = float(each.success)
    return played


def learner_of(teaching: Teaching, rank: int = 0, name: str = "opd", **model: Any) -> Learner:
    torch.manual_seed(0)
    policy = add_adapters(small_model(), rank, seed=0) if rank else small_model(**model)
    return Learner(policy, build(name), SETTINGS, teaching=teaching)


def flat(network: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def teacher_column(learner: Learner, trajectories: Sequence[Trajectory]) -> Tensor:
    found = learner.prepare(trajectories).table.token_teacher_logprob
    assert found is not None
    return found


def scored(network: Any, trajectories: Sequence[Trajectory]) -> Tensor:
    """Log-probability of each sampled token, turn by turn."""
    rows = build_rows(trajectories, False, merge=False)
    found = [score(network, [row], 1.0).logprobs[0] for row in rows]
    return torch.cat(found).detach().double()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_squared_probabilities_are_those_of_the_policy_at_each_sampled_token(
    temperature: float, trajectories: list[Trajectory]
) -> None:
    policy = small_model()
    found = prepare(trajectories, policy, build("otb"), temperature=temperature).table.token_squares
    expected = []
    for turn in (turn for each in trajectories for turn in each.turns):
        ids = torch.tensor([[*turn.prompt_ids, *turn.completion_ids]])
        logits = policy.network(ids).logits[0, len(turn.prompt_ids) - 1 : -1].double() / temperature
        expected.append(logits.softmax(-1).square().sum(-1))
    assert found is not None
    torch.testing.assert_close(found, torch.cat(expected).detach(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("loss", ["tdpo1", "tdpo2"])
def test_tdpo_compares_whole_distributions_with_those_of_the_reference(
    loss: str, trajectories: list[Trajectory]
) -> None:
    """Its column is the KL from the reference over the vocabulary, and its gradient that of the loss of all pairs."""
    policy, other, settings = small_model(), small_model(seed=3), {"loss": loss, "beta": 0.02}
    method = build("dpo", {"dpo": settings})
    batch = prepare(trajectories, policy, method, reference=other.network, temperature=0.7, old_logprobs="trainer")
    for inputs in batch.micro_batches():
        method.loss(inputs).total(inputs).backward()
    found = [parameter.grad for parameter in policy.network.parameters()]
    policy.network.zero_grad()
    sums, drifts, columns = [], [], []
    for each in trajectories:
        total = torch.zeros(2)
        for turn in each.turns:
            ids, count = torch.tensor([[*turn.prompt_ids, *turn.completion_ids]]), len(turn.completion_ids)
            p, q = ((model.network(ids).logits[0, -count - 1 : -1] / 0.7).log_softmax(-1) for model in (policy, other))
            kl = (q.exp() * (q - p)).sum(-1)
            total = total + torch.stack([(p - q)[range(count), ids[0, -count:]].sum(), kl.sum()])
            columns.append(kl.detach())
        sums.append(total[0])
        drifts.append(total[1])
    losses = []
    for better in (1, 3, 5, 7):
        for worse in (0, 2, 4, 6):
            if better // 4 == worse // 4:
                drift = (
                    drifts[worse] - drifts[better] if loss == "tdpo1" else (drifts[worse] - drifts[better].detach()) / 2
                )
                losses.append(-torch.nn.functional.logsigmoid(0.02 * (sums[better] - sums[worse] - drift)))
    torch.stack(losses).mean().backward()
    table = batch.table
    assert table.token_divergence is not None and table.token_divergence.max() > 0.01
    torch.testing.assert_close(table.token_divergence.float(), torch.cat(columns), atol=1e-5, rtol=1e-4)
    for gradient, parameter in zip(found, policy.network.parameters(), strict=True):
        assert gradient is not None
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-6, rtol=1e-3)


@pytest.mark.parametrize(
    ("prompt", "text", "edited"),
    [
        ("player 2 3 box 3 3 goal", "box 3 3", "player 2 3 (nothing) goal"),
        ("player 2 3\nplayer 2 3 goal", "  player 2 3\n", "player 2 3\n(nothing) goal"),
        ("wall \u00e9\u00df\U0001f600 1", "\u00e9\u00df\U0001f600", "wall (nothing) 1"),
        ("player 2 3", "2 3", "player (nothing)"),
        ("player 2 3", "goal", ""),
        ("player 2 3", " ", ""),
    ],
)
def test_the_last_occurrence_of_a_text_is_exchanged_in_the_tokens_of_a_prompt(
    prompt: str, text: str, edited: str
) -> None:
    model = small_model()
    ids = model.tokenizer.encode(prompt, add_special_tokens=False)
    assert model.text_of(PromptEditor(model).exchanged(ids, text, "(nothing)")) == edited


def test_the_tokens_around_an_exchanged_text_stay_however_they_were_cut() -> None:
    model = small_model()
    around = [model.tokenizer.encode(letter, add_special_tokens=False)[0] for letter in "wall"]
    middle = model.tokenizer.encode(" goal ", add_special_tokens=False)
    found = PromptEditor(model).exchanged([*around, *middle, *around], "goal", "box")
    assert list(found[:4]) == list(found[-4:]) == around
    assert model.text_of(found) == "wall box wall"


def test_a_short_text_is_not_exchanged_in_what_the_template_ends_prompts_with() -> None:
    model = small_model()
    prompt = model.tokenizer.apply_chat_template([{"role": "user", "content": "a"}], tokenize=False)
    ids = model.tokenizer.encode(f"{prompt}<|assistant|>", add_special_tokens=False)
    edited = model.text_of(PromptEditor(model).exchanged(ids, "a", "box"))
    assert edited == "<|user|>box<|end|><|assistant|>"


def test_what_was_sampled_is_scored_behind_prompts_with_another_observation(trajectories: list[Trajectory]) -> None:
    policy, placeholder = small_model(), "(no information)"
    told = [replace(each, turns=[replace(turn) for turn in each.turns]) for each in trajectories]
    told[0].turns[0].observation = "not in its prompt"
    table = prepare(told, policy, build("infopo", {"infopo": {"placeholder": placeholder}})).table
    editor, expected = PromptEditor(policy), []
    for turn in (turn for each in told for turn in each.turns):
        prompt, count = editor.exchanged(turn.prompt_ids, turn.observation, placeholder), len(turn.completion_ids)
        if not prompt:
            expected.append(torch.full((count,), float("nan")))
            continue
        ids = torch.tensor([[*prompt, *turn.completion_ids]])
        logprobs = policy.network(ids).logits[0, -count - 1 : -1].log_softmax(-1).detach()
        expected.append(logprobs[range(count), ids[0, -count:]])
    found = table.token_other_logprob
    assert found is not None and 0 < int(found.isnan().sum()) < len(found) / 2
    torch.testing.assert_close(found.float(), torch.cat(expected), atol=1e-5, rtol=0, equal_nan=True)
    assert float((found - table.token_logprob).abs().nan_to_num(0.0).max()) > 1e-3


def test_another_model_scores_what_the_policy_sampled(trajectories: list[Trajectory]) -> None:
    other = small_model(seed=3, hidden=32)
    expected = scored(other.network, trajectories)
    found = teacher_column(learner_of(Teaching(other)), trajectories)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert not any(parameter.requires_grad for parameter in other.network.parameters())


def test_a_teacher_with_another_tokenizer_is_refused() -> None:
    other = small_model()
    other = LanguageModel(other.network, build_tokenizer(["other words entirely"] * 3, 340), "other")
    with pytest.raises(ConfigError, match="the tokenizer of the teacher is not that of the policy"):
        learner_of(Teaching(other))


@pytest.mark.parametrize("rank", [0, 2])
def test_the_base_stays_and_the_average_follows(rank: int, trajectories: list[Trajectory]) -> None:
    assert OWN_TEACHERS[:2] == ("base", "ema")
    base, average = (learner_of(Teaching(source, rate=0.25), rank) for source in OWN_TEACHERS[:2])
    assert base.teacher is not None and average.teacher is not None
    first = teacher_column(base, trajectories)
    before = flat(average.network)
    torch.testing.assert_close(teacher_column(average, trajectories), first)
    kicked(base)
    kicked(average)
    average.teacher.follow(average.network, average.masters.of)
    assert torch.equal(teacher_column(base, trajectories), first)
    torch.testing.assert_close(flat(average.teacher.network), before.lerp(flat(average.network), 0.25))
    assert not torch.equal(teacher_column(average, trajectories), first)
    assert (base.teacher.network is base.network) == bool(rank), "under adapters the base costs no memory"


def kicked(learner: Learner) -> None:
    with torch.no_grad():
        for parameter in learner.policy_parameters:
            parameter.add_(0.05)


def test_a_16_bit_policy_has_a_float32_average(trajectories: list[Trajectory]) -> None:
    model = small_model()
    nn.Module.to(model.network, torch.bfloat16)
    learner = Learner(model, build("opd"), replace(SETTINGS, learning_rate=1e-5), teaching=Teaching("ema"))
    assert learner.teacher is not None
    assert {parameter.dtype for parameter in learner.teacher.network.parameters()} == {torch.float32}
    before = flat(learner.teacher.network).clone()
    master = learner.masters.of(learner.policy_parameters[0])
    with torch.no_grad():
        master.add_(1e-5)  # lost in 16 bits
    learner.teacher.follow(learner.network, learner.masters.of)
    assert float((flat(learner.teacher.network) - before).abs().max()) == pytest.approx(5e-7, rel=0.1)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_resumed_run_has_the_same_average_to_the_bit(
    rank: int, trajectories: list[Trajectory], tmp_path: Path
) -> None:
    teaching = Teaching("ema", rate=0.3, lessons=lessons_of(["hint=player 2 3"], small_model()))
    learner = learner_of(teaching, rank)
    for iteration in range(2):
        learner.update(trajectories, iteration)
    save_checkpoint(tmp_path, learner, 2, {})
    resumed = learner_of(teaching, rank)
    load_checkpoint(tmp_path / "000002", resumed)
    again = [each.update(copy.deepcopy(trajectories), 2) for each in (learner, resumed)]
    assert again[0] == again[1]
    assert resumed.teacher is not None and learner.teacher is not None
    assert torch.equal(flat(resumed.teacher.network), flat(learner.teacher.network))
    assert not torch.equal(flat(learner.teacher.network), flat(learner.network))


@pytest.mark.parametrize("layout", ["rows", "packed", "tree", "auto"])
def test_a_lesson_stands_before_the_same_tokens_in_every_layout(layout: Any, trajectories: list[Trajectory]) -> None:
    """Scored by hand: the lesson's tokens in front of every prompt of the episode, and nothing without one."""
    model = small_model()
    lessons = lessons_of(["sibling"], model)
    assert lessons is not None
    prefixes = lessons(trajectories)
    learner = Learner(model, build("opd"), replace(SETTINGS, layout=layout), teaching=Teaching("policy", 0.0, lessons))
    found = teacher_column(learner, trajectories)
    bos = model.tokenizer.bos_token_id
    longer = [
        replace(
            each,
            turns=[replace(turn, prompt_ids=joined(prefix or (), turn.prompt_ids)) for turn in each.turns],
        )
        for each, prefix in zip(trajectories, prefixes, strict=True)
    ]
    assert bos is None or all(turn.prompt_ids.count(bos) <= 1 for each in longer for turn in each.turns)
    expected = scored(model.network, longer)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def joined(prefix: tuple[int, ...], prompt: tuple[int, ...]) -> tuple[int, ...]:
    return prefix + (prompt[1:] if prefix and prompt[0] == prefix[0] else prompt)


def test_siblings_are_other_solved_episodes_of_the_group(trajectories: list[Trajectory]) -> None:
    model = small_model()
    lessons = lessons_of(["sibling"], model)
    assert lessons is not None
    texts = ["" if ids is None else model.text_of(ids) for ids in lessons(trajectories)]
    for number, text in enumerate(texts):
        teacher = 4 * (number // 4) + (3 if number % 4 == 1 else 1)
        assert " ".join(transcript(trajectories[teacher]).split())[:20] in " ".join(text.split())
    nobody = [replace(each, success=0) for each in trajectories]
    assert lessons(nobody) == [None] * len(nobody)
    one = [replace(each, success=int(number == 2)) for number, each in enumerate(trajectories)]
    assert [ids is None for ids in lessons(one)] == [False, False, True, False, True, True, True, True]


def test_episodes_without_a_lesson_leave_the_loss(trajectories: list[Trajectory]) -> None:
    model = small_model()
    unsolved = [replace(each, success=int(number == 1)) for number, each in enumerate(trajectories)]
    learner = learner_of(Teaching("policy", lessons=lessons_of(["sibling"], model)))
    batch = learner.prepare(unsolved)
    column = batch.table.token_teacher_logprob
    assert column is not None
    taught = batch.table.to_tokens(batch.table.episode)
    assert set(taught[~column.isnan()].tolist()) == {0, 2, 3}
    assert batch.credit.masked is not None and torch.equal(batch.credit.masked, column.isnan())
    metrics = learner.update([replace(each, success=0) for each in trajectories], 0)
    assert metrics["credit/taught"] == 0.0 and metrics["train/grad_norm"] == 0.0


def test_texts_of_columns_and_feedback_are_lessons_and_control_tokens_stay_texts() -> None:
    model = small_model()
    special = model.tokenizer.all_special_tokens[0]
    episodes = [
        Trajectory(play_spec(), columns={"demo": f"go {special}"}, final_observation="the end"),
        Trajectory(play_spec()),
    ]
    lessons = lessons_of(["column=demo", "feedback"], model)
    assert lessons is not None
    first, second = lessons(episodes)
    assert first is not None and second is None
    plain = lessons_of(["hint=go"], model)
    assert plain is not None and plain(episodes)[0] is not None
    id = model.tokenizer.convert_tokens_to_ids(special)
    assert first.count(id) == plain(episodes)[0].count(id), "a text cannot become a control token"  # type: ignore[union-attr]
    assert "the end" in model.text_of(first)
    with pytest.raises(ConfigError, match="has numbers; a lesson needs a column of texts"):
        lessons([Trajectory(play_spec(), columns={"demo": 1.0})])


def play_spec() -> Any:
    from turngym.agents.trajectory import EpisodeSpec

    return EpisodeSpec(0, 0)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"algorithm": "opd"}, "opd learns from a teacher and there is none: pass --teacher"),
    (
        {"algorithm": "grpo", "teacher": "ema"},
        r"grpo does not learn from a teacher: .* --algorithm grpo\+opd_advantage",
    ),
    ({"algorithm": "opd", "teacher": "policy"}, "learns nothing from itself with the same prompt"),
    ({"algorithm": "opd", "teacher_prompt": ("sibling",)}, "pass --teacher as well"),
    ({"algorithm": "opd", "teacher": "ema", "teacher_prompt": ("siblings",)}, "Did you mean 'sibling'"),
    ({"algorithm": "opd", "teacher": "ema", "teacher_prompt": ("hint=",)}, "expected sibling, feedback"),
    ({"algorithm": "opd", "teacher": "ema", "teacher_rate": 0.0}, "teacher"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_settings_that_make_no_sense_are_refused_before_anything_is_played(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        build_algorithm(TrainConfig.build("the run", settings))


def test_siblings_need_a_group() -> None:
    config = TrainConfig.build(
        "the run",
        {"algorithm": "opd", "teacher": "ema", "teacher_prompt": ("sibling",), "rollout": {"group_size": 1}},
    )
    with pytest.raises(ConfigError, match="another episode of the group: pass --rollout"):
        build_algorithm(config)


def test_a_loop_of_ones_own_names_what_is_missing(trajectories: list[Trajectory]) -> None:
    with pytest.raises(ConfigError, match=r"in Python, teacher="):
        prepare(trajectories, small_model(), build("opd"))
    batch = prepare(trajectories, small_model(), build("opd"), teacher=small_model(seed=3))
    assert batch.credit.metrics["taught"] == 1.0


@pytest.mark.parametrize("rank", [0, 2])
def test_a_divergence_in_chunks_is_that_of_whole_distributions(
    rank: int, trajectories: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against logits of the whole network, with a lesson for some episodes; in one chunk, and in chunks of five."""
    model = small_model(dtype=torch.float64)
    lessons = lessons_of(["sibling"], model)
    assert lessons is not None
    solved = [replace(each, success=int(number == 1)) for number, each in enumerate(trajectories)]
    policy = add_adapters(model, rank, seed=0) if rank else model
    learner = Learner(policy, build("gkd"), SETTINGS, 0.5, teaching=Teaching("base", lessons=lessons))
    if rank:
        kicked(learner)
    gradients = []
    for size in (1000, 5):
        monkeypatch.setattr(divergences, "chunk_size", lambda words, budget, size=size: size)
        policy.network.zero_grad()
        batch = learner.prepare(solved)
        parts = list(batch.micro_batches())
        found = torch.cat([each.divergence[each.action_mask] for each in parts])  # type: ignore[index]
        torch.stack([learner.algorithm.loss(each).total(each) for each in parts]).sum().backward()
        gradients.append([p.grad.clone() for p in learner.policy_parameters if p.grad is not None])
        expected = sorted(by_hand(learner, solved, lessons(solved)))
        torch.testing.assert_close(found.sort().values, torch.stack(expected), atol=1e-6, rtol=1e-5)
        assert 0 < int((found != 0).sum()) < len(found)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)
        assert one.any()


def by_hand(learner: Learner, episodes: Sequence[Trajectory], prefixes: Sequence[Any]) -> list[Tensor]:
    """The divergence of every sampled token from logits of each prompt."""
    network, found = learner.network, []

    def distributions(ids: tuple[int, ...], count: int) -> Tensor:
        return network(input_ids=torch.tensor([ids])).logits[0, -count - 1 : -1] / 0.5  # type: ignore[no-any-return]

    for each, prefix in zip(episodes, prefixes, strict=True):
        for turn in each.turns:
            count, zero = len(turn.completion_ids), torch.zeros(len(turn.completion_ids), dtype=torch.float64)
            if prefix is None:
                found += list(zero)
                continue
            with torch.no_grad():
                own = distributions(turn.prompt_ids + turn.completion_ids, count)
                with adapters_off(network):
                    other = distributions(joined(prefix, turn.prompt_ids) + turn.completion_ids, count)
            found += list(F.vocabulary_divergence(own, other, Divergence(0.5)).double())
    return found
