"""Observations of several arrays, such as an image and a vector: one row of numbers each, and taken apart again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.errors import InputError, check_tensor, describe, shape_of
from graphsnd.teams.answers import unwrap


class Array:
    """One array of an observation.

    Args:
        shape: Shape of one observation; or its number of dimensions, where sizes and dtype are those of what is joined.
        dtype: Dtype of what policies are given; that of the row when None.
    """

    def __init__(self, shape: Sequence[int] | int, dtype: torch.dtype | None = None) -> None:
        self.dims = shape if isinstance(shape, int) else len(shape)
        self.shape = None if isinstance(shape, int) else tuple(shape)
        self.learned, self.dtype = self.shape is None, dtype

    @property
    def size(self) -> int:
        """Numbers in one observation."""
        return math.prod(self.shape or ())

    def fit(self, given: Any, name: str) -> Tensor:
        """Return an array as ``[..., *shape]``; images may have their channels last, as environments do."""
        sizes = ["size"] * self.dims if self.learned else map(str, self.shape or ())
        symbolic = f"({', '.join(['...', *sizes])})"
        tensor = check_tensor(name, given, self.dims, symbolic)
        last = tuple(tensor.shape[tensor.dim() - self.dims :])
        if self.learned:
            self.shape, self.dtype = last, tensor.dtype
        if last != self.shape and len(last) == 3 and (last[2], *last[:2]) == self.shape:
            return tensor.movedim(-1, -3)
        if last != self.shape:
            raise InputError(name, f"with shape {symbolic}", shape_of(tensor))
        return tensor

    def join(self, given: Any, name: str) -> Tensor:
        """Return an array as rows ``[..., size]``, of float32 or wider."""
        fitting = self.fit(given, name)
        rows = fitting.reshape(*fitting.shape[: fitting.dim() - self.dims], self.size)
        rows = rows.to(torch.promote_types(self.dtype or torch.float32, torch.float32))
        is_integer = self.dtype is not None and not self.dtype.is_floating_point
        if is_integer and not bool((self.split(rows) == fitting).all()):
            raise InputError(name, f"to be whole numbers, as in {self.dtype}, and exact in float32", "others")
        return rows

    def split(self, rows: Tensor) -> Tensor:
        """Return rows ``[..., size]`` as ``[..., *shape]``."""
        # Integers may be looked up in a table of embeddings, so they are not left as the floats of the row.
        return rows.reshape(*rows.shape[:-1], *self.shape or ()).to(self.dtype or rows.dtype)


class Arrays(dict[Any, "Array | Arrays"]):
    """Parts of an observation by name, or by place in a tuple; each may have parts of its own."""

    ordered = False  # whether policies are given a tuple

    @property
    def size(self) -> int:
        """Numbers in one observation."""
        return sum(each.size for each in self.values())

    def join(self, given: Any, name: str = "observations") -> Tensor:
        """Return observations as rows ``[..., size]``, the arrays in their order.

        Args:
            given: Arrays ``[..., *shape]`` by name, or in order.
            name: Argument name for messages.

        Raises:
            InputError: For other arrays, or arrays of other shapes.
        """
        held = dict(enumerate(given) if isinstance(given, tuple | list) else getattr(given, "items", dict)())
        if held.keys() != self.keys():
            got = ", ".join(map(repr, held)) or describe(given)
            raise InputError(name, f"with the arrays {', '.join(map(repr, self))}", got)
        rows = {key: each.join(held[key], f"{name}[{key!r}]") for key, each in self.items()}
        if len({row.shape[:-1] for row in rows.values()}) > 1:
            counts = ", ".join(f"{key!r} {tuple(row.shape[:-1])}" for key, row in rows.items())
            most = max(rows, key=lambda key: rows[key].dim())
            fix = f"Images: feature_dims={{{most!r}: 3, ...}}." if getattr(self[most], "learned", False) else ""
            raise InputError(name, "with equal leading dimensions in all arrays", counts, fix)
        return torch.cat(list(rows.values()), dim=-1)

    def split(self, rows: Tensor) -> Any:
        """Return rows ``[..., size]`` as arrays: the inverse of :meth:`join`."""
        pieces = rows.split([each.size for each in self.values()], dim=-1)
        split = {key: each.split(piece) for (key, each), piece in zip(self.items(), pieces, strict=True)}
        return tuple(split.values()) if self.ordered else split


class OnArrays(nn.Module):
    """A policy of several arrays that is given rows."""

    def __init__(self, policy: Any, arrays: Arrays) -> None:
        super().__init__()
        self.policy, self.arrays = policy, arrays

    def forward(self, rows: Tensor) -> Any:
        """Return the policy's answer."""
        return unwrap(self.policy)(self.arrays.split(rows))
