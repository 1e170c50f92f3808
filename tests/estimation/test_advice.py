from __future__ import annotations

import json

from graphsnd.estimation import advise
from graphsnd.estimation.advising import GOALS


def test_prints_and_becomes_json() -> None:
    for goal in GOALS:
        found = advise(300, 100_000, goal, policy_cost=5e3)
        plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert plain["goal"] == goal
        assert plain["recommended"]["cost"]["distances"] == found.cost.distances
        assert [one["name"] for one in plain["rejected"]] == [one.name for one in found.rejected]
        text = str(found)
        for word in (str(found.design), found.guarantee, found.call, found.call_policies, *found.assumptions):
            assert word in text
        assert all(one.why for one in found.rejected)
