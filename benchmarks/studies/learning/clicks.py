"""MiniWoB from pixels alone: ``python benchmarks/studies/learning/clicks.py``.

Plan, written before the runs. One network for each task and seed (:mod:`turngym.agents.models.vision.clicks`) sees the
page's 160 x 208 pixels and answers with a click. It imitates the expert's clicks on demonstrations of the train split,
and is then trained by reward: REINFORCE with the mean of a group, four attempts at the same page, as baseline. The
control continues imitating the same demonstrations for as many pictures as the reward had. Arms: expert, random clicks,
imitation, imitation + reward, and imitation continued; the networks sample their clicks, on the same 80 pages of the
test split. Tasks: ``identify-shape`` (one click: tells shapes apart), ``click-test-2`` (one click on one of two buttons
that lie anywhere), ``click-button-sequence`` (two clicks in order). Seeds 0 to 2, and Student's t over seeds. Question:
is imitation + reward better than imitation, and than imitation continued (paired by seed)?

Second plan, written after the first, in which reward gained nothing and one seed collapsed: four times as many updates,
steps of 2e-4 instead of 5e-4, all else equal: ``--updates 60 --reward-learning-rate 2e-4 --out clicks_longer.json``.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import turngym
from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.vision.click_agent import ClickAgent
from turngym.agents.models.vision.clicks import ClickNetwork, ClickSettings, batch, build_clicks
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.benchmarks.statistics.power import interval
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.vector import TextVectorEnv
from turngym.envs.web.driver.actions import read
from turngym.seeding import stream, stream_seed

ENV = "turngym/MiniWoB-v0"
TASKS = ("identify-shape", "click-test-2", "click-button-sequence")
SCREEN = ClickSettings(height=208, width=160)
SEEDS = (0, 1, 2)
ARMS = ("imitation", "imitation_and_reward", "imitation_continued")


@dataclass(frozen=True)
class Plan:
    """Sizes of a run: the same for all tasks and seeds, small enough for a minute or two of a core."""

    turns: int = 2
    demonstrations: int = 120
    epochs: int = 10
    batch: int = 16
    learning_rate: float = 1e-3
    updates: int = 15
    groups: int = 8
    group_size: int = 4
    reward_learning_rate: float = 5e-4
    test_pages: int = 80


class Watched(Agent):
    """Plays clicks and keeps what was seen and clicked, by episode."""

    def __init__(self, network: ClickNetwork) -> None:
        self.settings = network.settings
        self.eyes = ClickAgent(network)
        self.seen: dict[int, list[tuple[np.ndarray, int]]] = defaultdict(list)

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        """Return a click for each request: the network's."""
        return self.eyes.act(requests)

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return the clicks, and keep them."""
        views = [self.eyes.view(request) for request in requests]
        decisions = self.decide(requests)
        for request, view, decision in zip(requests, views, decisions, strict=True):
            self.seen[request.episode].append((view, self.settings.cell_of(point(decision.action))))
        return decisions


class WatchedExpert(Watched):
    """The expert, whose elements are clicked in their middle."""

    def attach(self, vector: TextVectorEnv) -> None:
        """Set the vector whose solvers are asked."""
        self.vector = vector

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        """Return the expert's click for each request."""
        slots = [request.slot for request in requests]
        actions, screens = (self.vector.call(name, indices=slots) for name in ("expert_action", "screen"))
        decisions = []
        for request, action, screen in zip(requests, actions, screens, strict=True):
            place = read(action).place  # type: ignore[union-attr]  # solvers write actions
            x, y = place if isinstance(place, tuple) else next(e.center for e in screen.nodes if e.id == place)
            decisions.append(self.eyes.follow(request, f"click {x:g},{y:g}"))
        return decisions


