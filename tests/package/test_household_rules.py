"""The household engine: every command, by a small kitchen written out by hand."""

from dataclasses import replace

import pytest

from turngym.envs.household.goals import is_reached, known_marks, progress
from turngym.envs.household.planner import explore, next_command
from turngym.envs.household.rules import House, canonical, enumerate_names
from turngym.envs.household.world import (
    CLEAN,
    COOL,
    HEAT,
    KINDS,
    LOOK,
    NOWHERE,
    PLACE,
    TWO,
    Goal,
    Receptacle,
    Thing,
    World,
)

RECEPTACLES = (
    Receptacle("cabinet 1", "cabinet", 1, True),
    Receptacle("desk 1", "desk", 2),
    Receptacle("fridge 1", "fridge", 3, True),
    Receptacle("microwave 1", "microwave", 4, True),
    Receptacle("sinkbasin 1", "sinkbasin", 5),
    Receptacle("shelf 1", "shelf", 5),
)
CABINET, DESK, FRIDGE, MICROWAVE, SINK, SHELF = range(6)
USUAL = frozenset({"pickupable", "cleanable", "heatable", "coolable"})
THINGS = (
    Thing("apple 2", "apple", USUAL | {"sliceable"}),
    Thing("apple 1", "apple", USUAL),
    Thing("knife 1", "knife", frozenset({"pickupable"})),
    Thing("lamp 1", "lamp", frozenset({"toggleable"})),
    Thing("bowl 1", "bowl", frozenset({"pickupable", "isreceptacleobject"}), (2,)),
)
APPLE, OTHER, KNIFE, LAMP, BOWL = range(5)
PLACES = {APPLE: FRIDGE, OTHER: CABINET, KNIFE: DESK, LAMP: DESK, BOWL: SINK}


def kitchen(goal: Goal = Goal(PLACE, "apple", "shelf"), **changes: object) -> World:  # noqa: B008  (frozen)
    fits = {(place.type, thing.type) for place in RECEPTACLES for thing in THINGS}
    world = World(
        RECEPTACLES,
        THINGS,
        frozenset(fits),
        tuple(PLACES.items()),
        tuple((thing, RECEPTACLES[place].location) for thing, place in PLACES.items()),
        (goal,),
        "Do it.",
    )
    return replace(world, **changes)  # type: ignore[arg-type]


def play(house: House, *commands: str) -> str:
    """Do commands that are all possible; return what the last one told."""
    told = [house.act(command) for command in commands]
    assert None not in told, commands[told.index(None)]
    return str(told[-1])


def test_the_first_look_lists_everything_and_alfworlds_second_look_nothing() -> None:
    room = "You are in the middle of a room. Looking quickly around you, you see "
    names = "a cabinet 1, a desk 1, a fridge 1, a microwave 1, a sinkbasin 1, and a shelf 1."
    assert House(kitchen()).look() == play(House(kitchen()), "look") == room + names
    assert play(House(kitchen(), relists=False), "look") == f"{room}nothing."


def test_a_closed_receptacle_shows_its_things_only_when_opened() -> None:
    house = House(kitchen())
    assert play(house, "go to fridge 1") == "You arrive at fridge 1. The fridge 1 is closed."
    assert house.act("take apple 2 from fridge 1") is None and FRIDGE not in house.seen
    assert play(house, "open fridge 1") == "You open the fridge 1. The fridge 1 is open. In it, you see a apple 2."
    assert play(house, "take apple 2 from fridge 1") == "You pick up the apple 2 from the fridge 1."
    assert play(house, "close fridge 1") == "You close the fridge 1."
    assert house.act("move apple 2 to fridge 1") is None and FRIDGE in house.seen


