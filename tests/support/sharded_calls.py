"""What each rank does in the test of sharded models: it trains sharded and in one process, and prints the gaps."""

from __future__ import annotations

import copy
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rank_methods
import torch
from algorithm_batches import OF_EACH_PASS, VARIANTS, made
from layout_batches import exact_norms, token_episodes, wide_model
from rank_methods import CONFIG as RUN
from rank_methods import DTYPES, train
from torch import Tensor
from torch.distributed.tensor import DTensor

from turngym.agents.models.loading import LanguageModel, set_format
from turngym.agents.trajectory import Trajectory
from turngym.trainers.core.algorithm import Algorithm, LossInputs, LossOutput
from turngym.trainers.core.rows import Read, Row
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.checkpointing import checkpointed_layers, checkpointing
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.engine.ranks.launch import launched
from turngym.trainers.engine.ranks.sharded import Sharded
from turngym.trainers.engine.ranks.sharding import gathered, inside
from turngym.trainers.engine.scoring import score
from turngym.trainers.engine.teachers import Teaching
from turngym.trainers.loop.checkpoints.checkpoint import load_checkpoint, save_checkpoint, write_divided
from turngym.trainers.loop.checkpoints.pieces import divided_tensors
from turngym.trainers.loop.tasks.task import EnvTask
from turngym.trainers.records.run_folder import RunFolder

COMPARED = {"float64": OF_EACH_PASS, "float32": rank_methods.METHODS["float32"]}
CONFIG: Mapping[str, Any] = {"learning_rate": 1e-2, "max_grad_norm": 0.5, "max_micro_batch_tokens": 200}


def learner_of(model: LanguageModel, method: Algorithm[Any], ranks: Ranks | None, **settings: Any) -> Learner:
    """A learner on a model of its own, sharded if ranks are given."""
    own = model.with_network(copy.deepcopy(model.network))
    torch.manual_seed(0)
    config = UpdateConfig(**{**CONFIG, **settings})
    found = Learner(
        own,
        method,
        config,
        spread=None if ranks is None else Sharded(ranks, config.shard_group),
        teaching=Teaching("ema", lessons=lambda shown: [(7, 9)] * len(shown)),
    )
    for group in found.optimizer.param_groups:
        group["foreach"] = True  # the default on GPUs
    for module in method.modules().values():
        module.to(torch.promote_types(model.network.dtype, torch.float32))
    return found


def gradients(learner: Learner) -> list[Tensor]:
    """What the last update applied."""
    parameters = [*learner._policy_masters, *learner._other_masters]
    return [torch.zeros(p.shape) if p.grad is None else gathered(p.grad) for p in parameters]


def weights(learner: Learner) -> list[Tensor]:
    """The trained weights."""
    return [gathered(p.detach()) for p in [*learner._policy_masters, *learner._other_masters]]