class RandomClicks(Watched):
    """Clicks anywhere on the page."""

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        """Return a random click for each request."""
        found = []
        for request in requests:
            draws = stream("random clicks", request.episode, request.turn).random(2)
            place = f"click {draws[0] * SCREEN.width:.0f},{draws[1] * SCREEN.height:.0f}"
            found.append(self.eyes.follow(request, place))
        return found


def point(action: str) -> tuple[float, float]:
    """Return the point of a click.

    >>> point("click 20.5,4")
    (20.5, 4.0)
    """
    x, y = action.removeprefix("click ").split(",")
    return float(x), float(y)


class Pages:
    """The pages of a task, in two vectors that stay open.

    Args:
        task: Name of the task.
        plan: Sizes.
    """

    def __init__(self, task: str, plan: Plan) -> None:
        options: dict[str, Any] = {
            "task": task,
            "image": True,
            "marks": False,
            "width": 332,
            "height": 210,
            "max_turns": plan.turns,
        }
        self.plan = plan
        self.vectors = {
            split: turngym.make_vec(ENV, 8, backend="asyncio", autoreset_mode="Disabled", split=split, **options)
            for split in ("train", "test")
        }

    def play(self, agent: Agent, specs: Sequence[EpisodeSpec], split: str = "train") -> list[Trajectory]:
        """Play episodes."""
        return rollout(self.vectors[split], agent, specs)

    def measured(self, agent: Agent) -> float:
        """Return the success on the test pages."""
        specs = [EpisodeSpec(page, stream_seed("clicks test", page), page) for page in range(self.plan.test_pages)]
        return float(np.mean([each.success == 1 for each in self.play(agent, specs, "test")]))

    def close(self) -> None:
        """Close the browsers."""
        for vector in self.vectors.values():
            vector.close()


def imitate(network: ClickNetwork, shown: list[tuple[np.ndarray, int]], pictures: int, plan: Plan, seed: int) -> None:
    """Fit the network to clicks, on as many pictures."""
    views, cells = batch([view for view, _ in shown]), torch.tensor([cell for _, cell in shown])
    optimizer = torch.optim.AdamW(network.parameters(), lr=plan.learning_rate, weight_decay=0.01)
    generator, left = torch.Generator().manual_seed(seed), pictures
    while left > 0:
        for chosen in torch.randperm(len(shown), generator=generator).split(plan.batch):
            loss = torch.nn.functional.cross_entropy(network(views[chosen]), cells[chosen])
            step(network, optimizer, loss)
            left -= len(chosen)
            if left <= 0:
                break


