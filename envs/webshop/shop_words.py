"""Words of the procedural shop: kinds of things, what they are like, and what can be chosen."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind of thing that the shop sells.

    Args:
        noun: Its name.
        path: Its categories, widest first.
        options: Names of the options that it may come with.
        cost: Typical price in dollars.
    """

    noun: str
    path: tuple[str, ...]
    options: tuple[str, ...]
    cost: float


class Department(NamedTuple):
    """Kinds of things that share what may be said of them.

    Args:
        attributes: Properties, as customers ask for them.
        extras: Nouns that titles add, with ``for``.
    """

    attributes: tuple[str, ...]
    extras: tuple[str, ...]


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


DEPARTMENTS = {
    "clothing": Department(
        _split(
            "machine washable, quick drying, long sleeve, short sleeve, elastic waist, wrinkle free, slim fit, "
            "relaxed fit, moisture wicking, hand washable, pure cotton, soft lining, button closure, hidden pockets, "
            "uv protective, non slip sole"
        ),
        _split("women, men, girls, boys, hikers, travel, winter, summer, office, festivals"),
    ),
    "kitchen": Department(
        _split(
            "dishwasher safe, bpa free, non stick, stainless steel, heat resistant, easy to clean, leak proof, "
            "double walled, food grade, space saving, oven safe, shatter proof, hand made, lead free"
        ),
        _split("camping, parties, bakers, small kitchens, picnics, gifts, students, restaurants"),
    ),
    "grocery": Department(
        _split(
            "gluten free, sugar free, caffeine free, non gmo, certified organic, low sodium, dairy free, nut free, "
            "keto friendly, high protein, artificially uncoloured, freshly roasted, plant based, low calorie"
        ),
        _split("breakfast, lunch boxes, hikers, parties, gifts, families, athletes"),
    ),
    "electronics": Department(
        _split(
            "fast charging, noise cancelling, water resistant, wireless, long lasting battery, high resolution, "
            "plug and play, energy saving, shock proof, ultra light, dimmable, voice controlled, low latency"
        ),
        _split("travel, gamers, offices, cars, children, workshops, musicians, desks"),
    ),
    "beauty": Department(
        _split(
            "cruelty free, paraben free, fragrance free, sulfate free, long lasting colour, dermatologist tested, "
            "alcohol free, deeply moisturizing, oil free, hypoallergenic, travel sized, vitamin rich"
        ),
        _split("dry skin, sensitive skin, damaged hair, beginners, men, women, travel, nights"),
    ),
    "home": Department(
        _split(
            "easy to assemble, solid wood, machine washable cover, scratch resistant, flame retardant, fade resistant, "
            "memory foam, storage space inside, anti slip, stackable, foldable, weather proof, energy efficient"
        ),
        _split("bedrooms, living rooms, balconies, children, offices, gardens, hallways, guests"),
    ),
}
"""Phrases about products, by department."""