def test_two_receptacles_at_one_location_are_reached_from_there() -> None:
    house = House(kitchen())
    assert play(house, "go to shelf 1") == "You arrive at shelf 1. On the shelf 1, you see nothing."
    assert play(house, "look") == "You are facing the sinkbasin 1, and shelf 1. Next to it, you see nothing."
    assert play(house, "examine sinkbasin 1") == "On the sinkbasin 1, you see a bowl 1."
    assert (
        play(house, "take bowl 1 from sinkbasin 1", "move bowl 1 to shelf 1") == "You move the bowl 1 to the shelf 1."
    )
    assert play(house, "look").endswith("Next to it, you see a bowl 1.")  # as ALFWorld's engine tells it
    assert house.act("go to sinkbasin 1") is None  # the agent is there


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        ([], "There's nothing special about apple 2."),
        (["clean apple 2 with sinkbasin 1"], "This is a clean apple 2."),
        (["heat apple 2 with microwave 1"], "This is a hot apple 2."),
        (["cool apple 2 with fridge 1"], "This is a cold apple 2."),
        (["heat apple 2 with microwave 1", "cool apple 2 with fridge 1"], "This is a cold apple 2."),
        (["clean apple 2 with sinkbasin 1", "cool apple 2 with fridge 1"], "This is a cool and clean apple 2."),
        (["clean apple 2 with sinkbasin 1", "heat apple 2 with microwave 1"], "This is a hot and clean apple 2."),
    ],
)
def test_what_was_done_to_a_thing_shows_when_it_is_examined(commands: list[str], told: str) -> None:
    house = House(kitchen())
    play(house, "go to fridge 1", "open fridge 1", "take apple 2 from fridge 1")
    for command in commands:
        place = command.rpartition(" with ")[2]
        house.act(f"go to {place}")
        using = command.split()[0]
        assert play(house, command) == f"You {using} the apple 2 using the {place}."
    assert play(house, "examine apple 2") == told


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ((), "This is a sliced apple 2."),
        (("clean",), "This is a clean sliced apple 2."),
        (("hot",), "This is a hot sliced apple 2."),
        (("cool",), "This is a cool sliced apple 2."),
        (("clean", "hot"), "This is a hot and clean sliced apple 2."),
        (("clean", "cool"), "This is a cool and clean sliced apple 2."),
    ],
)
def test_a_sliced_thing_is_described_with_all_that_it_is(marks: tuple[str, ...], told: str) -> None:
    world = kitchen(marks=frozenset((mark, APPLE) for mark in (*marks, "sliced")))
    house = House(world)
    play(house, "go to fridge 1", "open fridge 1", "take apple 2 from fridge 1")
    assert play(house, "examine apple 2") == told


def test_a_knife_slices_what_is_at_hand_even_behind_a_door_as_in_alfworld() -> None:
    house = House(kitchen())
    play(house, "go to desk 1", "take knife 1 from desk 1", "go to fridge 1")
    assert play(house, "slice apple 2 with knife 1") == "You sliced the apple 2 with the knife 1."
    assert house.act("slice apple 1 with knife 1") is None


def test_the_lamp_is_used_where_it_stands_and_a_bowl_shows_what_is_in_it() -> None:
    house = House(kitchen())
    assert house.act("use lamp 1") is None
    assert play(house, "go to desk 1", "use lamp 1") == "You turn on the lamp 1."
    assert house.act("take lamp 1 from desk 1") is None
    play(house, "go to sinkbasin 1", "take bowl 1 from sinkbasin 1")
    assert play(house, "examine bowl 1") == "This is a normal bowl 1. In it, you see a knife 1."


def test_one_thing_is_held_at_a_time_and_the_inventory_names_it() -> None:
    house = House(kitchen())
    assert play(house, "inventory") == "You are not carrying anything."
    assert play(house, "go to desk 1", "take knife 1 from desk 1", "inventory") == "You are carrying: a knife 1."
    play(house, "go to sinkbasin 1")
    assert house.act("take bowl 1 from sinkbasin 1") is None
    assert house.held == KNIFE and play(house, "move knife 1 to shelf 1") and house.held == NOWHERE


@pytest.mark.parametrize(
    "text",
    ["put knife 1 in/on shelf 1", "PUT  knife 1 on shelf 1", "put knife 1 in shelf 1", "move knife 1 to shelf 1\n"],
)
def test_every_way_of_writing_put_means_move(text: str) -> None:
    house = House(kitchen())
    play(house, "go to desk 1", "take knife 1 from desk 1", "go to shelf 1")
    assert canonical(text) == "move knife 1 to shelf 1"
    assert play(house, text) == "You move the knife 1 to the shelf 1."


