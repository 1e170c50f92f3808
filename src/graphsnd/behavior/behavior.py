"""The contract of a behaviour: what every agent would do on every observation."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import torch
from typing_extensions import Self

from graphsnd.behavior.points import Points
from graphsnd.errors import InputError, check_finite, check_tensor, describe, shape_of

if TYPE_CHECKING:
    from graphsnd.behavior.distances import Distance

BY_GROUP = "Measure each group by itself: gs.measure(predators, ...), gs.measure(prey, ...)."
# Modules whose calls are the user's own, unlike those of trainers, controllers and accumulators.
_MODULES = ("arguments", "behavior", "metric", "cli", "estimation.measuring", "estimation.source")
MEASURES = tuple(f"graphsnd.{module}" for module in _MODULES)
Agents = torch.Tensor | Mapping[str, torch.Tensor]  # with an agents axis, or one tensor per agent


class AgentsAxisWarning(UserWarning):
    """A tensor without names was read as more agents than observations: its axes may be in another order.

    Example:
        >>> import warnings, torch, graphsnd as gs
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always", AgentsAxisWarning)
        ...     gs.measure(gs.Deterministic(torch.zeros(3, 100, 2))).agents  # [observations, agents, actions]
        100
        >>> str(caught[0].message).split(" from")[0]
        'Read 100 agents and 3 observations'
    """


class Named:
    """What has agents, with names of their own or numbers in place of them."""

    agents: int
    _names: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The agents' names in order: the keys of the dict that they came in, or "0", "1", ..."""
        return self._names or tuple(map(str, range(self.agents)))

    @property
    def named(self) -> bool:
        """Whether the agents have names of their own."""
        return self._names is not None

    def with_names(self, names: Sequence[str]) -> Self:
        """Return the same with its agents named in order.

        Raises:
            InputError: Unless there is one name for each agent, no two alike.
        """
        check_names(names, self.agents)
        named = copy(self)
        named._names = tuple(names)
        return named


class Behavior(Named, ABC):
    """Action distributions of ``n`` agents on the same observations.

    The first tensor a subclass takes has shape ``[..., agents, features]``. The leading dimensions are the
    observations; equation (1) pools them, so their order and grouping do not matter.

    SND compares agents on the *same* observations, and a tensor does not show whether that is so: outputs of a
    rollout, where each agent answered its own observation, have the same shape. :func:`graphsnd.evaluate` shows all
    observations to all policies.

    Example:
        >>> import torch, graphsnd as gs
        >>> rollout = gs.Gaussian(torch.zeros(50, 8, 4, 2), torch.ones(2))  # 50 steps in 8 environments, 4 agents
        >>> rollout, rollout.batch_shape
        (Gaussian(agents=4, observations=400), torch.Size([50, 8]))
    """

    def __init__(self, shape: torch.Size, names: Sequence[str] | None = None) -> None:
        """Take the shape ``[..., agents, features]``, and the agents' names where they have any."""
        self.batch_shape = shape[:-2]  # how the observations are laid out
        self.agents = shape[-2]
        self._names = None if names is None else tuple(names)

    _axis_known = False  # whether it came from a team, whose answers show which axis is the agents'
    distance: Distance | None = None  # of its own, where the family does not decide

    def _embed(self, distance: Distance) -> Points:
        """Return points whose norm is the distance."""
        return distance.embed(self)

    @abstractmethod
    def wasserstein_points(self) -> Points:
        """Embed for the 2-Wasserstein distance."""

    @property
    def observations(self) -> int:
        """Number of observations."""
        return self.batch_shape.numel()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(agents={self.agents}, observations={self.observations})"

    def _repr_html_(self) -> str:
        from graphsnd.plots.notebook import behavior_html

        return behavior_html(self)


def read_agents(name: str, given: Any, layout: str, *, trailing: int = 1, finite: bool = False) -> torch.Tensor:
    """Return a tensor, an array or a dict of one per agent as a tensor, or raise unless it is floating and not empty.

    Args:
        name: Argument name for the message.
        given: Shape ``[..., agents, features]``, or arrays ``[..., features]`` by the agents' names.
        layout: The symbolic shape for the message.
        trailing: Dimensions after the agents axis.
        finite: Whether to check that all values are finite.
    """
    tensor = stack_agents(name, given, trailing=trailing)
    fix = "The agents axis comes before the last one." if trailing == 1 else ""
    tensor = check_tensor(name, tensor, 1 + trailing, layout, fix=fix)
    if not tensor.is_floating_point():
        # Cast to float, indices of discrete actions would be compared as if action 3 were nearer to 2 than to 0.
        discrete = "For discrete actions pass their probabilities: graphsnd.Categorical(probs=...) or (logits=...)."
        fix = discrete if name == "actions" else f"Use {name}.float()."
        raise InputError(name, "to have a floating dtype", tensor.dtype, fix)
    if 0 in tensor.shape[-1 - trailing :]:
        raise InputError(name, f"with shape {layout} and no empty axis", shape_of(tensor))
    if 0 in tensor.shape:
        raise InputError(name, "to hold at least one observation", shape_of(tensor), "Collect a rollout first.")
    if finite:
        check_finite(name, tensor)
    return tensor


