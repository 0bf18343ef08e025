"""Rules about what playing well is worth: more than nothing, and more than any player without skill reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turngym.envs.checks.case import Case
from turngym.envs.checks.players import LEVEL, PLAYERS, RANDOM, Ended, compared, explained, play, player_of, winners_of
from turngym.envs.checks.rule import Finding, Skipped, rule
from turngym.errors import ConfigError

_EXPERT, _NOTHING = "expert", "nothing"
_MEASURES = ("success", "score")


def _played(case: Case) -> dict[str, list[Ended]]:
    """Return name -> episodes of the expert, random legal play and the players without skill, on equal seeds."""
    if "players" not in case.facts:
        env, seeds = case.env, range(case.seeds[0], case.seeds[0] + case.players)
        winners = winners_of(env)
        found = {}
        for name in (_EXPERT, RANDOM, *PLAYERS):
            try:
                found[name] = [play(env, player_of(env, name), seed, winners) for seed in seeds]
            except ConfigError:
                if name != _EXPERT:
                    raise
        case.facts["players"] = found
    return case.facts["players"]  # type: ignore[no-any-return]


def _mean(ended: Sequence[Ended], measure: str) -> float:
    return sum(float(getattr(each, measure)) for each in ended) / len(ended)


def _better(case: Case, than: str) -> Iterator[tuple[str, str]]:
    """Yield the players that do better than another, and the evidence; Bonferroni over all players and measures."""
    found = _played(case)
    names = [name for name in found if name not in (than, _EXPERT)]
    for measure in _MEASURES:
        theirs = [getattr(each, measure) for each in found[than]]
        for name in names:
            row = compared(name, measure, [getattr(each, measure) for each in found[name]], theirs)
            if row.p * len(names) * len(_MEASURES) < LEVEL:
                shown = f"mean {measure} {row.mean:.3g}, {than} {row.random:.3g} in {row.episodes} episodes"
                yield name, f"{name}: {shown}, p = {row.p:.1g}"


@rule(
    "nothing-fails",
    "Who does nothing does not succeed.",
    why="A success that needs no action rewards a policy for being silent, and raises every figure by the same amount.",
    fix="Judge what was done: an empty answer, or a state that nobody has changed, is not a success.",
)
def nothing_fails(case: Case) -> Iterator[Finding]:
    """Doing nothing fails."""
    ended = _played(case)[_NOTHING]
    solved = int(sum(each.success for each in ended))
    if solved:
        yield Finding(f"empty actions succeeded in {solved} of {len(ended)} episodes", case.seeds[0])


@rule(
    "expert-best",
    "No player without skill, and no random play, does better than the expert.",
    why="The expert is the upper end of results and the source of demonstrations; what beats it is a shortcut.",
    fix="Look at the episode of the player that is named: either the judge is fooled, or the expert plays badly.",
    after=("expert-solves",),
)
def expert_best(case: Case) -> Iterator[Finding]:
    """The expert is best."""
    if _EXPERT not in _played(case):
        raise Skipped("there is no expert")
    for _, evidence in _better(case, _EXPERT):
        yield Finding(evidence, case.seeds[0])


@rule(
    "skill-pays",
    "No player without skill does better than random legal play.",
    why="What such a player gains, training finds first: the policy learns a constant instead of the task.",
    fix="Balance the tasks or the scores so that the player that is named gains nothing; where the game is like that, "
    "name it in beaten_by.",
)
def skill_pays(case: Case) -> Iterator[Finding]:
    """Players without skill gain nothing."""
    reasons = explained(case.env)
    for name, evidence in _better(case, RANDOM):
        if name not in reasons:
            yield Finding(evidence, case.seeds[0])
