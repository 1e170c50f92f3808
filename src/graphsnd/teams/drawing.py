"""Samples of policies that can only be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.arguments import checked
from graphsnd.behavior import Samples
from graphsnd.errors import InputError, as_tensor, check_integer, describe, shape_of
from graphsnd.teams.mixing import LOCK, ask


@checked(own="policies observations")
@torch.no_grad()
def draw_samples(
    policies: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]],
    observations: Any,
    samples: int = 64,
    *,
    encode: Callable[[Any], Any] | None = None,
    seed: int = 0,
) -> Samples:
    """Call every policy several times on all observations, and return what it did as samples.

    Draws of torch come from ``seed``, and the global generators are left as they were. Policies with random numbers of
    another kind seed themselves, each with its own seed.

    Args:
        policies: One for each agent; a dict names them. Each draws an answer to every observation.
        observations: What policies are given: a tensor ``[..., features]``, or anything, such as a list of prompts.
        samples: Calls of each policy.
        encode: Turns an answer into features ``[..., features]``, such as a list of sentences into embeddings.
        seed: Of torch's generators.

    Raises:
        InputError: For answers that are no tensors of one shape ``[..., features]`` and have not been encoded.

    Example:
        >>> noisy = [lambda o, k=k: o + k * torch.randn_like(o) for k in range(3)]
        >>> draw_samples(noisy, torch.zeros(5, 2), samples=8)
        Samples(agents=3, observations=5)
    """
    check_integer("samples", samples, "to be an integer, at least 1", low=1)
    if not isinstance(policies, Mapping | Sequence | nn.ModuleDict | nn.ModuleList):
        raise InputError("policies", "to be a list or dict of policies, one for each agent", describe(policies))
    named = dict(policies.items() if isinstance(policies, Mapping | nn.ModuleDict) else enumerate(policies))
    observations = as_tensor(observations)
    with LOCK, torch.random.fork_rng():
        torch.manual_seed(seed)
        drawn = [
            [_draw(policy, observations, str(name), encode) for _ in range(samples)] for name, policy in named.items()
        ]
    shapes = {answer.shape for answers in drawn for answer in answers}
    if len(shapes) != 1:
        got = " and ".join(sorted(str(tuple(shape)) for shape in shapes)) or "no policies"
        raise InputError("policies", "to answer in one shape", got)
    made = Samples(torch.stack([torch.stack(answers, dim=-2) for answers in drawn], dim=-3))
    return made if isinstance(policies, Sequence | nn.ModuleList) else made.with_names(list(map(str, named)))


def _draw(policy: Callable[..., Any], observations: Any, name: str, encode: Callable[[Any], Any] | None) -> Tensor:
    answer = ask(policy, observations, name)
    answer = as_tensor(answer if encode is None else encode(answer))
    if not isinstance(answer, Tensor) or answer.dim() < 2 or not answer.is_floating_point():
        got = shape_of(answer) + f" of {answer.dtype}" if isinstance(answer, Tensor) else type(answer).__name__
        fix = "Distributions: return a draw, policy(o).sample(). Text, tokens, choices: encode=, which gives features."
        raise InputError("policies", "to answer with floating tensors (..., features)", f"{got} of policy {name}", fix)
    return answer
