"""One network that several agents share: observations of frameworks, in which it is told for which agent it acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.teams.team import Team


def tell(observations: Tensor, columns: Any, identity: Tensor | None = None) -> Tensor:
    """Return observations ``[..., agents, features]`` with the identity of each place's agent written into columns.

    Args:
        observations: What is shown in the place of each agent.
        columns: As in :meth:`graphsnd.Team.shared`.
        identity: Likewise.

    Example:
        >>> tell(torch.full((1, 2, 3), 7.0), columns=slice(1, None))
        tensor([[[7., 1., 0.],
                 [7., 0., 1.]]])
    """
    agents = observations.shape[-2]
    team = Team.shared(lambda rows: rows, agents, columns=columns, identity=identity)
    places = torch.arange(agents, device=observations.device).expand(observations.shape[:-1])
    told: Any = team.partial(observations.flatten(0, -2), places.reshape(-1, 1))
    return told.actions.view_as(observations)


def locate(columns: Any, keys: Sequence[Any]) -> tuple[Any, Any]:
    """Return the key of an array of an observation, and the columns in it.

    Args:
        columns: ``{key: columns}``, or the columns alone where there is one array.
        keys: Those of all arrays.

    Raises:
        InputError: For an unknown key, and for several arrays and no key.

    Example:
        >>> locate({"id": slice(None)}, ["camera", "id"])
        ('id', slice(None, None, None))
    """
    named = columns if isinstance(columns, Mapping) else {keys[0]: columns} if len(keys) == 1 else {}
    for key, own in named.items():
        if key in keys and len(named) == 1:
            return key, own
    expected = f"to name one of the arrays {', '.join(map(repr, keys))}, and the columns in it"
    raise InputError("columns", expected, repr(columns), f"For example: columns={{{keys[0]!r}: slice(-3, None)}}.")
