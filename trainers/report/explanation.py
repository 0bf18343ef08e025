"""Explanation of a run: one sentence on what happened to success and on the likely cause, from its metrics."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, variance
from typing import Any, NamedTuple

from turngym.arithmetic import as_float
from turngym.envs.multiagent.registration import is_game
from turngym.errors import TurngymError
from turngym.trainers.core.wording import counted, percent, signed
from turngym.trainers.report.findings import RunData, difference_from

PAGE = "docs/how-to/debugging.md"
LAST = 10
"""Iterations at the start and at the end of a run that are compared."""
FEWEST = 10
"""Iterations below which a run is too short: with less than 5 at each end, their spread is not known."""
QUANTILE = 2.31
"""Student's 97.5 % quantile with 8 degrees of freedom: those of two times five iterations, the fewest compared."""
NOISE = 0.1
"""Half of the interval of the change from which on noise hides a change of ten points."""
CEILING = 0.95
"""Success with less room than the noise of most runs."""
MIN_RATE = 1e-9
"""Learning rate below which Adam's steps, of about that size, are lost in the rounding of float32 weights near 0.01."""
MIN_ENTROPY = 0.01
"""Nats per token below which exploration has ended: two answers of 20 tokens are equal in more than 80 % of cases."""
MAX_KL = 0.1
"""Nats per token: ten times the usual limit at which PPO ends the epochs of a batch."""
MAX_SAMPLER_GAP = 0.01
"""Nats per token: six times what bfloat16 rounding alone gives; above it samples are off-policy."""
MAX_STALENESS = 4.0
"""Iterations: four times the default limit of asynchronous rollouts."""


class Cause(NamedTuple):
    """A likely cause.

    Args:
        what: The finding, as the part of a sentence after a colon.
        look: What to change or to inspect.
        section: Its section of the page on debugging.
    """

    what: str
    look: str
    section: str


class Sign(NamedTuple):
    """A share that should be small.

    Args:
        metric: Its name.
        most: The share from which on it is reported.
        what: Unit of the share, appended to it.
        look: What to change or to inspect.
        section: Its section of the page on debugging.
    """

    metric: str
    most: float
    what: str
    look: str
    section: str


CONTEXT = Sign(
    "rollout/context",
    0.25,  # a quarter of the episodes without an ending outweighs what the others can gain
    "of the episodes ended because the next prompt did not fit",
    "shorter prompts (--rollout.prompt.history, --rollout.prompt.mode, --rollout.prompt.fit), fewer turns, or "
    "a model with a longer context",
    "prompts-that-do-not-fit",
)
OVERLONG = Sign(
    "rollout/overlong",
    0.25,  # the same for answers: their action comes last and is lost
    "of the completions were cut at their longest length",
    "a larger --rollout.max-new-tokens, or a prompt or method that asks for shorter answers; --update.on-overlong "
    "says whether they are trained on",
    "answers-cut-off",
)
INVALID = Sign(
    "rollout/invalid_actions",
    0.5,  # most actions are lost; a smaller share usually decreases by training itself
    "of the actions were invalid",
    "read the answers in the samples of the report and the format that the rules ask for (`turngym play ENV --agent "
    "hf:MODEL` shows both); --rollout.format, more --warmup.demonstrations",
    "invalid-actions",
)
EQUAL_GROUPS = Sign(
    "credit/groups_with_equal_returns",
    0.8,  # a fifth of the batch or less has an advantage that is not 0
    "of the groups had equal returns, from which a method that compares within groups learns nothing",
    "easier tasks if all fail, harder ones if all succeed; a larger --rollout.group-size or --rollout.temperature",
    "equal-groups",
)
FAULTS = Sign(
    "rollout/faults",
    0.05,  # faults are rare in a sound environment
    "of the episodes broke",
    "`turngym check` on the environment; the log names the faults",
    "faults",
)


