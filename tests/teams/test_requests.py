from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsnd.teams.requests import WIDTHS, batches, sort_by_agent, split_bucket


@given(st.lists(st.integers(0, 6), min_size=1, max_size=300))
def test_every_request_has_its_own_slot_with_its_own_agent(asked: list[int]) -> None:
    plan = batches(torch.tensor(asked))
    agents = torch.cat([b.agents.repeat_interleave(b.requests.shape[1]) for b in plan.buckets])
    requests = torch.cat([b.requests.flatten() for b in plan.buckets])
    slots = plan.slots.tolist()
    assert len(set(slots)) == len(asked)
    assert [int(requests[s]) for s in slots] == list(range(len(asked)))
    assert [int(agents[s]) for s in slots] == asked
    # Padding repeats requests of the same agent, and less than doubles the work.
    assert agents.tolist() == [asked[r] for r in requests.tolist()]
    assert len(requests) < 1.5 * len(asked) + 1


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200))
def test_runs_are_the_requests_of_each_agent(asked: list[int]) -> None:
    runs = sort_by_agent(torch.tensor(asked))
    assert runs.agents.tolist() == sorted(set(asked))
    for agent, start, count in zip(runs.agents.tolist(), runs.starts.tolist(), runs.counts.tolist(), strict=True):
        assert runs.order[start : start + count].tolist() == [i for i, a in enumerate(asked) if a == agent]


def test_number_of_buckets_does_not_grow(generator: torch.Generator) -> None:
    asked = (torch.rand(20_000, generator=generator) ** 4 * 5000).long()
    plan = batches(asked)
    assert len(plan.buckets) <= len(WIDTHS)
    assert max(b.requests.shape[1] for b in plan.buckets) == WIDTHS[-1]


def test_chunks_are_the_bucket(generator: torch.Generator) -> None:
    bucket = batches(torch.arange(10))
    parts = list(split_bucket(bucket.buckets[0], 3))
    assert [len(part.agents) for part in parts] == [3, 3, 3, 1]
    assert torch.cat([part.requests for part in parts]).equal(bucket.buckets[0].requests)
