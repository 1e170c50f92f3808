"""The grammar of hostile values: numbers, texts, containers and tensors of the right and of the wrong kind."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import networkx
import numpy as np
import torch
from torch import Tensor

import graphsnd as gs


@dataclass(frozen=True)
class Value:
    """One argument: how it is written in a report, and how it is made."""

    text: str
    make: Callable[[], Any]


def _ring() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def _ring_dict() -> dict[str, Any]:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    return ring


class Liar:
    """Says that it is an array and a number, and is none."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.array([object()], dtype=object)

    def __len__(self) -> int:
        return 3

    def __repr__(self) -> str:
        return "Liar()"


def _values(*texts: str) -> list[Value]:
    names = {"gs": gs, "torch": torch, "np": np, "networkx": networkx, "Decimal": Decimal, "Fraction": Fraction}
    names |= {"math": math, "Liar": Liar, "ring": _ring, "ring_dict": _ring_dict}
    return [Value(text, lambda text=text: eval(text, dict(names))) for text in texts]


NUMBERS = _values(
    "0", "1", "2", "3", "-1", "-5", "2**31", "2**63 - 1", "2**63", "2**70", "10**20", "-2**70", "10**400", "0.0",
    "-0.0", "0.5", "1.0", "1.5", "-0.5", "1e-300", "1e-200", "1e200", "1e300", "-1e300", "5e-324", "1e16", "math.nan",
    "math.inf", "-math.inf", "True", "False", "1j", "complex(0, math.nan)", "Decimal('0.5')", "Decimal('NaN')",
    "Fraction(1, 3)", "Fraction(5)", "np.float64(0.5)", "np.float32(2)", "np.float16(0.1)", "np.int64(3)",
    "np.int8(-1)", "np.uint64(2**64 - 1)", "np.bool_(True)", "np.complex64(1j)", "np.float64('nan')",
    "np.longdouble(0.5)", "torch.tensor(0.5)", "torch.tensor(3)", "torch.tensor(-1.0)", "torch.tensor(math.nan)",
)  # fmt: skip
TEXTS = _values(
    "''", "'a'", "'0.5'", "'nan'", "'bernoulli:nan'", "'bernoulli:0'", "'bernoulli:-1'", "'uniform:1e9'", "'knn:0'",
    "'uniform:99999999999999999999'", "'agents:-3'", "'ring:7'", "'radius:inf'", "'matching:3'",
    "'complete:'", "':'", "'complete'", "'auto'", "'cpu'", "'cuda'", "'cuda:99'", "'meta'", "'cpu:x'", "'mps'",
    "'gpu'", "'reference'", "'\\x00'", "'\\ud800'", "'é' * 300", "'a' * 100_000", "b''", "b'cpu'", "bytearray(b'x')",
    "'1e999s'", "'-1s'", "'nane'", "'regular:3'", "'vmas:'", "'pettingzoo:x'", "'navigation'", "'../..'",
)  # fmt: skip
OBJECTS = _values(
    "None", "...", "NotImplemented", "object()", "object", "int", "len", "lambda *a, **k: None", "[]", "()", "{}",
    "set()", "[None]", "[1, 2, 3]", "[0, 0]", "(1,)", "['a', 'b', 'c', 'd']", "[[0, 1], [2, 3]]", "[[0, 1], [1]]",
    "[math.nan] * 4", "[10**20] * 4", "{'a': 1}", "{'a': None, 'b': None}", "{0: torch.zeros(3, 2)}",
    "{'a': torch.zeros(3, 2), 'b': torch.zeros(2, 3)}", "range(4)", "range(10**9)", "iter([1, 2])", "slice(None)",
    "slice('a', 'b')", "ring()", "ring_dict()", "Liar()", "np.random.default_rng(0)", "torch.Generator()",
    "[torch.Generator()]", "[torch.Generator()] * 2", "torch.nn.Linear(2, 2)", "torch.nn.Linear(3, 2)",
    "[torch.nn.Linear(2, 2)] * 4", "[torch.nn.Linear(2, 2), None]", "[lambda o: None] * 4", "[lambda o: 1 / 1] * 4",
    "[lambda o: o, lambda o: o[:1]]", "[lambda o: o * math.nan] * 4", "torch.float32", "torch.device('meta')",
    "torch.device('cuda', 5)", "torch.distributions.Normal(torch.zeros(3, 4, 2), 1.0)",
    "torch.distributions.Poisson(torch.ones(3, 4, 2))", "torch.distributions.Normal(0.0, 1.0)", "torch.Size([3, 4, 2])",
    "networkx.Graph()", "networkx.DiGraph([(0, 1)])", "networkx.MultiGraph([(0, 1)])", "networkx.path_graph(4)",
    "networkx.Graph([('a', 'b', {'weight': 1e-300}), ('b', 'c', {'weight': 1e-299})])",
    "networkx.Graph([(0, 1, {'weight': 'x'})])", "networkx.Graph([(0, 1, {'weight': math.nan})])",
    "networkx.Graph([(0, 1, {'weight': 2**70})])", "networkx.Graph([(0, 0)])",
)  # fmt: skip
GRAPHS = _values(
    "gs.graphs.complete(4)", "gs.graphs.complete(5)", "gs.graphs.complete(2)", "gs.graphs.bernoulli(4, 1e-9)",
    "gs.graphs.bernoulli(4, 0.5, seed=1)", "gs.graphs.uniform(4, 3)", "gs.graphs.random_regular(4, 3)",
    "gs.Graph(4, torch.zeros(0, 2, dtype=torch.long))", "gs.Graph(4, torch.tensor([[0, 1]]), torch.zeros(1))",
    "gs.Graph(4, torch.tensor([[0, 1], [2, 3]]), torch.tensor([1e-300, 1e300], dtype=torch.float64))",
    "gs.Graph(4, torch.tensor([[0, 1], [2, 3]]), torch.tensor([1, 2], dtype=torch.float16))",
    "gs.Graph(4, torch.tensor([[0, 1]]), inclusion=1e-300)", "gs.Graph(4, torch.tensor([[0, 1]]), inclusion=0.5)",
    "gs.Graph(4, torch.tensor([[0, 1]]), sampling='wild')", "gs.Graph(4, torch.tensor([[0, 1]]), family='')",
    "gs.Graph(4, torch.tensor([[0, 1]]), inclusion=0.5, sampling='wild')",
    "gs.Graph(4, torch.tensor([[0, 1]]), torch.ones(1, requires_grad=True))", "gs.Graph", "torch.eye(4)",
)  # fmt: skip
BEHAVIORS = _values(
    "gs.Deterministic(torch.zeros(3, 4, 2))", "gs.Deterministic(torch.randn(1, 2, 1))",
    "gs.Deterministic(torch.randn(3, 1, 2))", "gs.Deterministic(torch.randn(2, 3, 4, 2))",
    "gs.Deterministic(torch.randn(3, 4, 2).half())", "gs.Deterministic(torch.randn(3, 4, 2).bfloat16())",
    "gs.Deterministic(torch.randn(3, 4, 2) * 1e30)", "gs.Deterministic(torch.randn(3, 4, 2).double() * 1e200)",
    "gs.Deterministic(torch.randn(3, 4, 2).double() * 1e-200)", "gs.Deterministic(torch.randn(3, 4, 2) * 1e-30)",
    "gs.Deterministic(torch.randn(3, 4, 2, requires_grad=True))",
    "gs.Deterministic(torch.randn(1, 4, 2).expand(3, 4, 2))",
    "gs.Deterministic(torch.full((3, 4, 2), math.nan), validate=False)",
    "gs.Gaussian(torch.randn(3, 4, 2), torch.ones(2))",
    "gs.Gaussian(torch.randn(3, 4, 2), torch.zeros(2))", "gs.Gaussian(torch.randn(3, 4, 2), torch.full((2,), 1e30))",
    "gs.MultivariateGaussian(torch.randn(3, 4, 2), torch.eye(2))", "gs.Quantiles(torch.randn(3, 4, 2, 5).sort(-1)[0])",
    "gs.MultivariateGaussian(torch.randn(3, 4, 2), torch.eye(2) * 1e30)",
    "gs.Samples(torch.randn(3, 4, 1, 2))", "gs.Samples(torch.randn(3, 4, 5, 2) * 1e30)",
    "gs.MultivariateGaussian(torch.randn(3, 4, 2).double(), torch.eye(2).double() * 1e-200)",
    "gs.Categorical(logits=torch.randn(3, 4, 5))", "gs.Categorical(logits=torch.randn(3, 4, 5) * 1e30)",
    "gs.Categorical(probs=torch.softmax(8 * torch.randn(3, 4, 9), -1).half())",
    "gs.Categorical(probs=torch.softmax(8 * torch.randn(3, 4, 9), -1).bfloat16())",
    "gs.Categorical(probs=torch.eye(4).expand(3, 4, 4))", "gs.Categorical(probs=torch.ones(3, 4, 1))",
    "gs.Deterministic({'a': torch.randn(3, 2), 'b': torch.randn(3, 2), 'c': torch.randn(3, 2), 'd': torch.ones(3, 2)})",
)  # fmt: skip
DISTANCES = _values(
    "gs.Wasserstein()", "gs.TotalVariation()", "gs.Hellinger()", "gs.JensenShannon()", "gs.Wasserstein",
    "gs.Sliced(debias=True)",
)  # fmt: skip
EVERYTHING = [*NUMBERS, *TEXTS, *OBJECTS, *GRAPHS, *BEHAVIORS, *DISTANCES]