KINDS = tuple(
    Kind(noun, (department.title(), group), _split(options), float(cost))
    for department, group, noun, options, cost in (
        line.split("|")
        for line in """\
clothing|Tops|shirt|color,size|24
clothing|Tops|sweater|color,size|38
clothing|Tops|hoodie|color,size|35
clothing|Outerwear|jacket|color,size|72
clothing|Outerwear|raincoat|color,size|60
clothing|Bottoms|trousers|color,size|42
clothing|Bottoms|skirt|color,size|33
clothing|Bottoms|leggings|color,size|22
clothing|Shoes|sneakers|color,shoe size|65
clothing|Shoes|sandals|color,shoe size|40
clothing|Shoes|boots|color,shoe size|90
clothing|Accessories|scarf|color|18
clothing|Accessories|gloves|color,size|16
kitchen|Cookware|frying pan|diameter,color|36
kitchen|Cookware|saucepan|diameter|41
kitchen|Cookware|baking tray|diameter|19
kitchen|Drinkware|water bottle|capacity,color|21
kitchen|Drinkware|mug|color,pack|14
kitchen|Drinkware|teapot|capacity,color|34
kitchen|Tools|kitchen knife|pack|28
kitchen|Tools|cutting board|material|23
kitchen|Tools|lunch box|capacity,color|20
grocery|Drinks|coffee|flavor,weight|15
grocery|Drinks|tea|flavor,pack|11
grocery|Drinks|juice|flavor,pack|17
grocery|Snacks|granola|flavor,weight|9
grocery|Snacks|crackers|flavor,pack|8
grocery|Snacks|chocolate|flavor,pack|12
grocery|Snacks|dried fruit|flavor,weight|13
grocery|Staples|pasta sauce|flavor,pack|10
grocery|Staples|olive oil|capacity|22
grocery|Staples|honey|weight|16
electronics|Audio|headphones|color|85
electronics|Audio|speaker|color,wattage|58
electronics|Audio|microphone|color|75
electronics|Power|phone charger|cable length,color|19
electronics|Power|power bank|color,wattage|34
electronics|Computing|keyboard|color,layout|62
electronics|Computing|mouse|color|27
electronics|Computing|monitor stand|material|45
electronics|Lighting|desk lamp|color|39
electronics|Lighting|light bulb|wattage,pack|13
beauty|Skin Care|face cream|scent,capacity|27
beauty|Skin Care|sunscreen|capacity|18
beauty|Skin Care|body lotion|scent,capacity|16
beauty|Hair Care|shampoo|scent,capacity|14
beauty|Hair Care|conditioner|scent,capacity|15
beauty|Hair Care|hair brush|color|12
beauty|Makeup|lipstick|color|17
beauty|Makeup|nail polish|color,pack|9
home|Bedding|pillow|color,pack|32
home|Bedding|blanket|color,bed size|48
home|Bedding|duvet cover|color,bed size|52
home|Furniture|bookshelf|color,material|120
home|Furniture|bar stool|color,material|95
home|Furniture|side table|color,material|68
home|Decor|curtain|color,bed size|37
home|Decor|rug|color,bed size|88
home|Decor|candle|scent,pack|15
home|Garden|plant pot|color,diameter|21""".splitlines()
    )
)
"""Every kind of thing."""

VALUES = {
    "color": _split("black, white, navy, dark green, light gray, burgundy, mustard, sky blue, coral, beige, purple"),
    "size": _split("xs, s, m, l, xl, xxl"),
    "shoe size": _split("5, 6, 7, 8, 9, 10, 11, 12"),
    "diameter": _split("8 inch, 10 inch, 12 inch, 14 inch"),
    "capacity": _split("4 ounce, 8 ounce, 12 ounce, 20 ounce, 32 ounce"),
    "pack": _split("1 count, 2 count, 4 count, 6 count, 12 count"),
    "material": _split("oak, bamboo, walnut, steel, glass, pine"),
    "flavor": _split("vanilla, cinnamon, lemon, hazelnut, berry, ginger, liquorice, mango, caramel"),
    "weight": _split("8 oz, 1 lb, 2 lb, 5 lb"),
    "wattage": _split("5 watt, 10 watt, 20 watt, 40 watt, 60 watt"),
    "cable length": _split("3 feet, 6 feet, 10 feet"),
    "layout": _split("american, british, german, french, nordic"),
    "scent": _split("lavender, rose, cedar, citrus, unscented, jasmine, pine"),
    "bed size": _split("twin, full, queen, king"),
}
"""Option name -> its values. No two values of one option count as the same for the reward."""

SYLLABLES = _split(
    "ar, bel, cor, dra, el, fen, gor, hal, ix, jun, ka, lum, mir, nor, ost, pra, qui, ros, sol, tav, ur, vex"
)
"""Parts of brand names."""

FEATURES = (
    "{attribute}: made so that it stays that way",
    "You asked for {attribute}, here it is",
    "Tested by our own people and found to be {attribute}",
    "{attribute}, whatever the day brings",
)
"""Sentences that tell an attribute."""

REVIEWS = (
    "Does what it says. {attribute}, as promised.",
    "Arrived early; my second {noun} from {maker}.",
    "The {noun} looks better than on the picture.",
    "Good, but the box was dented.",
    "I would buy this {noun} again.",
)
"""Sentences of customers."""
