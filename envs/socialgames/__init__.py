"""Social dilemmas of several seats that name numbers at once."""

from __future__ import annotations

from turngym.envs.registration import Spec

_PLACE = "turngym.envs.socialgames"

SPECS = {
    "turngym/PublicGoods-v0": Spec(
        f"{_PLACE}.public_goods:PublicGoods", {}, "Ten rounds of giving points to a pool that is multiplied and shared."
    ),
    "turngym/PublicGoodsOnce-v0": Spec(
        f"{_PLACE}.public_goods:PublicGoods", {"rounds": 1}, "One round of giving points to a pool."
    ),
    "turngym/BeautyContest-v0": Spec(
        f"{_PLACE}.beauty_contest:BeautyContest", {}, "Ten rounds of guessing two thirds of the mean guess."
    ),
    "turngym/BeautyContestOnce-v0": Spec(
        f"{_PLACE}.beauty_contest:BeautyContest", {"rounds": 1}, "One round of guessing two thirds of the mean guess."
    ),
}
