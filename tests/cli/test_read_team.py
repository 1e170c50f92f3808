from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import graphsnd as gs
from graphsnd.cli.read_team import read_team


class Bomb:
    """Unpickling this touches a file."""

    def __init__(self, sentinel: Path) -> None:
        self.sentinel = sentinel

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.sentinel),)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pt", ".pth", ".NPZ"])
def test_formats_hold_the_same_team(suffix: str, tensors: dict[str, torch.Tensor], tmp_path: Path) -> None:
    path = tmp_path / f"team{suffix}"
    if suffix.lower() == ".npz":
        with path.open("wb") as file:
            np.savez(file, **{key: value.numpy() for key, value in tensors.items()})
    elif suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    team = read_team(path)
    assert isinstance(team.team, gs.Gaussian)
    assert torch.equal(team.team.loc, tensors["loc"])
    assert torch.equal(team.team.scale, tensors["scale"])
    assert team.positions is not None
    assert torch.equal(team.positions, tensors["positions"])


def test_families(save: Callable[..., Path]) -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(4), size=(5, 3))
    mask = np.array([True, True, True, False])
    loc = np.zeros((5, 3, 2))
    assert isinstance(read_team(save(probs=probs)).team, gs.Categorical)
    masked = read_team(save(logits=np.log(probs), mask=mask)).team
    assert isinstance(masked, gs.Categorical)
    assert float(masked.probs[..., 3].abs().max()) == 0
    assert isinstance(read_team(save(loc=loc, covariance=np.eye(2))).team, gs.MultivariateGaussian)
    assert isinstance(read_team(save(actions=loc)).team, gs.Deterministic)


@pytest.mark.parametrize("dtype", ["float16", ">f4", ">f8"])
def test_numpy_dtypes_that_torch_does_not_know(dtype: str, save: Callable[..., Path]) -> None:
    actions = np.arange(12.0).reshape(2, 3, 2)
    behavior = read_team(save(actions=actions.astype(dtype))).team
    assert float(gs.snd(behavior)) == pytest.approx(float(gs.snd(gs.Deterministic(torch.from_numpy(actions)))))


def test_other_keys_are_ignored_even_if_they_are_pickled(save: Callable[..., Path], tmp_path: Path) -> None:
    path = save(actions=np.zeros((5, 3, 2)), notes=np.array([Bomb(tmp_path / "boom")], dtype=object))
    assert read_team(path).team.agents == 3
    assert not (tmp_path / "boom").exists()


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({}, "none of these keys.*--policy"),
        ({"loc": np.zeros((5, 3, 2))}, "to hold .*, got loc"),
        ({"behaviour": np.zeros((5, 3, 2))}, "none of these keys"),
        ({"loc": np.zeros((5, 3, 2)), "scale": np.ones(2), "covariance": np.eye(2)}, "only one of"),
        ({"probs": np.ones((5, 3, 1)), "actions": np.zeros((5, 3, 2))}, "only one of"),
        ({"actions": np.zeros((5, 3, 2)), "mask": np.ones(2)}, "`mask` only together with `logits`"),
        ({"actions": np.array([["a", "b"]])}, "`actions` to be a dense tensor of real numbers"),
        ({"actions": np.zeros((5, 3, 2), dtype=complex)}, "`actions` to be a dense tensor of real numbers"),
    ],
)
def test_wrong_contents(arrays: dict[str, Any], match: str, save: Callable[..., Path]) -> None:
    with pytest.raises(gs.InputError, match=match):
        read_team(save(**arrays))


PICKLED: dict[str, Callable[[Path, Bomb], Any]] = {
    "array.npz": lambda path, bomb: np.savez(path, loc=np.array([bomb], dtype=object), scale=np.ones(2)),
    "tensor.pt": lambda path, bomb: torch.save({"loc": bomb}, path),
    "beside.pt": lambda path, bomb: torch.save({"actions": torch.zeros(5, 3, 2), "notes": bomb}, path),
    "legacy.pt": lambda path, bomb: torch.save({"loc": bomb}, path, _use_new_zipfile_serialization=False),
    "plain.npz": lambda path, bomb: path.write_bytes(pickle.dumps({"loc": bomb})),
    "plain.safetensors": lambda path, bomb: path.write_bytes(pickle.dumps({"loc": bomb})),
}


@pytest.mark.parametrize("name", PICKLED)
def test_pickled_objects_are_refused_and_do_not_run(name: str, tmp_path: Path) -> None:
    PICKLED[name](tmp_path / name, Bomb(tmp_path / "boom"))
    match = "Pickled objects are never loaded" if name in ("array.npz", "tensor.pt", "beside.pt") else "`path`"
    with pytest.raises(gs.InputError, match=match):
        read_team(tmp_path / name)
    assert not (tmp_path / "boom").exists()


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(gs.InputError, match="no file"):
        read_team(tmp_path / "none.npz")
    with pytest.raises(gs.InputError, match=r"to end in \.npz, \.safetensors or \.pt"):
        read_team(tmp_path / "team.pkl")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(gs.InputError, match=r"a folder with team\.json"):
        read_team(tmp_path / "folder.npz")


def test_pt_must_be_a_dict_of_tensors(tmp_path: Path) -> None:
    path = tmp_path / "team.pt"
    torch.save(torch.zeros(3), path)
    with pytest.raises(gs.InputError, match="a dict of tensors"):
        read_team(path)
    torch.save({"actions": [1.0, 2.0]}, path)
    with pytest.raises(gs.InputError, match=r"`actions` to be a dense tensor of real numbers, got .* of type list"):
        read_team(path)


def test_npz_must_be_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "team.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros((5, 3, 2)))
    with pytest.raises(gs.InputError, match="a single array"):
        read_team(path)


