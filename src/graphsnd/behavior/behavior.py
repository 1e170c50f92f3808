"""The contract of a behaviour, what every agent would do on every observation, and its plainest kind: one action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

import torch
from typing_extensions import Self

from graphsnd.behavior.distances import DISTANCES, Distance, Wasserstein
from graphsnd.behavior.points import Norm, Points, flatten
from graphsnd.errors import InputError, check_choice, check_finite, check_tensor, describe, plural, shape_of

BY_GROUP = "Measure each group by itself: gs.measure(predators, ...), gs.measure(prey, ...)."
PerAgent = torch.Tensor | Mapping[str, torch.Tensor]  # with an agents axis, or one tensor per agent


class Named:
    """Base of objects with agents, which have names or numbers."""

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

    distances: ClassVar[tuple[type[Distance], ...]] = (Wasserstein,)  # those that fit
    distance: Distance = Wasserstein()  # the default

    def __init__(self, shape: torch.Size, given: Any = None) -> None:
        """Take the shape ``[..., agents, features]``, and what it was read from: a dict names the agents."""
        self.batch_shape = shape[:-2]  # how the observations are laid out
        self.agents = shape[-2]
        self._names = names_of(given) if isinstance(given, Mapping) else None

    @abstractmethod
    def embed(self, distance: Distance) -> Points:
        """Return points whose norm is the distance, which ``as_distance`` has found to fit."""

    def accept(self, distance: Distance) -> Distance:
        """Return the distance as :meth:`embed` takes it, or raise unless it fits this family."""
        if not isinstance(distance, self.distances):
            fix = f"Use {' or '.join(f'graphsnd.{known.__name__}()' for known in self.distances)}."
            if type(distance) is not Wasserstein and Wasserstein in self.distances:
                fix += " Probabilities are a graphsnd.Categorical, samples a graphsnd.Samples (draw_samples)."
                fix += " Policies that put out logits: outputs='logits'."
            raise InputError("distance", f"to fit a {type(self).__name__} behaviour", distance.name, fix)
        return distance

    @property
    def observations(self) -> int:
        """Number of observations."""
        return self.batch_shape.numel()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(agents={self.agents}, observations={self.observations})"

    def _repr_html_(self) -> str:
        from graphsnd.plots.notebook import behavior_html

        return behavior_html(self)


class Deterministic(Behavior):
    """Policies that put out one action, all on the same observations; also DiCo's distance between means.

    The 2-Wasserstein distance between point masses is the Euclidean distance between the actions.

    Args:
        actions: Shape ``[..., agents, actions]``, or a dict of one array ``[..., actions]`` per agent.
        validate: Check values (one host read on a GPU). Shapes are always checked.

    Example:
        >>> import torch
        >>> Deterministic(torch.zeros(8, 4, 3, 2))
        Deterministic(agents=3, observations=32)
        >>> Deterministic({"scout": torch.zeros(8, 2), "guard": torch.ones(8, 2)}).names
        ('scout', 'guard')
    """

    def __init__(self, actions: PerAgent, *, validate: bool = True) -> None:
        self.actions = read_agents("actions", actions, "(..., agents, actions)", finite=validate)
        super().__init__(self.actions.shape, actions)

    def embed(self, distance: Distance) -> Points:
        """Return the actions, under the Euclidean norm."""
        return Points(flatten(self.actions), Norm.EUCLIDEAN)


def as_distance(behavior: Any, distance: Any = None) -> Distance:
    """Return the default distance of a behaviour.

    Args:
        behavior: Behaviour of all agents.
        distance: A distance, its name, or None for the default: total variation for discrete actions, as in the paper's
            discrete panel, 2-Wasserstein otherwise.

    Raises:
        InputError: For another kind of behaviour or distance, and for a distance that does not fit the family.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Categorical(logits=torch.zeros(5, 3, 4))
        >>> as_distance(team), as_distance(team, "jensen_shannon")
        (TotalVariation(), JensenShannon())
    """
    if not isinstance(behavior, Behavior):
        fix = "Policies: graphsnd.evaluate(policies, observations). Wrap tensors in graphsnd.Gaussian, Categorical or "
        fix += "Deterministic, or use from_distribution."
        raise InputError("behavior", "to be a graphsnd behaviour", describe(behavior), fix)
    if distance is None:
        return behavior.distance
    if isinstance(distance, str):
        distance = distance_by_name(distance)
    if not isinstance(distance, Distance):
        fix = f"Names: {', '.join(DISTANCES)}. Of single parts: graphsnd.Joint(parts, distance={{...}})."
        raise InputError("distance", "to be a distance such as graphsnd.Hellinger()", describe(distance), fix)
    return behavior.accept(distance)


def distance_by_name(distance: str) -> Distance:
    """Return the distance with a name, such as ``"hellinger"``, or raise."""
    name = distance.lower().replace("_", "-")
    check_choice("distance", name, DISTANCES)
    return DISTANCES[name]


def embed(behavior: Behavior, distance: Distance | str | None = None, *, fewest: int = 2) -> Points:
    """Return a behaviour as points for a distance, its own default when None.

    Args:
        behavior: Behaviour of all agents.
        distance: A distance or its name, see ``as_distance``.
        fewest: Smallest number of agents: 1 for a part of a team.

    Raises:
        InputError: For anything that is not a behaviour, for a distance that does not fit, and for fewer agents.

    Example:
        >>> import torch, graphsnd as gs
        >>> embed(gs.Gaussian(torch.zeros(5, 3, 2), torch.ones(2))).parts[0].shape  # [observations, agents, features]
        torch.Size([5, 3, 2])
    """
    distance = as_distance(behavior, distance)
    if behavior.agents < fewest:
        expected = f"to have at least {fewest} {plural('agent', fewest)}"
        raise InputError("behavior", expected, behavior.agents, "Diversity needs a pair." if fewest == 2 else "")
    return behavior.embed(distance)


def read_agents(name: str, given: Any, layout: str, *, trailing: int = 1, finite: bool = False) -> torch.Tensor:
    """Return a tensor, an array or a dict of one per agent as a tensor, or raise unless it is floating and not empty.

    Args:
        name: Argument name for the message.
        given: Shape ``[..., agents, features]``, or arrays ``[..., features]`` by the agents' names.
        layout: The symbolic shape for the message.
        trailing: Dimensions after the agents axis.
        finite: Whether to check that all values are finite.
    """
    tensor = stack_agents(name, given, trailing=trailing) if isinstance(given, Mapping) else given
    fix = "The agents axis comes before the last one." if trailing == 1 else ""
    tensor = check_tensor(name, tensor, 1 + trailing, layout, fix=fix)
    if not tensor.is_floating_point():
        # Cast to float, indices of discrete actions would be compared as if action 3 were nearer to 2 than to 0.
        discrete = "For discrete actions pass their probabilities: graphsnd.Categorical(probs=...) or (logits=...)."
        fix = discrete if name == "actions" else f"Use {name}.float()."
        raise InputError(name, "to have a floating dtype", tensor.dtype, fix)
    if 0 in tensor.shape:
        raise InputError(name, f"with shape {layout} and no empty axis", shape_of(tensor))
    if finite:
        check_finite(name, tensor, names_of(given) if isinstance(given, Mapping) else None, -1 - trailing)
    return tensor


def check_names(names: Sequence[str], agents: int) -> None:
    """Raise unless there is one name for each agent, and all differ."""
    strings = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not strings or not agents == len(names) == len(set(names)):
        raise InputError("names", f"to be {agents} different strings, one for each agent", describe(names))


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
    if not isinstance(given, Mapping):
        return None
    names = tuple(map(str, given.keys()))
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