def _environment(config: Mapping[str, Any]) -> str:
    """Return the environment of a run and its options, as a shell reads them."""
    options, words = config.get("env_options"), [str(config.get("env", "ENV"))]
    for name, value in options.items() if isinstance(options, Mapping) else ():
        words += ["--option", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _found_by(sign: Sign) -> Callable[[RunData], Cause | None]:
    def find(run: RunData) -> Cause | None:
        share = _recent(run.metrics, sign.metric)
        if math.isnan(share) or share < sign.most:
            return None
        look = sign.look.replace("turngym play ENV", f"turngym play {_environment(run.config)}")
        return Cause(f"{percent(share)} {sign.what} {_when(run, sign.metric)}", look, sign.section)

    return find


def rate_too_small(run: RunData) -> Cause | None:
    """Find a learning rate that changes no weight."""
    update = run.config.get("update")
    rate = _number(update, "learning_rate") if isinstance(update, Mapping) else math.nan
    if not rate < MIN_RATE:
        return None
    return Cause(f"the learning rate is {rate:g}", "a larger --update.learning-rate", "no-update")


def no_gradient(run: RunData) -> Cause | None:
    """Find gradients of 0."""
    if _recent(run.metrics, "train/grad_norm") != 0:
        return None
    look = "the metrics under credit/ and loss/: the policy is frozen, or all advantages are 0"
    return Cause(f"every gradient was 0 {_when(run)}", look, "no-update")


def at_ceiling(run: RunData) -> Cause | None:
    """Find success that has no room to rise, from the first iterations on."""
    change = change_of(run)
    if change is None or min(change.first, change.last) < CEILING:
        return None
    return Cause(f"at least {percent(CEILING)} succeeded from the start", "harder tasks or options", "ceiling")


def entropy_gone(run: RunData) -> Cause | None:
    """Find a policy that samples the same answer each time."""
    entropy = _recent(run.metrics, "policy/entropy_sampled")
    if not entropy < MIN_ENTROPY:
        return None
    look = "a larger entropy_coef of the method, or +epo; a higher --rollout.temperature; a smaller learning rate"
    return Cause(f"the entropy was {entropy:.2g} nats per token {_when(run)}", look, "entropy")


def kl_too_high(run: RunData) -> Cause | None:
    """Find updates that move the policy too far from the one that sampled."""
    kl = _recent(run.metrics, "policy/kl_sampler")
    if not kl > MAX_KL:
        return None
    look = "a smaller --update.learning-rate, fewer --update.epochs"
    return Cause(f"updates moved the policy by {kl:.2g} nats per token (KL) {_when(run)}", look, "kl")


def stale_samples(run: RunData) -> Cause | None:
    """Find samples of much older weights."""
    age = _recent(run.metrics, "policy/staleness_mean")
    if not age >= MAX_STALENESS:
        return None
    look = "a smaller --rollout.max-staleness or --rollout.refresh-every, or a correction such as +tis"
    return Cause(f"samples were {age:.1f} iterations old on average {_when(run)}", look, "staleness")


def sampler_disagrees(run: RunData) -> Cause | None:
    """Find a sampler whose probabilities are not those of the trainer."""
    gap = _recent(run.metrics, "policy/sampler_gap_k3")
    if not gap > MAX_SAMPLER_GAP:
        return None
    if _recent(run.metrics, "policy/staleness_mean") >= 1:
        what = f"the policy was {gap:.2g} nats per token (KL) from the older one that sampled {_when(run)}"
        return Cause(what, "newer samples, or a correction such as +tis or +mis", "staleness")
    look = "the precision of the sampler (--rollout.vllm.dtype), its template and temperature, or +tis or +mis"
    return Cause(f"sampler and trainer differed by {gap:.2g} nats per token (KL) {_when(run)}", look, "staleness")


def too_short(run: RunData) -> Cause | None:
    """Find a run with too few iterations to compare its start with its end."""
    if len(run.metrics) >= FEWEST:
        return None
    what = f"{counted(len(run.metrics), 'iteration')} {'is' if len(run.metrics) == 1 else 'are'} too few to tell"
    return Cause(what, "more --iterations or --max-seconds", "too-short")


def too_noisy(run: RunData) -> Cause | None:
    """Find success so noisy that a change of ten points would not show."""
    change = change_of(run)
    if change is None or change.half <= NOISE:
        return None
    what = f"success varies so much that a change of {100 * change.half:.0f} points would not show"
    return Cause(what, "more --iterations, --rollout.groups or --evaluation.episodes", "too-short")


CAUSES: tuple[Callable[[RunData], Cause | None], ...] = (
    _found_by(CONTEXT),
    _found_by(OVERLONG),
    _found_by(INVALID),
    _found_by(FAULTS),
    at_ceiling,
    rate_too_small,
    _found_by(EQUAL_GROUPS),
    entropy_gone,
    no_gradient,
    kl_too_high,
    stale_samples,
    sampler_disagrees,
    too_short,
    too_noisy,
)
"""From what keeps episodes from being of use, over what keeps updates from it, to what hides a change."""


class Change(NamedTuple):
    """Success in training at the start and at the end.

    Args:
        first: Its mean over the first iterations.
        last: Its mean over the last ones.
        window: Number of either.
        half: Half of the 95 % interval of the difference.
    """

    first: float
    last: float
    window: int
    half: float


def change_of(run: RunData) -> Change | None:
    """Return the change of success in training; None if it is not recorded, or means nothing, as in self-play.

    The standard error is that between iterations, and at least that of independent episodes.
    """
    if _is_self_play(run):
        return None
    records = [record for record in run.metrics if not math.isnan(_number(record, "rollout/success"))]
    window = min(LAST, len(records) // 2)
    if window < FEWEST // 2:
        return None
    ends = records[:window], records[-window:]
    first, last = ([_number(record, "rollout/success") for record in end] for end in ends)
    between = (variance(first) + variance(last)) / window
    mean = fmean([*first, *last])
    counts = [sum(max(_number(record, "rollout/episodes"), 1.0) for record in end) for end in ends]
    within = mean * (1 - mean) * sum(1 / count for count in counts) if not any(map(math.isnan, counts)) else 0.0
    return Change(fmean(first), fmean(last), window, QUANTILE * math.sqrt(max(between, within)))


def _is_self_play(run: RunData) -> bool:
    try:
        return is_game(str(run.config.get("env", "")))
    except TurngymError:  # a game of a package or file that is gone
        return False


def causes_of(run: RunData) -> list[Cause]:
    """Return all likely causes, the most fundamental first."""
    return [found for cause in CAUSES if (found := cause(run)) is not None]


def explanation(run: RunData) -> str:
    """Return one sentence on what happened to success, and on the first likely cause if it did not rise.

    Args:
        run: The run.
    """
    if not run.metrics:
        return f"Nothing was trained: no iteration is recorded (see {PAGE})."
    outcome, has_risen = _outcome(run)
    if has_risen:
        return f"{outcome}."
    causes = causes_of(run)
    if not causes:
        return f"{outcome}; no single cause is seen in the metrics (see {PAGE})."
    return f"{outcome}: {causes[0].what}; look at: {causes[0].look} (see {PAGE}#{causes[0].section})."


def look_at(run: RunData) -> list[str]:
    """Return a sentence for each likely cause after the one that the explanation names."""
    causes = causes_of(run)
    return [f"{each.what[0].upper()}{each.what[1:]}. Look at: {each.look}." for each in causes[not _outcome(run)[1] :]]


def _outcome(run: RunData) -> tuple[str, bool]:
    """Return what happened to success, and whether it rose."""
    held_out = difference_from(run, "before", run.mode) if run.mode else None
    if held_out is not None and held_out.verdict != "unclear":
        verb = "rose" if held_out.verdict == "better" else "fell"
        ends = f"{percent(held_out.second)} to {percent(held_out.first)}"
        where = f"on the {counted(held_out.estimate.count, 'evaluated instance')}"
        return f"Success {verb} from {ends} {where}", held_out.verdict == "better"
    change = change_of(run)
    if change is None:
        return "Whether success changed is not known", False
    moved = change.last - change.first
    ends = f"{percent(change.first)} to {percent(change.last)}"
    where = f"(training, first and last {change.window} iterations"
    if abs(moved) > change.half:
        evaluated = ", but not clearly on the evaluated instances" if held_out is not None else ""
        return f"Success {'rose' if moved > 0 else 'fell'} from {ends} {where}){evaluated}", moved > 0
    return f"Success is flat, {ends} {where}, {signed(100 * moved)} ± {100 * change.half:.1f} points)", False


def _when(run: RunData, metric: str = "") -> str:
    """Return the iterations that a finding is about; a metric may be missing in those that played nothing."""
    count = min(len(run.metrics), LAST)
    with_value = sum(metric in record for record in run.metrics[-LAST:])
    if 0 < with_value < count:
        return f"in {with_value} of the last {counted(count, 'iteration')} (the others have no value)"
    return "in the last iteration" if count == 1 else f"in the last {counted(count, 'iteration')}"


def _recent(metrics: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the mean of a metric over the last iterations that recorded it, nan if none did."""
    read = _fault_share if name == FAULTS.metric else _number
    values = [value for record in metrics[-LAST:] if not math.isnan(value := read(record, name))]
    return fmean(values) if values else math.nan


def _number(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    return math.nan if isinstance(value, bool) or not isinstance(value, int | float) else as_float(value)


def _fault_share(record: Mapping[str, Any], name: str) -> float:
    faults, whole = _number(record, name), _number(record, "rollout/episodes")
    every = faults + (0.0 if math.isnan(whole) else whole)
    return faults / every if 0 < every < math.inf else math.nan