def _views() -> dict[str, torch.Tensor]:
    base = torch.randn(6, 5, 4, generator=torch.Generator().manual_seed(0))
    return {
        "whole": base,
        "transposed": base.transpose(0, 2),
        "part of a storage": base[1:, ::2, 1:3],
        "expanded": base[:1].expand(6, 5, 4),
        "parameter": torch.nn.Parameter(base),
        "gradient": base.clone().requires_grad_(),
        **{str(dtype): base.to(dtype) for dtype in (torch.float64, torch.float16, torch.bfloat16)},
    }


@pytest.mark.parametrize("view", _views())
@pytest.mark.parametrize("ordered", [False, True])
def test_pt_is_read_as_torch_reads_it(view: str, ordered: bool, tmp_path: Path) -> None:
    path, tensor = tmp_path / "team.pt", _views()[view]
    held = {"actions": tensor, "positions": torch.arange(10).reshape(5, 2), "epoch": 3, "config": {"a": [tensor]}}
    torch.save(torch.nn.Linear(2, 2).state_dict() | held if ordered else held, path)
    team, expected = read_team(path), torch.load(path, weights_only=True)
    assert isinstance(team.team, gs.Deterministic)
    assert team.positions is not None
    assert torch.equal(team.team.actions, expected["actions"])
    assert team.team.actions.dtype == expected["actions"].dtype
    assert torch.equal(team.positions, expected["positions"])


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_a_file_that_would_take_too_much_memory_is_refused(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"team{suffix}"
    if suffix == ".npz":
        np.savez_compressed(path, actions=np.zeros((50, 5, 4)))
    else:
        torch.save({"actions": torch.zeros(1).expand(50, 5, 8)}, path)
    monkeypatch.setattr("graphsnd.teams.files.MAX_BYTES", 7999)
    with pytest.raises(gs.InputError, match="to fit in 7,999 bytes"):
        read_team(path)
    monkeypatch.setattr("graphsnd.teams.files.MAX_BYTES", 9000)
    assert read_team(path).team.observations == 50


def test_fortran_order_and_members_without_an_ending(tmp_path: Path) -> None:
    actions, file = np.asfortranarray(np.arange(24.0).reshape(3, 4, 2)), io.BytesIO()
    np.save(file, actions)
    with zipfile.ZipFile(tmp_path / "team.npz", "w") as archive:
        archive.writestr("actions", file.getvalue())
    team = read_team(tmp_path / "team.npz").team
    assert isinstance(team, gs.Deterministic)
    assert torch.equal(team.actions, torch.from_numpy(np.ascontiguousarray(actions)))


@pytest.mark.parametrize(
    "behavior",
    [
        gs.Gaussian(torch.randn(4, 5, 3, 2), torch.rand(4, 5, 3, 2) + 0.1),
        gs.MultivariateGaussian(torch.randn(6, 3, 2), torch.eye(2).expand(6, 3, 2, 2)),
        gs.Categorical(logits=torch.randn(6, 3, 4)),
        gs.Deterministic({"a": torch.randn(6, 2), "b": torch.randn(6, 2)}),
        gs.Quantiles(torch.randn(6, 3, 2, 1) + torch.linspace(0, 1, 64)),
        gs.Samples(torch.randn(6, 3, 8, 2)),
    ],
    ids=lambda behavior: type(behavior).__name__,
)
def test_a_saved_behavior_is_the_same(behavior: gs.Behavior, tmp_path: Path) -> None:
    clusters = torch.arange(behavior.observations) // 2
    gs.save_behavior(behavior, tmp_path / "team.npz", clusters=clusters)
    held = read_team(tmp_path / "team.npz")
    assert type(held.team) is type(behavior)
    assert (held.team.names, held.team.batch_shape) == (behavior.names, behavior.batch_shape)  # type: ignore[union-attr]
    assert torch.equal(held.clusters, clusters)  # type: ignore[arg-type]
    assert float(gs.snd(held.team)) == pytest.approx(float(gs.snd(behavior)), rel=1e-6)  # type: ignore[arg-type]
    loaded = gs.load_behavior(str(tmp_path / "team.npz"))
    assert (type(loaded), loaded.names) == (type(behavior), behavior.names)
    assert torch.equal(gs.pairwise(loaded), gs.pairwise(held.team))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_saved_behavior_keeps_its_digits(dtype: torch.dtype, tmp_path: Path) -> None:
    loc, scale = torch.randn(6, 3, 2, dtype=torch.float64).to(dtype), torch.ones(2, dtype=dtype) / 3
    gs.save_behavior(gs.Gaussian(loc, scale), tmp_path / "team.npz")
    held = gs.load_behavior(tmp_path / "team.npz")
    kept = dtype if dtype == torch.float64 else torch.float32
    assert isinstance(held, gs.Gaussian)
    assert torch.equal(held.loc, loc.to(kept))
    assert torch.equal(held.scale, scale.to(kept).expand(6, 3, 2))


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    part = gs.Deterministic(torch.zeros(2, 3, 1))
    with pytest.raises(gs.InputError, match=r"`clusters` laid out as the observations, \(2, 3\), got \(3, 2\)"):
        gs.save_behavior(
            gs.Deterministic(torch.zeros(2, 3, 2, 1)), tmp_path / "a.npz", clusters=torch.zeros(3, 2).long()
        )
    with pytest.raises(gs.InputError, match="`behavior` of one part, got Joint"):
        gs.save_behavior(gs.Joint([part, part]), tmp_path / "team.npz")
    with pytest.raises(gs.InputError, match=r"`path` to end in .npz, got 'team.pt'"):
        gs.save_behavior(part, tmp_path / "team.pt")
