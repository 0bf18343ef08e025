"""The network of clicks and its agent: views, cells, files, sampling, and what it remembers."""

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from turngym.agents.core import Request
from turngym.agents.models.vision.clicks import ClickSettings, batch, build_clicks, load_clicks
from turngym.agents.players import AgentSettings, make_agent
from turngym.errors import ConfigError

SETTINGS = ClickSettings(height=32, width=40, top=8, left=4)


def request(episode: int = 0, turn: int = 0, **changes: Any) -> Request:
    """Return a request with a picture of noise."""
    image = np.random.default_rng(3).integers(0, 256, (48, 64, 3), np.uint8)
    return Request(**{"slot": 0, "episode": episode, "turn": turn, "observation": "", "info": {}, "instructions": "",
                      "image": image, **changes})  # fmt: skip


def test_every_cell_is_where_its_click_is_and_points_outside_are_in_the_nearest() -> None:
    rows, columns = SETTINGS.cells
    assert (rows, columns) == (4, 5)
    assert [SETTINGS.cell_of(SETTINGS.click_of(cell)) for cell in range(rows * columns)] == list(range(rows * columns))
    assert SETTINGS.cell_of((-9.0, -9.0)) == 0 and SETTINGS.cell_of((1e4, 1e4)) == rows * columns - 1


def test_a_view_is_the_part_of_the_picture_and_a_mark_at_the_last_click() -> None:
    image = request().image
    assert image is not None
    seen = SETTINGS.view(image, (24.0, 20.0))
    assert (seen[:3].transpose(1, 2, 0) == image[8:40, 4:44]).all()
    assert seen[3].sum() == 255 * 64 and seen[3, 8:16, 16:24].min() == 255
    assert not SETTINGS.view(image)[3].any() and not SETTINGS.view(image, (500.0, -500.0))[3].any()
    with pytest.raises(ConfigError, match="up to 44 x 40, and the picture has 64 x 32"):
        SETTINGS.view(image[:32])


@pytest.mark.parametrize(("height", "width"), [(32, 40), (45, 63), (8, 8)])
def test_a_network_has_a_logit_for_each_cell_and_comes_back_from_its_files(
    height: int, width: int, tmp_path: Path
) -> None:
    network = build_clicks(ClickSettings(height, width), seed=5)
    views = batch([np.random.default_rng(n).integers(0, 256, (4, height, width), np.uint8) for n in range(3)])
    network.save(tmp_path / "new")
    with torch.inference_mode():
        logits = network(views)
        assert torch.equal(load_clicks(tmp_path / "new")(views), logits)
    rows, columns = network.settings.cells
    assert logits.shape == (3, rows * columns) and len({tuple(each.tolist()) for each in logits}) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "holds no click network"), ("[]", "holds no"), ('{"height": 0, "width": 8}', "height .* got 0"),
     ('{"height": 16, "width": 8}', "size mismatch"), ('{"height": 8, "width": 8, "x": 1}', "unexpected keyword")],
)  # fmt: skip
def test_a_folder_without_its_network_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        build_clicks(ClickSettings(8, 8), 0).save(tmp_path)
        (tmp_path / "clicks.json").write_text(text)
    with pytest.raises(ConfigError, match=message):
        make_agent(f"clicks:{tmp_path}")


def test_a_folder_that_asks_for_a_huge_network_takes_no_memory_and_weights_must_be_finite(tmp_path: Path) -> None:
    network = build_clicks(ClickSettings(8, 8), 0)
    network.save(tmp_path)
    (tmp_path / "clicks.json").write_text('{"height": 4096, "width": 4096, "channels": 4096, "code": 4096}')
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ConfigError, match="size mismatch"):
        load_clicks(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18
    with torch.no_grad():
        network.places.fill_(float("nan"))
    network.save(tmp_path)
    with pytest.raises(ConfigError, match="a weight is not finite"):
        load_clicks(tmp_path)


def test_the_agent_samples_by_seed_episode_and_turn_and_is_greedy_at_temperature_0(tmp_path: Path) -> None:
    network = build_clicks(SETTINGS, 1)
    network.save(tmp_path)
    episodes = [request(episode) for episode in range(12)]

    def actions(**settings: Any) -> list[str]:
        return [each.action for each in make_agent(f"clicks:{tmp_path}", AgentSettings(**settings)).act(episodes)]

    assert actions(seed=1) == actions(seed=1) != actions(seed=2)
    assert len(set(actions(seed=1))) > 3
    view = SETTINGS.view(np.asarray(episodes[0].image))
    x, y = SETTINGS.click_of(int(network(batch([view])).argmax()))
    assert set(actions(temperature=0.0)) == {f"click {x:g},{y:g}"}


def test_the_agent_sees_its_last_click_until_the_episode_is_forgotten() -> None:
    from turngym.agents.models.vision.click_agent import ClickAgent

    agent = ClickAgent(build_clicks(SETTINGS, 1))
    assert agent.follow(request(), "click 24,20").action == "click 24,20"
    agent.follow(request(), "click 7")  # an element has no place that the agent knows
    assert agent.view(request())[3].any() and not agent.view(request(episode=1))[3].any()
    agent.forget(0)
    assert not agent.view(request())[3].any()
    with pytest.raises(ConfigError, match="image=true"):
        agent.act([request(image=None)])
    with pytest.raises(ConfigError, match="clicks:FOLDER"):
        make_agent("clicks")
