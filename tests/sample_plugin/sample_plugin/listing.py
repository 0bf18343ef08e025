"""What is registered by its place, so that listing it imports no game."""

from turngym.envs.registration import register_env, register_game


def environments() -> None:
    """Register a game for one, with a preset."""
    register_env("sample/Doors-v0", "sample_plugin.doors:Doors", summary="Find the door that opens.")
    register_env("sample/ManyDoors-v0", "sample_plugin.doors:Doors", summary="Nine doors.", options={"doors": 9})


def games() -> None:
    """Register a game for two."""
    register_game("sample/Misere-v0", "sample_plugin.misere:Misere", summary="Three in a row lose.")
