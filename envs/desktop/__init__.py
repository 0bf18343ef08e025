"""Tasks on a desktop with real programs.

``session`` is a display in a sandbox as seen from outside, ``inside`` what runs in it, ``rest`` how it finds the end of
a turn. ``actions`` is what an agent may do, ``goals`` what it is asked to, ``env`` the environment.
"""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/Desktop-v0": Spec(
        "turngym.envs.desktop.env:Desktop",
        {},
        "Reach a goal with a text editor and a spreadsheet, by mouse and keyboard on a real display.",
        "desktop",
    ),
}
