"""How far a game of NetHack came, by what became of games of people that came as far: the progression of BALROG.

The figures are those of BALROG (Paglieri et al. 2024, arXiv 2411.13543, MIT licence), rounded to four digits: of the
games that reached a depth or an experience level, the share that was won in the end. Its entries for the quest and the
planes are left out, as in BALROG's own play, which looks up depth and experience level alone.
"""

from __future__ import annotations

# fmt: off
_DEPTHS = (
    0.0, 0.0154, 0.0175, 0.0212, 0.0265, 0.0354, 0.0485, 0.0696, 0.0977, 0.1256,
    0.1613, 0.2061, 0.2566, 0.2925, 0.3088, 0.3249, 0.3401, 0.3526, 0.3655, 0.3790,
    0.3929, 0.4083, 0.4258, 0.4452, 0.4664, 0.5068, 0.5544, 0.6016, 0.6465, 0.6913,
    0.7101, 0.7176, 0.7232, 0.7284, 0.7328, 0.7369, 0.7421, 0.7471, 0.7537, 0.7610,
    0.7674, 0.7725, 0.7772, 0.7813, 0.7859, 0.7890, 0.7930, 0.7967, 0.8018, 0.8068,
)
"""Depth from 1 -> share."""
_LEVELS = (
    0.0, 0.0185, 0.0208, 0.0242, 0.0291, 0.0369, 0.0508, 0.0745, 0.1170, 0.1791,
    0.2548, 0.3326, 0.4144, 0.4940, 0.5779, 0.6261, 0.6563, 0.6810, 0.7015, 0.7174,
    0.7287, 0.7371, 0.7443, 0.7513, 0.7586, 0.7642, 0.7703, 0.7760, 0.7783, 0.7805,
)
"""Experience level from 1 -> share."""
# fmt: on
MOST = _DEPTHS[-1]
"""Largest progression."""


def progression(depth: int, level: int) -> float:
    """Return the progression of a game.

    Args:
        depth: Greatest depth that was reached, from 1.
        level: Highest experience level that was reached, from 1.

    >>> progression(1, 1), progression(13, 5), progression(7, 9)
    (0.0, 0.2566, 0.117)
    """
    return max(_DEPTHS[min(depth, len(_DEPTHS)) - 1], _LEVELS[min(level, len(_LEVELS)) - 1])
