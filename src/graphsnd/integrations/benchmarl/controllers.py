"""Between the framework-free controllers of :mod:`graphsnd.control` and what BenchMARL can store."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.control import (
    Bootstrap,
    Controller,
    DiCo,
    Homogeneous,
    Measurement,
    PerGroup,
    Scheduled,
    State,
    Unconstrained,
    measure_selected,
)
from graphsnd.designs import Complete, Design, parse
from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl.policy import Deviating


def make_controller(
    target: float | None, design: str, *, tau: float, bootstrap: str, bounds: tuple[float, float]
) -> Controller:
    """The controller that plain values describe.

    Args:
        target: DiCo for a positive one, :class:`Homogeneous` for 0, :class:`Unconstrained` for None.
        design: As :func:`graphsnd.designs.parse` reads it.
        tau: Weight of a new measurement.
        bootstrap: ``"measured"`` or ``"target"``.
        bounds: Least and largest scale.

    Raises:
        InputError: For values out of range.

    Example:
        >>> make_controller(0.0, "complete", tau=0.01, bootstrap="measured", bounds=(0.001, 1000.0))
        Homogeneous(design=Complete())
    """
    first = {each.value: each for each in Bootstrap}
    if bootstrap not in first:
        raise InputError("bootstrap", f"to be one of {', '.join(first)}", repr(bootstrap))
    chosen = parse(design)
    if target is None:
        return Unconstrained(chosen)
    if target == 0:
        return Homogeneous(chosen)
    return DiCo(target, tau=tau, bootstrap=first[bootstrap], bounds=bounds, design=chosen)


def pack(state: State) -> Tensor:
    """A state as one float64 tensor ``[fields, ...]``: averages of target networks, and Adam, take no other kind.

    Example:
        >>> pack(State.start()).shape, unpack(pack(State.start())).begun
        (torch.Size([4]), tensor(False))
    """
    return torch.stack([part.double() for part in state.tensors().values()])


def unpack(memory: Tensor) -> State:
    """The state that :func:`pack` wrote."""
    start = State.start(memory.shape[1:]).tensors()
    rows = zip(start.items(), memory, strict=True)
    return State.of({name: row.to(part.dtype) for (name, part), row in rows})


def design_of(controller: Controller) -> Design:
    """Return which pairs a controller measures; all pairs where it does not say."""
    inner = controller.controller if isinstance(controller, Scheduled) else controller
    return getattr(inner, "design", Complete())


def measure(
    controller: Controller,
    network: Deviating,
    observations: Tensor,
    generator: torch.Generator,
    *,
    scale: Tensor,
    positions: Tensor | None = None,
) -> Measurement:
    """The diversity that a controller asks for, of agents that its design selects and no others.

    Args:
        controller: Bare deviations for DiCo, scaled ones for controllers of the applied diversity.
        network: The policies.
        observations: ``[observations, inputs]``.
        generator: For random pairs; on the CPU.
        scale: As it stands, ``[]`` or ``[agents]``.
        positions: ``[observations, agents, d]``, for designs that need positions.
    """

    def values(agents: Tensor | None) -> Tensor:
        found = network.deviations_at(observations, agents)
        if not controller.applied:
            return found
        every = scale.to(found).expand(network.agents)
        return found * (every if agents is None else every[agents.to(every.device)]).unsqueeze(-1)

    if isinstance(controller, PerGroup):
        return controller.measure(values(None), generator)
    selection = design_of(controller).select(
        len(observations), network.agents, generator, device=observations.device, positions=positions
    )
    found = measure_selected([selection], values(selection.agents).unsqueeze(0))
    return Measurement(found.value[0], found.pairs[0], found.empty[0])
