"""Random streams that belong to one run, so that it does not depend on the runs stacked beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphsnd.errors import InputError

# Second words of `hashed`: seeds of sampled graphs are apart from those of the streams, whose words are 0 .. 3.
SAMPLED_GRAPHS, CONTROL_GRAPHS = 100, 200  # of measured diversity; of a controller's designs
NAMES = ("weights", "episodes", "actions", "shuffles")
ON_DEVICE = ("actions", "shuffles")  # large draws; the others are made on the host, the same for every device


@dataclass(frozen=True, eq=False)
class Streams:
    """A generator for each purpose, so that more of one draw does not shift the others."""

    weights: torch.Generator
    episodes: torch.Generator
    actions: torch.Generator
    shuffles: torch.Generator

    @classmethod
    def make(cls, seed: int, device: torch.device) -> Streams:
        """Return the streams of ``seed``.

        Example:
            >>> a, b = (Streams.make(7, torch.device("cpu")) for _ in range(2))
            >>> bool(torch.rand(1, generator=a.actions) == torch.rand(1, generator=b.actions))
            True
        """
        places = enumerate(NAMES)
        return cls(**{name: hashed(seed, at, device=device if name in ON_DEVICE else None) for at, name in places})

    def state(self) -> dict[str, Tensor]:
        """Return the state of every stream, as bytes."""
        return {name: getattr(self, name).get_state() for name in NAMES}

    def load(self, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`state` returned.

        Raises:
            InputError: For bytes that are no state of a generator.
        """
        for name in NAMES:
            try:
                getattr(self, name).set_state(state[name].cpu())
            except (RuntimeError, TypeError) as error:
                raise InputError("checkpoint", f"with the state of the stream of {name}", str(error)) from None


def hashed(*words: int, device: torch.device | None = None) -> torch.Generator:
    """Return a generator seeded with a hash, because neighbouring seeds are no guarantee of unrelated streams.

    Example:
        >>> hashed(0, 1).initial_seed() != hashed(1, 0).initial_seed()
        True
    """
    word = int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]) >> 1
    return torch.Generator(device or "cpu").manual_seed(word)