NONSENSE_CHANGES_NOTHING: list[str] = [
    "",
    "go",
    "go to nowhere 1",
    "take apple 2",
    "漢",
    "put in on to",
    "move  to ",
    "look up",
]


def test_nonsense_changes_nothing() -> None:
    for text in NONSENSE_CHANGES_NOTHING:
        house = House(kitchen())
        before = house.state()
        assert house.act(text) is None and house.state() == before


def test_the_listed_commands_are_sorted_and_all_can_be_done() -> None:
    world = kitchen()
    for command in House(world).commands():
        assert House(world).act(command) is not None
    assert list(House(world).commands()) == sorted(set(House(world).commands()))


@pytest.mark.parametrize("kind", KINDS)
def test_the_planner_and_the_explorer_reach_every_kind_of_goal(kind: str) -> None:
    goal = Goal(kind, "apple", "lamp" if kind == LOOK else "shelf")
    for player in ("planner", "explorer"):
        house = House(kitchen(goal))
        turns = 0
        while not is_reached(house, goal):
            command = next_command(house, range(6)) if player == "planner" else explore(house)
            assert command is not None and house.act(command) is not None
            turns += 1
        assert turns <= (12 if player == "planner" else 20) and progress(house) == 1.0


@pytest.mark.parametrize(("kind", "mark"), [(CLEAN, "clean"), (HEAT, "hot"), (COOL, "cool")])
def test_half_of_a_goal_is_half_of_the_progress(kind: str, mark: str) -> None:
    house = House(kitchen(Goal(kind, "apple", "shelf")))
    play(house, "go to cabinet 1", "open cabinet 1", "take apple 1 from cabinet 1")
    assert progress(house) == 0.0
    house.marks[mark].add(OTHER)
    assert progress(house) == 0.5
    play(house, "go to shelf 1", "move apple 1 to shelf 1")
    assert progress(house) == 1.0 and is_reached(house, house.world.goals[0])


def test_clean_and_in_place_must_be_the_same_thing() -> None:
    house = House(kitchen(Goal(CLEAN, "apple", "cabinet"), marks=frozenset({("clean", APPLE)})))
    house.seen |= {CABINET, FRIDGE}
    assert not is_reached(house, house.world.goals[0]) and progress(house) == 0.5


def test_progress_counts_only_what_the_agent_knows() -> None:
    house = House(kitchen(Goal(PLACE, "apple", "fridge"), marks=frozenset({("cool", APPLE)})))
    assert progress(house) == 0.0  # it lies there, but nobody has looked
    assert known_marks(house, APPLE) == ()
    play(house, "go to fridge 1", "open fridge 1")
    assert progress(house) == 1.0
    play(house, "take apple 2 from fridge 1", "examine apple 2")
    assert known_marks(house, APPLE) == ("cool",)


def test_two_things_must_be_in_the_same_receptacle() -> None:
    world = kitchen(Goal(TWO, "apple", "shelf"))
    more = (*RECEPTACLES, Receptacle("shelf 2", "shelf", 6))
    house = House(replace(world, receptacles=more, inside=((APPLE, SHELF), (OTHER, 6))))
    house.seen |= {SHELF, 6}
    assert not is_reached(house, world.goals[0]) and progress(house) == 0.5
    house.contents[SHELF].append(OTHER)
    assert is_reached(house, world.goals[0]) and progress(house) == 1.0


def test_a_state_comes_back_and_one_of_another_game_is_refused() -> None:
    house, other = House(kitchen()), House(kitchen())
    play(house, "go to cabinet 1", "open cabinet 1", "take apple 1 from cabinet 1", "examine apple 1")
    other.load(house.state())
    assert other.state() == house.state() and other.commands() == house.commands()
    damages: tuple[dict[str, object], ...] = (
        {"contents": []},
        {"held": 99},
        {"opened": [40]},
        {"location": "here"},
        {"examined": [77]},
    )
    for damage in damages:
        with pytest.raises(ValueError, match="the game has not"):
            other.load({**house.state(), **damage})


def test_names_are_listed_with_commas_and_an_and() -> None:
    assert enumerate_names(["cup 1"]) == "a cup 1" and enumerate_names(["cup 1", "pan 2"]) == "a cup 1, and a pan 2"
