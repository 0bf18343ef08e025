"""Harbor task folders: a shell in a box, tests that judge.

``files``, ``settings``, ``dockerfile`` and ``tasks`` read folders, of which nothing runs; ``box`` says what a box is,
``bubblewrap_box`` and ``inside`` make one, ``making`` chooses; ``trial`` plays steps and verifies them, ``rewards``
reads what tests wrote, ``env`` is the environment.
"""

from turngym.envs.tools.harbor.env import Harbor

__all__ = ["Harbor"]
