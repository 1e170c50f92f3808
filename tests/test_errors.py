from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.errors import MissingExtraError, as_tensor, check_tensor, require
from graphsnd.teams import as_team


def test_a_missing_package_is_named_as_pip_names_it() -> None:
    with pytest.raises(MissingExtraError, match=r"`no_such_package`.*pip install no-such$") as error:
        require("no_such_package", "no-such")
    assert isinstance(error.value, ImportError)


class ThroughDlpack:
    """An array as JAX's and CuPy's."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class ThroughArray:
    """An array as pandas'."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.array


WAYS = {"numpy": np.asarray, "dlpack": ThroughDlpack, "array": ThroughArray}


@pytest.mark.parametrize("way", list(WAYS))
def test_arrays_share_their_memory(way: str) -> None:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    tensor = as_tensor(WAYS[way](array))
    assert tensor.dtype == torch.float32
    array[1, 2] = 9
    assert float(tensor[1, 2]) == 9


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_shared_is_copied_and_the_rest_left_alone() -> None:
    array = np.arange(6.0)
    assert as_tensor(array[::-1]).tolist() == array[::-1].tolist()
    assert as_tensor(array.astype(">f8")).tolist() == array.tolist()
    array.flags.writeable = False
    assert as_tensor(array).data_ptr() == array.ctypes.data
    for other in ([1.0], "text", None, np.array(["a"])):
        assert as_tensor(other) is other


@pytest.mark.parametrize("way", list(WAYS))
def test_arrays_measure_as_tensors_do(way: str) -> None:
    rng, foreign = np.random.default_rng(0), WAYS[way]
    loc, observations = rng.normal(size=(20, 5, 2)), rng.normal(size=(30, 2))
    scale, covariance, mask = rng.uniform(1, 2, size=(20, 5, 2)), np.eye(2), np.array([True, False, True])
    logits, weights = rng.normal(size=(20, 5, 3)), rng.normal(size=(5, 2))
    quantiles = np.sort(rng.normal(size=(20, 5, 2, 8)))
    agents, labels = rng.integers(5, size=(30, 2)), np.arange(30) // 10
    policies = [lambda o, w=w: o * torch.from_numpy(w) for w in weights]

    def results(read):  # type: ignore[no-untyped-def]
        yield gs.snd(gs.Deterministic(read(loc)))
        yield gs.snd(gs.Gaussian(read(loc), read(scale)))
        yield gs.snd(gs.Gaussian(read(loc), np.float32(0.5)))
        yield gs.snd(gs.MultivariateGaussian(read(loc), read(covariance)))
        yield gs.snd(gs.Quantiles(read(quantiles)))
        yield gs.snd(gs.Categorical(logits=read(logits), mask=read(mask)))
        yield gs.snd(gs.evaluate(policies, read(observations)))
        yield gs.snd(gs.evaluate([lambda o, w=w: read(o.numpy() * w) for w in weights], read(observations)))
        yield gs.measure(policies, read(observations), clusters=read(labels)).observation_error
        yield gs.measure(policies, read(observations), design="knn:2", positions=read(weights)).value
        yield as_team(policies).partial(read(observations), read(agents)).actions
        yield gs.graphs.radius(read(weights), 1.0).edges
        yield gs.graph_snd(gs.Deterministic(read(loc)), gs.Graph(5, read(np.array([[0, 1], [2, 3]])), read(np.ones(2))))
        yield gs.graphs.from_adjacency(read(1 - np.eye(3))).weights

    for got, expected in zip(results(foreign), results(torch.from_numpy), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)


@pytest.mark.parametrize("bad", [np.array(["a"]), np.ones(3, dtype=complex), np.array([1, None], dtype=object)])
def test_arrays_of_no_real_numbers_say_what_they_hold(bad: np.ndarray) -> None:
    with pytest.raises(gs.InputError, match=r"of real numbers, got array\(.* of type ndarray.*x.astype\('float32'\)"):
        check_tensor("x", bad, 1, "(n,)")
