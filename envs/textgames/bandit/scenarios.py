"""Themes of bandits: names for up to twenty arms, and the accompanying story."""

from __future__ import annotations

from typing import NamedTuple


class Scenario(NamedTuple):
    """A story around a bandit.

    Args:
        story: Meaning of choices and rewards.
        kind: Name of an arm.
        names: The names of the arms, lower case and different.
    """

    story: str
    kind: str
    names: tuple[str, ...]


_LETTERS = "abcdefghijklmnopqrst"

SCENARIOS = {
    "buttons": Scenario(
        "A machine has buttons of different colours. Each press pays a reward.",
        "button",
        (
            *("blue", "green", "red", "yellow", "purple", "orange", "pink", "white", "black", "brown"),
            *("grey", "cyan", "gold", "silver", "violet", "olive", "navy", "teal", "beige", "ruby"),
        ),
    ),
    "adverts": Scenario(
        "You run a website and show each visitor one advert. The reward tells how the visitor took it.",
        "advert",
        tuple([f"advert {letter}" for letter in _LETTERS]),
    ),
    "videos": Scenario(
        "You pick the video that a viewer sees next. The reward tells how the viewer liked it.",
        "video",
        tuple([f"video {letter}" for letter in _LETTERS]),
    ),
    "clothes": Scenario(
        "You advise customers of a clothes shop, one garment for each. The reward tells how the customer liked it.",
        "garment",
        (
            *(
                "linen summer shirt",
                "thick wool jumper",
                "slim black jeans",
                "yellow rain jacket",
                "silk evening dress",
            ),
            *(
                "grey running shorts",
                "quilted winter coat",
                "striped cotton socks",
                "brown leather belt",
                "denim skirt",
            ),
            *("hooded sweatshirt", "white tennis shoes", "checked flannel scarf", "corduroy trousers", "velvet blazer"),
            *("knitted bobble hat", "canvas sun hat", "fleece waistcoat", "suede ankle boots", "printed silk tie"),
        ),
    ),
}
