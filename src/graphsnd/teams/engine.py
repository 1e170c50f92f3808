"""How stacked networks are run: the plain-torch reference. A faster engine does the same with other programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

# Each at most 3/2 of the one before (2 after 1, which wastes nothing: a count of 2 is a width): padding adds at most a
# third to a batch where powers of two would double it.
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
NARROW = 8  # outputs below which a CPU multiplies columns faster than rows


def tanh_(inputs: Tensor) -> Tensor:
    """Return the hyperbolic tangent, in place.

    In single precision on a CPU it is 1 / (1 + 2 / expm1(2x)), two thirds of the time of torch's tanh, and within 4e-7,
    relative. The faster 2 sigmoid(2x) - 1 is off by 1e-7 near 0 too, which takes two digits or so from the SND of
    agents with small weights that hardly differ.

    Example:
        >>> tanh_(torch.tensor([0.0, 9.5]))
        tensor([0., 1.])
    """
    if inputs.device.type != "cpu" or inputs.dtype != torch.float32:
        return torch.tanh_(inputs)
    return _Tanh.apply(inputs) if inputs.requires_grad else _tanh_by_expm1_(inputs)


def _tanh_by_expm1_(inputs: Tensor) -> Tensor:
    return inputs.mul_(2).expm1_().reciprocal_().mul_(2).add_(1).reciprocal_()


class _Tanh(torch.autograd.Function):
    """Use tanh's own gradient: the gradient of the steps would take six passes over memory instead of one."""

    @staticmethod
    def forward(inputs: Tensor) -> Tensor:
        return _tanh_by_expm1_(inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.mark_dirty(*inputs)
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return torch.ops.aten.tanh_backward(gradient, *ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, dims: tuple[int], inputs: Tensor) -> tuple[Tensor, int]:
        return _Tanh.apply(inputs), dims[0]


Tensors = Sequence[Tensor]  # one for each layer
# In place: no layer needs what stood there before.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": tanh_, "relu": torch.relu_}
MAX_ACTIVATIONS = 2**26  # floats of the widest layer held at once
CACHED_ACTIVATIONS = 2**21  # on a CPU, whose caches they then stay in: up to twice as fast
# Bytes of gathered weights held at once. On a CPU a few megabytes are still in the cache when the product reads them,
# and the allocator hands the same block out again; at 256 MB a call takes twice as long. A GPU wants few launches.
MAX_GATHERED = {"cpu": 2**22, "cuda": 2**28}
DENSE = 8  # requests per network, on average, above which all networks run, each on the same number of rows


class Engine:
    """Plain torch, in the precision of the weights. Weights are ``[networks, in, out]``, biases ``[networks, 1, out]``.

    Example:
        >>> weights, biases = [torch.eye(2).expand(3, 2, 2)], [torch.zeros(3, 1, 2)]
        >>> Engine().run_all(torch.ones(1, 4, 2), weights, biases, "tanh").shape
        torch.Size([3, 4, 2])
    """

    fused: ClassVar[bool] = False  # whether it is made of Triton programs, so that fused losses may follow

    def prepare(self, inputs: Tensor) -> Tensor:
        """Return inputs in the form that is read fastest; worth it for those that are read several times."""
        return inputs

    def take_rows(self, inputs: Tensor, index: Tensor) -> Tensor:
        """Return the same rows of all agents, from prepared inputs.

        Args:
            inputs: ``[runs, agents, rows, in]``.
            index: int64 ``[runs, taken]``.

        Returns:
            ``[runs, agents, taken, in]``.
        """
        return take_rows(inputs, index)

    def run_all(self, inputs: Tensor, weights: Tensors, biases: Tensors, activation: str) -> Tensor:
        """Run all networks.

        Args:
            inputs: ``[g, rows, in]``; g divides the number of networks, and ``networks / g`` consecutive networks read
                the same rows.
            weights: Weights of each layer.
            biases: Biases of each layer.
            activation: After every layer but the last.

        Returns:
            ``[networks, rows, out]``.
        """
        networks = len(weights[0])
        if len(inputs) < networks:
            inputs = inputs.unsqueeze(1).expand(-1, networks // len(inputs), -1, -1).reshape(-1, *inputs.shape[1:])
        return run_layers(inputs, weights, biases, activation)

    def run_requests(
        self, inputs: Tensor, networks: Tensor, rows: Tensor, weights: Tensors, biases: Tensors, activation: str
    ) -> Tensor:
        """Run one network on one row per request; nothing else is evaluated.

        Args:
            inputs: ``[rows, in]``.
            networks: int64 ``[requests]``, on the inputs' device or the CPU; the number of networks for a request that
                is left out, and answered with 0.
            rows: int64 ``[requests]``, the input of each, on the same device as ``networks``.
            weights: Weights of each layer.
            biases: Biases of each layer.
            activation: After every layer but the last.

        Returns:
            ``[requests, out]``.
        """
        count, device = len(weights[0]), inputs.device
        kept = (networks < count).nonzero().squeeze(1)
        asked, wanted = networks[kept], rows[kept]
        out = biases[-1].new_zeros(len(networks), biases[-1].shape[-1])
        if not len(kept):
            return out
        if len(asked) >= DENSE * count:
            table, slots = group_by_network(asked, count)
            answers = run_layers(inputs[wanted[table].to(device)], weights, biases, activation).flatten(0, 1)
            outputs = answers.index_select(0, slots.to(device))
        else:
            outputs = run_gathered(inputs, asked, wanted, weights, biases, activation)
        return outputs if len(kept) == len(networks) else out.index_copy(0, kept.to(device), outputs)


def activations_on(device: torch.device) -> int:
    """Return how many floats of the widest layer to hold at once where all networks get the same observations."""
    return CACHED_ACTIVATIONS if device.type == "cpu" else MAX_ACTIVATIONS


def copy_without_waiting(part: Tensor, device: torch.device) -> Tensor:
    """Copy to a GPU from pinned memory, which does not wait for the device."""
    return part.pin_memory().to(device, non_blocking=True) if device.type == "cuda" and not part.is_cuda else part


def take_rows(part: Tensor, index: Tensor) -> Tensor:
    """Return rows int64 ``[runs, taken]`` of ``[runs, agents, rows, ...]``, the same rows of all agents."""
    runs, agents, rows = part.shape[:3]
    first = torch.arange(runs * agents, device=index.device).view(runs, agents, 1) * rows
    chosen = (first + index.unsqueeze(1)).view(-1)
    return part.flatten(0, 2).index_select(0, chosen).unflatten(0, (runs, agents, index.shape[1]))


def run_layers(inputs: Tensor, weights: Tensors, biases: Tensors, activation: str) -> Tensor:
    """Run ``[m, rows, in]`` through ``[m, in, out]`` weights and ``[m, 1, out]`` biases, layer by layer."""
    hidden = inputs
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        hidden = ACTIVATIONS[activation](torch.baddbmm(bias, hidden, weight))
    weight, bias = weights[-1], biases[-1]
    if hidden.device.type == "cpu" and weight.shape[-1] < NARROW:
        return torch.baddbmm(bias.mT, weight.mT.contiguous(), hidden.mT).mT
    return torch.baddbmm(bias, hidden, weight)


def run_gathered(
    inputs: Tensor, networks: Tensor, rows: Tensor, weights: Tensors, biases: Tensors, activation: str
) -> Tensor:
    """Do the same as :meth:`Engine.run_requests`, for at least one request and none left out, with gathered weights.

    Copies are made of the weights that are asked for; others are not touched.
    """
    (pieces, slots), device, every = split_requests(networks), inputs.device, (*weights, *biases)
    batches = [batch for each in pieces for batch in _split(*each, weights)]
    chosen, depth, answers = [owners.to(device) for owners, _ in batches], len(weights), []
    gathered: Iterable[tuple[Tensor, ...]]
    if torch.is_grad_enabled() and any(each.requires_grad for each in every):
        # The graph keeps all gathered weights anyway, and each gather would have a gradient as large as all weights.
        index, sizes = torch.cat(chosen), [len(part) for part in chosen]
        gathered = zip(*(each.index_select(0, index).split(sizes) for each in every), strict=True)
    else:
        gathered = (tuple(each.index_select(0, part) for each in every) for part in chosen)
    for (_, requests), own in zip(batches, gathered, strict=True):
        shown = inputs[rows[requests].to(device)]
        answers.append(run_layers(shown, own[:depth], own[depth:], activation).flatten(0, 1))
    return torch.cat(answers).index_select(0, slots.to(device))


def split_requests(networks: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """Return requests in batches with equally many for each network, so that few products serve any pattern of them.

    Sorted by network, the requests of one network are a run. Runs are cut into pieces of at most 64, and pieces of
    nearly equal length are padded to one width with their last request, whose extra answers are not read.

    Args:
        networks: int64 ``[requests]``, at least one: the network that each request is for.

    Returns:
        For each width the networks of its pieces, ``[pieces]``, and their requests, ``[pieces, width]``; and where the
        answer to each request is, counting through all of these, ``[requests]``.

    Example:
        >>> [tuple(requests.shape) for _, requests in split_requests(torch.tensor([2, 0, 2, 5]))[0]]
        [(2, 1), (1, 2)]
    """
    (ordered, order), count = networks.sort(stable=True), partial(torch.arange, device=networks.device)
    distinct, counts = torch.unique_consecutive(ordered, return_counts=True)
    pieces = (counts + WIDTHS[-1] - 1) // WIDTHS[-1]
    owner = torch.repeat_interleave(count(len(pieces)), pieces)
    before = (count(len(owner)) - (pieces.cumsum(0) - pieces)[owner]) * WIDTHS[-1]  # requests of the network
    starts = (counts.cumsum(0) - counts)[owner] + before
    lengths = (counts[owner] - before).clamp_max(WIDTHS[-1])
    widths = torch.tensor(WIDTHS, device=networks.device)
    level = torch.searchsorted(widths, lengths)
    by_level = level.argsort(stable=True)
    padded = widths[level]
    base = torch.empty_like(padded)
    base[by_level] = padded[by_level].cumsum(0) - padded[by_level]
    # The places of piece after piece are 0, 1, 2, ...: each lies as far into its piece's rows as into the piece.
    slots = torch.empty_like(order)
    slots[order] = torch.repeat_interleave(base - starts, lengths) + count(len(order))
    batches = []
    for width, own in zip(WIDTHS, by_level.split(torch.bincount(level, minlength=len(WIDTHS)).tolist()), strict=True):
        if len(own):
            places = starts[own, None] + count(width).minimum(lengths[own, None] - 1)
            batches.append((distinct[owner[own]], order[places]))
    return batches, slots


def _split(owners: Tensor, requests: Tensor, weights: Sequence[Tensor]) -> Iterable[tuple[Tensor, Tensor]]:
    """Return a batch in pieces, each of which is evaluated at once."""
    held = sum(math.prod(weight.shape[1:]) for weight in weights) * weights[0].element_size()
    by_weights = MAX_GATHERED.get(weights[0].device.type, 2**28) // held
    rows = MAX_ACTIVATIONS // max(size for weight in weights for size in weight.shape[1:])
    most = max(1, min(by_weights, rows // requests.shape[1]))
    return zip(owners.split(most), requests.split(most), strict=True)


def group_by_network(networks: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return requests as a table with a row for every network, so that no weights are gathered.

    Args:
        networks: int64, any shape, which network each request is for.
        count: Number of networks.

    Returns:
        The table, int64 ``[count, longest]`` of requests, filled up with the first one; and where in it, counting row
        by row, each request is.

    Example:
        >>> group_by_network(torch.tensor([1, 0, 1]), 2)
        (tensor([[1, 0],
                [0, 2]]), tensor([2, 0, 3]))
    """
    ordered, order = networks.flatten().sort(stable=True)
    counts = torch.bincount(ordered, minlength=count)
    longest = int(counts.max())
    places = torch.arange(len(order), device=order.device) + (ordered * longest - (counts.cumsum(0) - counts)[ordered])
    table = torch.zeros(count * longest, dtype=torch.int64, device=order.device).index_copy_(0, places, order)
    slots = torch.empty_like(order).index_copy_(0, order, places)
    return table.view(count, longest), slots


PLAIN = Engine()