def gap(found: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The largest difference of two lists of tensors, relative to the largest number."""
    size = max(float(each.abs().max()) for each in expected)
    differences = [float((a.double() - b.double()).abs().max()) for a, b in zip(found, expected, strict=True)]
    return max(differences) / max(size, 1e-9)


def compared(
    model: LanguageModel, episodes: list[Trajectory], variant: str, ranks: Ranks, updates: int = 1, **settings: Any
) -> dict[str, Any]:
    """Gradients of the first update, weights after several, and metrics, sharded against one process."""
    one, many = (learner_of(model, made(variant), each, **settings) for each in (None, ranks))
    expected, found = one.update(episodes, 0), many.update(episodes, 0)
    result = {"gradients": gap(gradients(many), gradients(one)), "norm": expected["train/grad_norm"]}
    metrics = {name: abs(found[name] - value) / max(abs(value), 1.0) for name, value in expected.items()}
    for iteration in range(1, updates):
        one.update(episodes, iteration)
        many.update(episodes, iteration)
    worst = max(metrics, key=lambda name: metrics[name])
    published = gap(*([p.detach() for p in each.model.network.parameters()] for each in (many, one)))
    return {
        **result,
        "weights": gap(weights(many), weights(one)),
        "published": published,
        "metric": [worst, metrics[worst]],
        "names": sorted(found) == sorted(expected),
    }


def methods(ranks: Ranks, kind: str) -> dict[str, Any]:
    """A method of each kind of passes, or in float32 a few; one has probes that always count."""
    model, episodes = model_and_episodes(DTYPES[kind])
    VARIANTS["s_ppo"] = ("s_ppo", {"s_ppo": {"trigger": 0.0}})
    return {name: compared(model, episodes, name, ranks) for name in COMPARED[kind]}


def model_and_episodes(kind: torch.dtype = torch.float32) -> tuple[LanguageModel, list[Trajectory]]:
    """A model and episodes that it could have played."""
    model = wide_model()
    episodes = token_episodes(model)
    set_format(model.network, kind)
    return model, episodes


def ways(ranks: Ranks) -> dict[str, Any]:
    """Layouts, checkpointed layers, several updates, adapters and weights of 16 bits."""
    model, episodes = model_and_episodes()
    adapted = with_adapters(model)
    short, _ = model_and_episodes(torch.bfloat16)
    short_adapted = with_adapters(model_and_episodes(torch.bfloat16)[0])
    few = {"max_micro_batch_tokens": 60}
    return {
        "packed": compared(model, episodes, "ppo", ranks, layout="packed"),
        "tree": compared(model, episodes, "ppo", ranks, layout="tree"),
        "checkpointed": compared(model, episodes, "st_ppo", ranks, gradient_checkpointing=True),
        "many micro-batches": compared(model, episodes, "ppo", ranks, **few),
        "trainer's log-probabilities": compared(model, episodes, "grpo", ranks, old_logprobs="trainer"),
        "fewer sequences than ranks": compared(model, one_sequence(episodes), "ppo", ranks),
        "minibatches": compared(model, episodes, "ppo", ranks, updates=3, epochs=2, minibatches=2),
        "adapters": compared(adapted, episodes, "grpo nested, with divergence and entropy", ranks, updates=3),
        "adapters and critic": compared(adapted, episodes, "ppo", ranks, updates=2),
        "16 bits": compared(short, episodes, "reinforce", ranks, updates=3),
        "float16 with critic": compared(model_and_episodes(torch.float16)[0], episodes, "ppo", ranks, updates=2),
        "decay of matrices": compared(model, episodes, "ppo", ranks, updates=2, weight_decay=0.1),
        "adapters on 16 bits": compared(short_adapted, episodes, "reinforce", ranks, updates=3),
    }


def with_adapters(model: LanguageModel) -> LanguageModel:
    """The model with adapters that do something."""
    adapted = add_adapters(model.with_network(copy.deepcopy(model.network)), 4, 0)
    generator = torch.Generator().manual_seed(5)
    for name, parameter in adapted.network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1, generator=generator)
    return adapted


def one_sequence(episodes: list[Trajectory]) -> list[Trajectory]:
    """An episode of one turn with tokens, so that one rank has nothing but passes that other ranks wait for."""
    found = next(each for each in episodes if any(turn.completion_ids for turn in each.turns))
    turn = next(turn for turn in found.turns if turn.completion_ids)
    return [replace(found, turns=[turn])]


def resumes(ranks: Ranks) -> dict[str, Any]:
    """Checkpoints from two ranks to one and back, for full weights, adapters and weights of 16 bits."""
    model, episodes = model_and_episodes()
    cases = {
        "weights": (model, "ppo"),
        "adapters": (with_adapters(model), "ppo"),
        "16 bits with reference": (model_and_episodes(torch.bfloat16)[0], "grpo nested, with divergence and entropy"),
    }
    return {name: resumed(ranks, each, variant, episodes) for name, (each, variant) in cases.items()}


def resumed(ranks: Ranks, model: LanguageModel, variant: str, episodes: list[Trajectory]) -> dict[str, Any]:
    """Train sharded, continue in one process, and sharded again, each from the checkpoint of the one before."""
    folder = Path(ranks.from_first(tempfile.mkdtemp() if ranks.is_first else ""))
    first = learner_of(model, made(variant), ranks)
    first.update(episodes, 0)
    saved = save(ranks, folder, first, 1)
    files = sorted(str(file.relative_to(saved)) for file in saved.rglob("*"))
    again, alone = (learner_of(model, made(variant), each) for each in (ranks, None))
    extra = [load_checkpoint(saved, learner) for learner in (again, alone)]
    loaded = [gap(state(learner), state(first)) for learner in (again, alone)]
    for learner in (first, again, alone):
        learner.publish()
        learner.update(episodes, 1)
    went_on = [gap(state(learner), state(first)) for learner in (again, alone)]
    back = folder / "back"
    ranks.on_first(lambda: str(save_checkpoint(back, alone, 2, {})))
    third = learner_of(model, made(variant), ranks)
    load_checkpoint(back / "000002", third)
    returned = gap(state(third), state(alone))
    ranks.barrier()
    ranks.on_first((saved / files[-2]).unlink)
    damaged = _said(lambda: ranks.agree(lambda: load_checkpoint(saved, again)))
    ranks.on_first(lambda: shutil.rmtree(folder))
    return {
        "files": files,
        "extra": extra,
        "loaded": loaded,
        "continued": went_on,
        "back": returned,
        "damaged": damaged,
    }


def no_room(ranks: Ranks) -> dict[str, Any]:
    """One rank cannot write its piece: no rank continues as if there were a checkpoint."""
    model, episodes = model_and_episodes()
    learner = learner_of(model, made("grpo"), ranks)
    learner.update(episodes, 0)
    folder = Path(ranks.from_first(tempfile.mkdtemp() if ranks.is_first else ""))
    save(ranks, folder, learner, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if ranks.rank == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    said = _said(lambda: write_divided(folder, learner, 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    left = ranks.on_first(lambda: sorted(file.name for file in folder.iterdir()))
    save(ranks, folder, learner, 2)
    ranks.barrier()
    found = sorted(file.name for file in folder.iterdir())
    ranks.barrier()
    ranks.on_first(lambda: shutil.rmtree(folder))
    return {"said": said, "left": left, "afterwards": found}


def save(ranks: Ranks, folder: Path, learner: Learner, iteration: int) -> Path:
    """Write a checkpoint as the trainer does."""
    write_divided(folder, learner, iteration)
    return Path(ranks.on_first(lambda: str(save_checkpoint(folder, learner, iteration, {"turns_total": 3}))))


def state(learner: Learner) -> list[Tensor]:
    """Weights and moments."""
    entries = [entry for _, entry in sorted(learner.optimizer.state_dict()["state"].items())]
    moments = [gathered(torch.as_tensor(value)) for entry in entries for _, value in sorted(entry.items())]
    return [*weights(learner), *moments]


def traps(ranks: Ranks) -> dict[str, Any]:
    """What goes wrong with a sharded network without a word, or with one that says little, and what is done instead."""
    model, episodes = model_and_episodes()
    learner = learner_of(model, made("ppo"), ranks)
    network, critic = learner.network, learner.critic
    assert critic is not None
    found: dict[str, Any] = {}
    batch = learner.prepare(episodes)
    inputs = next(iter(batch.micro_batches(sequences=batch.sequences)))
    loss = learner.spread.anchored(inputs.logprobs.sum(), inputs)
    silent = torch.autograd.grad(loss, learner.policy_parameters, retain_graph=True, allow_unused=True)
    found["autograd.grad returns None"] = sum(each is None for each in silent)
    learner.policy_parameters[0].grad = kept = torch.ones_like(learner.policy_parameters[0])
    mine = learner.spread.gradients(loss, learner.policy_parameters, learner.other_parameters)
    found["gradients of a number are whole"] = all(each is not None for each in mine)
    found["earlier gradients are kept"] = learner.policy_parameters[0].grad is kept
    found["backward pass of a loss that depends on nothing"] = _runs(
        lambda: learner.spread.anchored(torch.zeros(()), inputs).backward()
    )
    addresses = {tensor.data_ptr() for tensor in network.state_dict().values()}
    found["addresses of all tensors"] = sorted(addresses)
    found["names in a checkpoint"] = len(divided_tensors(network, trained_only=False)) == len(
        list(network.parameters())
    )
    found["deepcopy"] = _said(lambda: copy.deepcopy(network))
    ids = torch.tensor([[3, 4, 5]])
    found["below the root"] = _said(lambda: network.base_model(input_ids=ids, use_cache=False))
    found["inside of the root"] = _runs(
        lambda: inside(network, lambda each: each.base_model(input_ids=ids, use_cache=False))
    )
    with checkpointing(checkpointed_layers(network)):
        found["layers that sample while others are checkpointed"] = any(
            m.training for m in learner.model.network.modules()
        )
    rows = [Row.of([3, 4, 5], [Read(1, 5, 0, 0, 0)])]
    with torch.no_grad():
        before = float(score(network, rows, 1.0).logprobs[0, 0])
    loss_of, sampling = learner.algorithm.loss, list(learner.model.network.parameters())
    seen: list[int] = []

    def weighed(inputs: LossInputs) -> LossOutput:
        seen.append(sum(parameter.numel() for parameter in sampling))
        return loss_of(inputs)

    learner.algorithm.loss = weighed  # type: ignore[method-assign]
    learner.update(episodes, 0)
    found["numbers of the policy that samples, in an update"] = max(seen)
    with torch.no_grad():
        found["published"] = float(
            score(network, rows, 1.0).logprobs[0, 0] - score(learner.model.network, rows, 1.0).logprobs[0, 0]
        )
        found["moved"] = abs(float(score(network, rows, 1.0).logprobs[0, 0]) - before) > 1e-4
    found["only parts are kept between passes"] = all(
        isinstance(tensor.detach(), DTensor) for tensor in network.parameters()
    )
    return found


def not_finite(ranks: Ranks) -> str:
    """A loss that is not finite on one rank ends the update on both."""
    model, episodes = model_and_episodes()
    learner = learner_of(model, made("reinforce"), ranks)
    loss = learner.algorithm.loss

    def broken(inputs: LossInputs) -> LossOutput:
        output = loss(inputs)
        if ranks.rank == 1:
            terms = {name: term._replace(values=term.values * float("nan")) for name, term in output.terms.items()}
            return replace(output, terms=terms)
        return output

    learner.algorithm.loss = broken  # type: ignore[method-assign]
    return _said(lambda: learner.update(episodes, 0))


def emergency(ranks: Ranks) -> dict[str, Any]:
    """One rank fails while the second iteration is played: what was trained until then is in a checkpoint."""
    folder = Path(ranks.from_first(tempfile.mkdtemp() if ranks.is_first else ""))
    config = replace(RUN, algorithm="grpo", iterations=3, checkpoint_every=100)
    config = replace(config, update=replace(config.update, sharding="full"))
    play, calls = EnvTask.play, list[int]()

    def failing_play(self: EnvTask, *args: Any, **kwargs: Any) -> list[Trajectory]:
        calls.append(1)
        if len(calls) == 2 and ranks.rank == 1:
            raise OSError("a disk of the second rank")
        return play(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EnvTask, "play", failing_play)
        said = _said(lambda: train(ranks, folder / "run", config, torch.float32))
    ranks.barrier()
    kept = sorted(path.name for path in (folder / "run" / "checkpoints").iterdir())
    ranks.barrier()
    train(ranks, folder / "run", config, torch.float32, resumes=True)
    played = [record["iteration"] for record in ranks.on_first(lambda: RunFolder(folder / "run").metrics())]
    ranks.on_first(lambda: shutil.rmtree(folder))
    return {"said": said, "checkpoints": kept, "iterations": played}


def nodes(ranks: Ranks) -> dict[str, Any]:
    """Two nodes of two ranks: the nodes are copies of each other, unless all ranks hold one copy together."""
    model, episodes = model_and_episodes()
    together = {"sharding": "full", "shard_group": ranks.size}
    learners = [learner_of(model, made("ppo"), ranks, **settings) for settings in ({}, together)]
    return {
        "placements": [str(next(iter(each.network.parameters())).placements) for each in learners],  # type: ignore[attr-defined]
        "update": compared(model, episodes, "ppo", ranks, updates=2),
        "one copy": compared(model, episodes, "ppo", ranks, updates=2, **together),
        "probes": compared(with_adapters(model), episodes, "st_ppo", ranks),
        "resumed": resumed(ranks, model, "ppo", episodes),
    }


def failing(ranks: Ranks) -> None:
    """One rank stops in the middle of an update."""
    model, episodes = model_and_episodes()
    learner = learner_of(model, made("reinforce"), ranks)
    if ranks.rank == 1:
        learner.algorithm.loss = _out_of_memory  # type: ignore[method-assign]
    learner.update(episodes, 0)


def _out_of_memory(inputs: LossInputs) -> LossOutput:
    raise MemoryError("no memory is left on this rank")


def _runs(call: Callable[[], object]) -> bool:
    call()
    return True


def _said(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return ""


CALLS: dict[str, Callable[[Ranks], Any]] = {
    "float64": lambda ranks: methods(ranks, "float64"),
    "float32": lambda ranks: methods(ranks, "float32"),
    "ways": ways,
    "resumes": resumes,
    "no room": no_room,
    "traps": traps,
    "not finite": not_finite,
    "emergency": emergency,
}


ON_NODES = {"nodes": nodes}
FAILING = {"failing": failing}


def main(names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    with launched("cpu") as ranks, pytest.MonkeyPatch.context() as patch:
        exact_norms(patch)
        found = {}
        for name in names:
            start = time.process_time()
            found[name] = {**CALLS, **ON_NODES, **FAILING}[name](ranks)
            found[f"seconds {name}"] = time.process_time() - start
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