def _stamp(number: float) -> Callable[[Tensor], Tensor]:
    def change(good: Tensor) -> Tensor:
        wide = good.double() if abs(number) > 1e38 or 0 < abs(number) < 1e-38 else good
        changed = (wide if wide.is_floating_point() else wide.float()).clone()
        changed.view(-1)[:1] = number
        return changed

    return change


def _times(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda good: (good.double() if abs(math.log10(factor)) > 35 else good.float()) * factor


# Changes of a good tensor: the dtype, the layout, the memory, the shape, the values.
TENSORS: dict[str, Callable[[Tensor], Any]] = {
    **{str(dtype): lambda good, dtype=dtype: good.to(dtype) for dtype in (
        torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int64, torch.int8, torch.uint8, torch.bool,
        torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2,
    )},
    "sparse": lambda good: good.to_sparse(),
    "sparse_csr": lambda good: (good if good.dim() == 2 else good.reshape(-1, 1)).to_sparse_csr(),
    "meta": lambda good: good.to("meta"),
    "quantised": lambda good: torch.quantize_per_tensor(good.float(), 0.1, 0, torch.qint8),
    "requires_grad": lambda good: (good if good.is_floating_point() else good.float()).clone().requires_grad_(),
    "strided": lambda good: torch.stack([good, good], -1)[..., 0],
    "reversed numpy": lambda good: good.numpy()[::-1],
    "big-endian numpy": lambda good: good.numpy().astype(good.numpy().dtype.newbyteorder(">")),
    "read-only numpy": lambda good: np.broadcast_to(good.numpy(), good.shape),
    "numpy objects": lambda good: good.numpy().astype(object),
    "numpy texts": lambda good: good.numpy().astype(str),
    "numpy dates": lambda good: good.long().numpy().astype("datetime64[s]"),
    "masked numpy": lambda good: np.ma.masked_array(good.numpy(), good.numpy() > 0),
    "list": lambda good: good.tolist(),
    "permuted": lambda good: good.permute(*reversed(range(good.dim()))),
    "expanded": lambda good: good.reshape(-1)[:1].expand(good.shape) if good.numel() else good,
    "huge expanded": lambda good: good.reshape(-1)[:1].expand(2**40) if good.numel() else good,
    "huge last axis": lambda good: good[..., :1].expand(*good.shape[:-1], 2**40) if good.dim() else good,
    "huge first axis": lambda good: good[:1].expand(2**40, *good.shape[1:]) if good.dim() else good,
    "flat": lambda good: good.flatten(),
    "0-d": lambda good: good.flatten().sum(),
    "one more axis": lambda good: good.unsqueeze(0),
    "two more axes": lambda good: good.unsqueeze(-1).unsqueeze(0),
    "one axis less": lambda good: good[0] if good.dim() and len(good) else good,
    "cut first axis": lambda good: good[:1] if good.dim() else good,
    "cut last axis": lambda good: good[..., :1] if good.dim() else good,
    "empty last axis": lambda good: good[..., :0] if good.dim() else good,
    "empty first axis": lambda good: good[:0] if good.dim() else good,
    "empty": lambda good: torch.empty(0, dtype=good.dtype),
    "doubled": lambda good: torch.cat([good, good]) if good.dim() else good,
    "zeros": lambda good: torch.zeros_like(good),
    "negative": lambda good: -good if good.dtype != torch.bool else good,
    "NaN": _stamp(math.nan), "inf": _stamp(math.inf), "-inf": _stamp(-math.inf),
    "a -1": lambda good: good.index_fill(0, torch.tensor([0]), -1) if good.dim() and len(good) else good,
    "a 2**62": lambda good: good.long().index_fill(0, torch.tensor([0]), 2**62) if good.dim() and len(good) else good,
    "a 1e30": _stamp(1e30), "a 1e200": _stamp(1e200), "a 1e-200": _stamp(1e-200),
    "times 1e30": _times(1e30), "times 1e-30": _times(1e-30), "times 1e200": _times(1e200),
    "times 1e-200": _times(1e-200), "times 1e300": _times(1e300), "times 1e-300": _times(1e-300),
    "nested": lambda good: torch.nested.nested_tensor([good.float(), good.float()]),
    "parameter": lambda good: torch.nn.Parameter(good.float()),
    "conjugate": lambda good: torch.complex(good.double(), good.double()).conj(),
}  # fmt: skip


def hostile(rng: random.Random, good: Any, annotation: str) -> Value:
    """Draw a value to replace ``good``: of its kind two times of three, of any kind otherwise."""
    near: list[Value] = []
    if isinstance(good, Tensor):
        near = [Value(f"good.{name}", lambda change=change: change(good)) for name, change in TENSORS.items()]
    elif isinstance(good, gs.Graph) or "Graph" in annotation:
        near = GRAPHS
    elif isinstance(good, gs.Behavior) or "Behavior" in annotation:
        near = BEHAVIORS
    elif isinstance(good, gs.Distance) or "Distance" in annotation:
        near = DISTANCES
    elif isinstance(good, str):
        near = TEXTS
    elif isinstance(good, bool | int | float) or "int" in annotation or "float" in annotation:
        near = NUMBERS
    elif isinstance(good, list | tuple) and good:
        near = _changed_sequences(rng, good, annotation)
    elif isinstance(good, dict) and good:
        near = _changed_dicts(rng, good)
    return rng.choice(near if near and rng.random() < 2 / 3 else EVERYTHING)


def _changed_sequences(rng: random.Random, good: Any, annotation: str) -> list[Value]:
    """Return the sequence with one element replaced, repeated, dropped; a tensor where it holds numbers."""
    at, kind = rng.randrange(len(good)), type(good)
    inner = hostile(rng, good[at], annotation)
    values = [
        Value(f"good with {inner.text} at {at}", lambda: kind([*good[:at], inner.make(), *good[at + 1 :]])),
        Value("good twice", lambda: kind([*good, *good])),
        Value("good without its first", lambda: kind(good[1:])),
    ]
    return [values[0], *values]


def _changed_dicts(rng: random.Random, good: dict[Any, Any]) -> list[Value]:
    key = rng.choice(sorted(good, key=str))
    inner = hostile(rng, good[key], "")
    replaced = Value(f"good with {inner.text} for {key!r}", lambda: {**good, key: inner.make()})
    less = Value(f"good without {key!r}", lambda: {name: value for name, value in good.items() if name != key})
    return [replaced, replaced, replaced, less, Value("good and 'x'", lambda: {**good, "x": 1})]