def warn_axis(behavior: Behavior) -> None:
    """Warn where a measurement that the user called reads a bare tensor as more agents than observations.

    One observation is no transposed rollout. Batches of an accumulator or a metric, and what controllers and trainers
    measure, may be small: calls through any other module of this package are left alone.
    """
    if not 1 < behavior.observations < behavior.agents:
        return
    if behavior.named or behavior._axis_known or torch.compiler.is_compiling():
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(MEASURES):
        frame = frame.f_back
    if frame.f_globals.get("__name__", "").partition(".")[0] != "graphsnd":
        read = f"Read {behavior.agents} agents and {behavior.observations} observations from [..., agents, features]."
        fix = "If agents are its first axis, pass tensor.movedim(0, -2); if not, name them by with_names or a dict."
        warnings.warn(f"{read} {fix}", AgentsAxisWarning, stacklevel=3)


def check_names(names: Sequence[str], agents: int) -> None:
    """Raise unless there is one name for each agent, no two alike."""
    strings = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not strings or not agents == len(names) == len(set(names)):
        got = f"{len(names)}, of which {len(set(names))} differ" if strings else describe(names)
        raise InputError("names", f"to be {agents} different strings, one for each agent", got)


def stack_agents(name: str, given: Any, names: Sequence[str] | None = None, *, trailing: int = 1) -> Any:
    """Return a dict of one array per agent as one tensor with an agents axis; anything else as it is.

    Args:
        name: Argument name for the message.
        given: Arrays ``[..., actions]`` by the agents' names, or anything else.
        names: The agents in order; the dict's own order when None.
        trailing: Dimensions after the agents axis.

    Raises:
        InputError: For other names, or arrays of different shapes.
    """
    if not isinstance(given, Mapping):
        return given
    names = names or tuple(given.keys())  # an iteration over a TensorDict is one over its batch
    named = zip(names, in_order(name, given, names), strict=True)
    parts = [check_tensor(f"{name}[{key!r}]", part, trailing, "(..., actions)") for key, part in named]
    if len({part.shape for part in parts}) > 1:
        fix = f"Agents with different spaces have no distance. {BY_GROUP}"
        if name == "observations":
            fix += " Arrays of one observation: as_team(policies, feature_dims={'camera': 3, 'speed': 1})."
        shapes = " and ".join(sorted({shape_of(part) for part in parts}))
        raise InputError(name, "of one shape for all agents", shapes, fix)
    return torch.stack(parts, dim=-1 - trailing)


def in_order(name: str, given: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the values of a dict in the order of ``names``, or raise when it has other keys."""
    keys = list(given.keys())
    if not keys or set(keys) != set(names):
        raise InputError(name, f"by the names {', '.join(names) or 'of agents'}", ", ".join(map(str, keys)))
    return [given[key] for key in names]


def names_of(given: Any) -> tuple[str, ...] | None:
    """Return the keys of a dict of agents as strings, no two alike; None for anything else."""
    names = tuple(map(str, given.keys())) if isinstance(given, Mapping) else ()
    check_names(names, len(names))
    return names or None


def broadcast(name: str, tensor: torch.Tensor, shape: torch.Size | tuple[int, ...], target: str) -> torch.Tensor:
    """Expand ``tensor`` to ``shape``, or raise an error that calls that shape ``target``."""
    if tensor.shape == shape:
        return tensor
    try:
        return tensor.expand(shape)
    except RuntimeError:
        raise InputError(name, f"to broadcast to {target}", shape_of(tensor)) from None


def flatten(tensor: torch.Tensor) -> torch.Tensor:
    """Pool the observations: ``[..., agents, features]`` to ``[observations, agents, features]``.

    Half precision is widened, see :func:`widen`.
    """
    flat = tensor if tensor.dim() == 3 else tensor.reshape(-1, tensor.shape[-2], tensor.shape[-1])
    return widen(flat)


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """Return half precision as float32, because a difference or a long mean is not representable in it."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
