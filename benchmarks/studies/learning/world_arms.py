"""What is trained in the worlds that papers report on: a world's settings, its warm-up, and its arms.

``FIRST`` ran first. Its warm-ups end at 20 % dev success and its runs take two minutes, so that it shows that something
is learnt, not how much can be. ``SECOND`` was written down after its failures had been read, see
:mod:`world_arms_later`.

- household: a thing to find and carry among four receptacles, in twelve turns, with gigpo and with grpo and EPO.
- searchqa: questions that one of the 20,000 documents of a generated world answers, in four turns with one passage a
  search, with ppo (its clipping bias corrected, as ST-PPO does) and with gigpo, each with the answer's reward alone and
  with StepSearch's rewards of single searches. Names must be copied, so spaces are tokens of their own and the warm-up
  also learns to predict what it reads. (In worlds of 2,000 documents or fewer, written down first, and without these
  two, trials of the warm-up ended at 0 to 3 %: the model learnt names by heart instead of copying them. A first run
  of seed 0 with the other worlds' step size gained nothing with gigpo and lost with ppo; a third of it, tried for 8,000
  turns on dev instances with both, was taken for all.)
- webshop: buying what a customer asks for in a generated shop of 50 products, actions chosen by number, with gigpo.
  (Spelt-out actions, written down first, were given up after a trial: searches for words that nobody had said.)
- website: finding an issue and setting its priority and assignee, as text without a browser, with gigpo. (Setting a
  price and a stock, written down first, was given up after a trial: no success, numbers were made up.)
- alfworld: ALFWorld's own games of the kind pick and place, from the data set that ALFWORLD_DATA names, in twenty
  turns (papers allow fifty), with gigpo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

COMMON = ("--preset", "quickstart", "--no-control", "--rollout.format", "plain", "--rollout.groups", "16")
RATE = ("--update.learning-rate", "0.0006")
CONVERSATION = ("--rollout.prompt.mode", "conversation")
READING = ("--warmup.observation-weight", "0.3")
STEPS = "step_reward=0.6"
COPYING = ("--embedded.words-apart", *READING)
_SEARCH = ("kind=1 hop", "size=20000", "top_k=1", "passage_words=40", "max_turns=4")
GIGPO = ("--algorithm", "gigpo")


class World(NamedTuple):
    """A world and what is trained in it.

    Args:
        title: Stands above the picture.
        settings: Environment, prompts, warm-up and learning rate of all runs.
        turns: Environment turns of a run.
        arms: Arm -> its own options.
        claims: Pairs of arms, the first of which may be expected to end up higher.
        enough: Dev success at which a warm-up ends: room to improve, and episodes to learn from.
        seconds: Longest time of a run. The first worlds could end by it; the others end by their turns.
        lessons: Options of other environments, beside the settings, that a warm-up imitates first.
        as_in_0_1_0: Whether methods have the settings that were defaults of version 0.1.0.
    """

    title: str
    settings: Sequence[str]
    turns: int
    arms: Mapping[str, Sequence[str]]
    claims: Sequence[tuple[str, str]] = ()
    enough: float = 0.2
    seconds: int = 480
    lessons: Sequence[Sequence[str]] = ()
    as_in_0_1_0: bool = True


def options(*pairs: str) -> tuple[str, ...]:
    """Return the options of the environment as options of ``turngym train``."""
    return ("--env-options", *pairs)


def sizes(demonstrations: int, epochs: int, vocabulary: int, completion: int, batch: int = 8) -> tuple[str, ...]:
    """Return the options of a warm-up with at most so many epochs, and of the lengths that go with a world."""
    return (
        *("--warmup.demonstrations", str(demonstrations), "--warmup.epochs", str(epochs)),
        *("--warmup.batch-size", str(batch), "--embedded.vocabulary", str(vocabulary)),
        *("--rollout.max-new-tokens", str(completion), *RATE),
    )


FIRST: Mapping[str, World] = {
    "household": World(
        "Household, four receptacles",
        (
            *("--env", "turngym/HouseholdEasy-v0", *options("receptacles=4", "distractors=0", "max_turns=12")),
            *(*CONVERSATION, *sizes(1500, 6, 640, 10)),
        ),
        25_000,
        {"gigpo": GIGPO, "grpo+epo": ("--algorithm", "grpo+epo")},
    ),
    "searchqa": World(
        "SearchQA, one hop in a world of 20,000 documents",
        (
            *("--env", "turngym/SearchQA-v0", *options(*_SEARCH), *CONVERSATION, *COPYING, *sizes(10_000, 6, 512, 32)),
            *("--update.learning-rate", "0.0002", "--update.critic-learning-rate", "0.0005"),
        ),
        14_000,
        {
            "ppo+st_ppo": ("--algorithm", "ppo+st_ppo"),
            "ppo+st_ppo, step rewards": ("--algorithm", "ppo+st_ppo", *options(*_SEARCH, STEPS)),
            "gigpo": GIGPO,
            "gigpo, step rewards": (*GIGPO, *options(*_SEARCH, STEPS)),
        },
        (("ppo+st_ppo, step rewards", "ppo+st_ppo"), ("gigpo, step rewards", "gigpo")),
    ),
    "webshop": World(
        "WebShop, 50 products, actions by number",
        (
            *("--env", "turngym/WebShop-v0", *options("products=50", "max_turns=8"), "--wrapper", "choices"),
            *sizes(400, 3, 1024, 4),
        ),
        10_000,
        {"gigpo": GIGPO},
    ),
    "website": World(
        "WebSite, priority and assignee of an issue",
        (
            *("--env", "turngym/WebSite-v0", *options("site=issues", "kind=triage", "worlds=8", "max_turns=10")),
            *sizes(500, 4, 1024, 12),
        ),
        15_000,
        {"gigpo": GIGPO},
    ),
    "alfworld": World(
        "ALFWorld, pick and place",
        (
            *("--env", "turngym/ALFWorld-v0"),
            *options("kind=pick_and_place_simple", "expert=explorer", "max_turns=20"),
            *(*CONVERSATION, *sizes(790, 8, 1024, 14), "--rollout.groups", "8"),
            *("--evaluation.episodes", "24", "--evaluation.curve-episodes", "35"),
        ),
        12_000,
        {"gigpo": GIGPO},
    ),
}
"""World -> what was trained in it first."""