def step(network: ClickNetwork, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Take one step."""
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()


def reinforce(pages: Pages, network: ClickNetwork, seed: int) -> tuple[list[float], int]:
    """Train by reward; return the success in each update's episodes, and the number of pictures used."""
    plan, curve, pictures = pages.plan, [], 0
    optimizer = torch.optim.AdamW(network.parameters(), lr=plan.reward_learning_rate, weight_decay=0.0)
    for update in range(plan.updates):
        agent = Watched(network)
        agent.eyes.seed = seed * 1000 + update
        specs = [
            EpisodeSpec(number, stream_seed("clicks train", seed, update, number // plan.group_size))
            for number in range(plan.groups * plan.group_size)
        ]
        played = pages.play(agent, specs)
        returns = torch.tensor([each.reward_sum for each in played]).reshape(plan.groups, plan.group_size)
        better = (returns - returns.mean(1, keepdim=True)).flatten().tolist()
        taken = [(view, cell, better[number]) for number, seen in agent.seen.items() for view, cell in seen]
        views, cells = batch([view for view, _, _ in taken]), torch.tensor([cell for _, cell, _ in taken])
        logprobs = torch.log_softmax(network(views), 1).gather(1, cells[:, None])[:, 0]
        step(network, optimizer, -(logprobs * torch.tensor([each for _, _, each in taken])).sum() / len(played))
        pictures += len(taken)
        curve.append(float(np.mean([each.success == 1 for each in played])))
    return curve, pictures


def run(task: str, seed: int, plan: Plan, folder: Path | None = None) -> dict[str, Any]:
    """Return the figures of one task and seed."""
    start, network = time.perf_counter(), build_clicks(SCREEN, seed)
    with closing(Pages(task, plan)) as pages:
        expert = WatchedExpert(network)
        specs = [EpisodeSpec(i, stream_seed("clicks shown", seed, i), i) for i in range(plan.demonstrations)]
        wins = [each.spec.episode for each in pages.play(expert, specs) if each.success == 1]
        shown = [each for episode in wins for each in expert.seen[episode]]
        imitate(network, shown, plan.epochs * len(shown), plan, seed)
        control = build_clicks(SCREEN, seed)
        control.load_state_dict(network.state_dict())
        found: dict[str, Any] = {"task": task, "seed": seed, "clicks_shown": len(shown)}
        found["imitation"] = pages.measured(ClickAgent(network))
        found["curve"], pictures = reinforce(pages, network, seed)
        found["imitation_and_reward"] = pages.measured(ClickAgent(network))
        imitate(control, shown, pictures, plan, seed + 1000)
        found["imitation_continued"] = pages.measured(ClickAgent(control))
    if folder is not None:
        network.save(folder / f"{task}-{seed}")
    found |= {"pictures": pictures, "wall_seconds": time.perf_counter() - start}
    print(found, flush=True)
    return found


def bounds(task: str, plan: Plan) -> dict[str, float]:
    """Return the success of the expert's clicks and of random ones on the test pages."""
    blank = build_clicks(SCREEN, 0)
    with closing(Pages(task, plan)) as pages:
        return {"expert": pages.measured(WatchedExpert(blank)), "random": pages.measured(RandomClicks(blank))}


def summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean and interval of each arm by task, and of the differences, paired by seed."""
    found: dict[str, Any] = {}
    for task in dict.fromkeys(each["task"] for each in runs):
        values = {name: [each[name] for each in runs if each["task"] == task] for name in ARMS}
        if len(values["imitation"]) < 2:
            continue
        trained = values["imitation_and_reward"]
        found[task] = {name: interval(each, within=(0.0, 1.0))._asdict() for name, each in values.items()}
        for other in ("imitation", "imitation_continued"):
            differences = [after - before for after, before in zip(trained, values[other], strict=True)]
            found[task][f"reward minus {other}"] = interval(differences, within=(-1.0, 1.0))._asdict()
    return found


def draw(runs: Sequence[Mapping[str, Any]], target: Path) -> None:
    """Draw the success of the episodes of each update, the mean over seeds and over three updates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.add_subplot(xlabel="update, 32 episodes each", ylabel="success in training", ylim=(0, 1))
    for task in dict.fromkeys(each["task"] for each in runs):
        mean = np.mean([each["curve"] for each in runs if each["task"] == task], axis=0)
        axes.plot(range(2, len(mean)), np.convolve(mean, np.full(3, 1 / 3), "valid"), label=task)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(target, dpi=90, metadata={"Software": ""})


def main(argv: Sequence[str] | None = None) -> int:
    """Run and write the figures."""
    parser = arguments(__doc__, "clicks.json")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--updates", type=int, default=Plan.updates)
    parser.add_argument("--reward-learning-rate", type=float, default=Plan.reward_learning_rate)
    parser.add_argument("--networks", type=Path, default=None, help="folder for the trained networks")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    plan, runs = Plan(updates=chosen.updates, reward_learning_rate=chosen.reward_learning_rate), []
    limits = {task: bounds(task, plan) for task in chosen.tasks}
    for seed in chosen.seeds:
        for task in chosen.tasks:
            runs.append(run(task, seed, plan, chosen.networks))
            content = {"plan": asdict(plan), "bounds": limits, "summary": summary(runs), "runs": runs}
            write_result(chosen.out, content, "torch")
    draw(runs, chosen.out.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
