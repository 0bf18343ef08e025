"""Drawing: tiles, shapes and text land on the pixels that they should, and boards are put together cell by cell."""

import numpy as np
import pytest
from numpy.typing import NDArray

from turngym.envs.textgames import drawing
from turngym.envs.textgames.fifteen_puzzle import env as fifteen_puzzle
from turngym.envs.textgames.game_2048 import env as game_2048
from turngym.envs.textgames.maze import env as maze
from turngym.envs.textgames.minesweeper import env as minesweeper
from turngym.errors import ConfigError


def where(picture: drawing.Picture, colour: drawing.Colour) -> NDArray[np.bool_]:
    """Return which pixels have a colour."""
    found: NDArray[np.bool_] = (picture == colour).all(axis=2)
    return found


def test_paint_puts_every_tile_where_its_cell_is() -> None:
    generator = np.random.default_rng(0)
    tiles = drawing.stack([generator.integers(0, 256, (3, 3, 3)).astype(np.uint8) for _ in range(5)])
    cells = generator.integers(5, size=12).tolist()
    picture = drawing.paint(tiles, cells, 4)
    assert picture.shape == (9, 12, 3) and picture.dtype == np.uint8
    for cell, number in enumerate(cells):
        top, left = 3 * (cell // 4), 3 * (cell % 4)
        np.testing.assert_array_equal(picture[top : top + 3, left : left + 3], tiles[number])


def test_stacked_tiles_cannot_be_changed() -> None:
    tiles = drawing.stack([drawing.tile(2, drawing.RED)])
    with pytest.raises(ValueError, match="read-only"):
        tiles[0] = 0


def test_a_border_is_one_pixel_around_the_tile() -> None:
    tile = drawing.tile(5, drawing.RED, drawing.BLUE)
    is_blue = (tile == drawing.BLUE).all(axis=2)
    assert is_blue.sum() == 16 and not is_blue[1:4, 1:4].any()


def test_a_disc_is_round_and_a_box_is_not() -> None:
    tile = drawing.tile(21, drawing.BLACK)
    drawing.disc(tile, 0.5, 0.5, 0.5, drawing.WHITE)
    inside = (tile == drawing.WHITE).all(axis=2)
    assert inside[10, 0] and inside[10, 20] and not inside[0, 0]
    assert abs(inside.sum() - np.pi * 10.5**2) < 12
    np.testing.assert_array_equal(inside, inside.T)
    drawing.box(tile, 0, 0, 1, 0.5, drawing.RED)
    assert (tile[:, :10] == drawing.RED).all() and not (tile[:, 12:] == drawing.RED).all(axis=2).any()


def test_all_characters_differ_and_fill_their_cell() -> None:
    shapes = {character: drawing.glyphs(character) for character in drawing._ROWS}
    assert all(shape.shape == (7, 5) for shape in shapes.values())
    assert len({shape.tobytes() for shape in shapes.values()}) == len(shapes) >= 50
    assert set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") <= set(shapes)


def test_a_line_of_text_has_one_empty_column_between_characters() -> None:
    pixels = drawing.glyphs("1o2")
    assert pixels.shape == (7, 17) and not pixels[:, [5, 11]].any()
    np.testing.assert_array_equal(pixels[:, 6:11], drawing.glyphs("O"))


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_text_is_written_into_the_middle(scale: int) -> None:
    tile = drawing.tile(41, drawing.BLACK)
    drawing.write(tile, "8", drawing.WHITE, scale)
    is_white = (tile == drawing.WHITE).all(axis=2)
    assert is_white.sum() == drawing.glyphs("8").sum() * scale**2
    lines, columns = np.nonzero(is_white)
    assert abs((lines.min() + lines.max()) / 2 - 20) <= 1 and abs((columns.min() + columns.max()) / 2 - 20) <= 1


def test_text_that_does_not_fit_or_cannot_be_written_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'1234' needs 7 x 23 pixels at scale 1, and the picture has 16 x 16"):
        drawing.write(drawing.tile(16, drawing.BLACK), "1234", drawing.WHITE)
    with pytest.raises(ConfigError, match="the bitmap font has no 'É'"):
        drawing.glyphs("é")


def test_symbols_become_numbers_row_by_row() -> None:
    assert drawing.symbol_cells("#_\nP#", "#_P") == [0, 1, 2, 0]
    with pytest.raises(KeyError):
        drawing.symbol_cells("?", "#_P")


def test_a_canvas_has_one_colour_and_is_nobody_elses() -> None:
    one, other = drawing.canvas(3, 5, drawing.RED), drawing.canvas(3, 5, drawing.RED)
    assert one.shape == (3, 5, 3) and one.dtype == np.uint8 and where(one, drawing.RED).all()
    one[0] = 0
    assert where(other, drawing.RED).all()


@pytest.mark.parametrize("thickness", [1, 2])
def test_a_frame_runs_along_the_inside_of_the_edge(thickness: int) -> None:
    picture = drawing.canvas(6, 9, drawing.WHITE)
    drawing.frame(picture, drawing.BLUE, thickness)
    inside = where(picture, drawing.WHITE)
    assert inside[thickness:-thickness, thickness:-thickness].all()
    assert inside.sum() == (6 - 2 * thickness) * (9 - 2 * thickness)
    assert where(picture, drawing.BLUE).sum() == 54 - inside.sum()


def test_a_box_covers_its_share_of_a_picture_that_is_no_square() -> None:
    picture = drawing.canvas(10, 20, drawing.BLACK)
    drawing.box(picture, 0.2, 0.5, 0.6, 0.75, drawing.RED)
    lines, columns = np.nonzero(where(picture, drawing.RED))
    assert (lines.min(), lines.max(), columns.min(), columns.max()) == (2, 5, 10, 14) and len(lines) == 4 * 5


def test_a_disc_beyond_the_edge_is_cut_off() -> None:
    picture = drawing.tile(20, drawing.BLACK)
    drawing.disc(picture, 0.0, 0.0, 0.5, drawing.RED)
    found = where(picture, drawing.RED)
    assert found[0, 0] and not found[10:].any() and not found[:, 10:].any()
    assert abs(found.sum() - np.pi * 10**2 / 4) < 8


def test_a_sprite_is_scaled_and_leaves_what_has_no_colour() -> None:
    picture = drawing.canvas(6, 9, drawing.WHITE)
    drawing.sprite(picture, ["a.b", "b.."], {"a": drawing.RED, "b": drawing.BLUE})
    for row, symbols in enumerate(["a.b", "b.."]):
        for column, symbol in enumerate(symbols):
            colour = {"a": drawing.RED, "b": drawing.BLUE, ".": drawing.WHITE}[symbol]
            assert where(picture[3 * row : 3 * row + 3, 3 * column : 3 * column + 3], colour).all()


@pytest.mark.parametrize("side", [8, 16, 32])
def test_player_and_flag_are_seen_and_differ_at_every_size(side: int) -> None:
    empty, player, goal = (drawing.tile(side, drawing.LIGHT) for _ in range(3))
    drawing.person(player, drawing.BLUE)
    drawing.flag(goal, drawing.RED)
    assert 0.1 < where(player, drawing.BLUE).mean() < 0.9
    assert 0.1 < where(goal, drawing.RED).mean() < 0.5 and where(goal, drawing.BLACK).any()
    assert len({picture.tobytes() for picture in (empty, player, goal)}) == 3


def test_what_is_written_can_be_read_back() -> None:
    """Negative oracle: no other character of the font fits what was written."""
    for character in "0123456789AGQ+-*/?":
        picture = drawing.canvas(7, 5, drawing.WHITE)
        drawing.write(picture, character, drawing.BLACK)
        ink = where(picture, drawing.BLACK)
        assert [other for other in drawing._ROWS if (drawing.glyphs(other) == ink).all()] == [character]


def test_no_text_has_no_pixels() -> None:
    assert drawing.glyphs("").shape == (7, 0)
    picture = drawing.tile(9, drawing.WHITE)
    drawing.write(picture, "", drawing.BLACK)
    assert where(picture, drawing.WHITE).all()


def test_all_colours_differ() -> None:
    """A board is read by its colours, so no two names may stand for one."""
    names = [name for name, value in vars(drawing).items() if name.isupper() and isinstance(value, tuple)]
    colours = [getattr(drawing, name) for name in names]
    assert len(set(colours)) == len(colours) >= 14
    assert all(len(colour) == 3 and all(0 <= part <= 255 for part in colour) for colour in colours)


def test_a_board_with_a_row_too_few_cells_is_refused() -> None:
    tiles = drawing.stack([drawing.tile(2, drawing.RED)])
    with pytest.raises(ValueError, match="reshape"):
        drawing.paint(tiles, [0, 0, 0], 2)
    with pytest.raises(IndexError):
        drawing.paint(tiles, [0, 1], 2)


def test_tiles_of_different_sizes_are_not_stacked() -> None:
    with pytest.raises(ValueError, match="same shape"):
        drawing.stack([drawing.tile(2, drawing.RED), drawing.tile(3, drawing.RED)])


@pytest.mark.parametrize(
    ("tiles", "count"),
    [
        (maze.tiles(), len(maze.SYMBOLS)),
        (minesweeper.tiles(), len(minesweeper.SYMBOLS)),
        (fifteen_puzzle._tiles(25), 25),
        (game_2048._tiles(17), 17),
    ],
)
def test_every_cell_of_a_grid_game_has_a_tile_of_its_own(tiles: drawing.Picture, count: int) -> None:
    """Else the picture would tell less than the text."""
    assert len(tiles) == count == len({tile.tobytes() for tile in tiles})
    assert tiles.shape[1] == tiles.shape[2] and tiles.dtype == np.uint8
