"""From ``torch.distributions`` and TorchRL to behaviours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import distributions as D
from torch.autograd.function import once_differentiable

from graphsnd.behavior.behavior import Behavior, Deterministic
from graphsnd.behavior.categorical import Categorical
from graphsnd.behavior.gaussian import Gaussian, MultivariateGaussian
from graphsnd.behavior.joint import Joint
from graphsnd.behavior.quantiles import NODES, Quantiles, nodes_and_weights
from graphsnd.errors import InputError, check_integer

Distributions = D.Distribution | Mapping[str, Any] | Sequence[Any]  # one, or one for each part of the action


def from_distribution(
    distribution: Distributions,
    *,
    squashed: bool = True,
    nodes: int = NODES,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    validate: bool = True,
) -> Behavior:
    """Turn a batch of action distributions, of all agents on the same observations, into a behaviour.

    Batch and event dimensions together must read ``[..., agents, actions]`` (``[..., agents]`` and a
    number of categories for discrete ones; ``Bernoulli`` has two). Several event dimensions, such as the horizon and
    the actions of a chunk, are the action of one agent. ``Normal``, ``MultivariateNormal`` and the
    categorical families have closed forms; ``Beta``, TorchRL's ``TanhNormal`` and anything else with a quantile
    function go through :class:`~graphsnd.behavior.quantiles.Quantiles`. Several of them, in a dict, a list or a tuple,
    in tensordict's ``CompositeDistribution``, or discrete ones under ``Independent`` (MultiDiscrete), become a
    :class:`~graphsnd.Joint`.

    Args:
        distribution: Distribution of ``torch.distributions`` or ``torchrl.modules``; ``Independent`` is unwrapped.
            Distributions from a rollout are each on its agent's own observation and give no SND: use
            :func:`graphsnd.evaluate`.
        squashed: Whether a transformed distribution (tanh-squashed Gaussians) is compared after its
            transform, as the environment receives the action (the default), or before it, as DiCo does.
        nodes: Quadrature nodes for the families without a closed form. There is a warning where they are too few.
        weights: Weights of the parts, where there are several; as in :class:`~graphsnd.Joint`.
        validate: Check values (one host read on a GPU, two for families without a closed form).

    Returns:
        The behaviour, differentiable in the distribution's parameters.

    Raises:
        InputError: For a family without a quantile function, of infinite variance, or with dependent dimensions; and
            for several event dimensions behind one batch dimension, which may be agents or observations.

    Example:
        >>> normal = D.Independent(D.Normal(torch.zeros(64, 3, 2), torch.ones(64, 3, 2)), 1)
        >>> from_distribution(normal)
        Gaussian(agents=3, observations=64)
    """
    nodes = check_integer("nodes", nodes, "to be an integer, at least 1", low=1)
    return read_distribution(distribution, weights, squashed=squashed, nodes=nodes, validate=validate, unclear=True)


def read_distribution(
    distribution: Any,
    weights: Any = None,
    *,
    squashed: bool = True,
    nodes: int = NODES,
    validate: bool = True,
    lead: int | None = None,
    unclear: bool = False,
) -> Behavior:
    """Do the same as :func:`from_distribution`; a single batch dimension holds the agents, or one agent's observations.

    Args:
        distribution: Distribution, as there.
        weights: Weights of the parts.
        squashed: Whether it is compared after its transform.
        nodes: Number of quadrature nodes.
        validate: Check values.
        lead: Number of dimensions of the observations. A distribution with no other batch dimension is one of the whole
            team, as where log-probabilities are summed over agents: its first event dimension is that of the agents.
        unclear: Whether to refuse one batch dimension before several event dimensions.
    """
    d: Any = getattr(distribution, "dists", distribution)  # of a CompositeDistribution
    options: dict[str, Any] = {"squashed": squashed, "nodes": nodes, "validate": validate}
    options |= {"lead": lead, "unclear": unclear}
    if isinstance(d, Mapping):
        named = {".".join(key) if isinstance(key, tuple) else key: part for key, part in d.items()}
        return Joint({key: _read_part(part, options) for key, part in named.items()}, weights)
    if isinstance(d, list | tuple):
        return Joint([_read_part(part, options) for part in d], weights)
    if not isinstance(d, D.Distribution):
        expected = "to be a torch.distributions.Distribution, or a dict or list of them"
        raise InputError("distribution", expected, type(d).__name__)
    if unclear and len(d.batch_shape) == 1 < len(getattr(d, "event_shape", ())):
        got = f"{tuple(d.batch_shape)} and event shape {tuple(d.event_shape)}"
        fix = "Leave the agents out of the event: Independent(base, 1). One observation: loc[None]."
        raise InputError("distribution", "with batch shape (..., observations, agents)", got, fix)
    inner = -int(len(d.batch_shape) == lead)  # batch axes that hold actions of one agent
    while isinstance(d, D.Independent) or (isinstance(d, D.TransformedDistribution) and not squashed):
        inner += d.reinterpreted_batch_ndims if isinstance(d, D.Independent) else 0
        d = d.base_dist
    axes = max(1, inner + len(d.event_shape))  # all that hold the action of one agent
    if isinstance(d, D.Normal):
        return Gaussian(d.loc.flatten(-axes), d.scale.flatten(-axes), validate=validate)
    if isinstance(d, D.MultivariateNormal | D.LowRankMultivariateNormal):
        covariance = d.covariance_matrix
        if inner > 0:  # independent of each other: blocks of one matrix
            blocks = covariance.flatten(-1 - axes, -3).movedim(-3, -1)
            covariance = torch.diag_embed(blocks, dim1=-4, dim2=-2).flatten(-2).flatten(-3, -2)
        return MultivariateGaussian(d.loc.flatten(-axes), covariance, validate=validate)
    if isinstance(d, D.Categorical | D.OneHotCategorical | D.Bernoulli):
        probs = _probabilities(d)
        if inner < 1:
            return Categorical(probs=probs, validate=validate)
        parts = probs.flatten(-1 - inner, -2).unbind(-2)
        return Joint([Categorical(probs=part, validate=validate) for part in parts], weights)
    action = _point_mass(d)
    if action is not None:
        return Deterministic(action.flatten(-axes), validate=validate)
    _check_variance(d)
    quantiles = _quantiles(d, nodes_and_weights(nodes)[0]).movedim(0, -1)
    return Quantiles(quantiles.flatten(-1 - axes, -2), validate=validate)


def _check_variance(d: Any) -> None:
    """Raise for a distribution of infinite variance, also after scaling and shifting."""
    affine = D.AffineTransform
    while hasattr(d, "base_dist") and all(isinstance(each, affine) for each in getattr(d, "transforms", ())):
        d = d.base_dist
    if isinstance(d, D.Cauchy | D.HalfCauchy):
        fix = "Compare it after a bounded transform, such as TanhTransform."
        raise InputError("distribution", "of finite variance, as 2-Wasserstein distances need", type(d).__name__, fix)


def _read_part(part: Any, options: dict[str, Any]) -> Behavior:
    return part if isinstance(part, Behavior) else read_distribution(part, **options)


def _probabilities(d: Any) -> torch.Tensor:
    """Return the probabilities of all actions, ``[..., agents, actions]``."""
    if isinstance(d, D.Bernoulli):
        return torch.stack([1 - d.probs, d.probs], dim=-1)
    if getattr(d, "_sparse_mask", False):
        # TorchRL's MaskedCategorical(indices=...) holds those of the allowed actions only, each agent its own.
        every = d.probs.new_zeros(*d.probs.shape[:-1], d.num_samples)
        allowed = d._mask.expand(d.probs.shape).clamp(0, d.num_samples - 1)  # padding has probability 0
        return every.scatter_add(-1, allowed, d.probs)
    return d.probs


def _point_mass(d: D.Distribution) -> torch.Tensor | None:
    """Return the action of TorchRL's Delta or TanhDelta, recognised without importing it; None for other families."""
    if isinstance(d, D.Independent):
        return _point_mass(d.base_dist)
    if isinstance(d, D.TransformedDistribution):
        action = _point_mass(d.base_dist)
        return action if action is None else D.ComposeTransform(d.transforms)(action)
    return d.mode if any(c.__name__ == "Delta" for c in type(d).__mro__) else None


def _quantiles(d: D.Distribution, nodes: torch.Tensor) -> torch.Tensor:
    """Return the quantile function of every element at ``nodes``, shape ``[nodes, ..., agents, actions]``."""
    while isinstance(d, D.Independent):
        d = d.base_dist
    if isinstance(d, D.TransformedDistribution) and all(t.bijective and not t.domain.event_dim for t in d.transforms):
        # Elementwise monotone maps carry quantiles to quantiles. Decreasing ones turn their order around, perhaps for
        # one agent only; the nodes are symmetric about 1/2, so sorting restores it.
        return D.ComposeTransform(d.transforms)(_quantiles(d.base_dist, nodes)).sort(dim=0).values
    if isinstance(d, D.Beta):
        return _BetaQuantile.apply(d.concentration1, d.concentration0, nodes)
    shape = d.batch_shape + d.event_shape
    try:
        if type(d).icdf is D.Distribution.icdf:  # before its mean, which may be of another shape or fail (Wishart)
            raise NotImplementedError
        mean = d.mean
        # In float64 whatever the parameters: the outermost nodes are nearer to 1 than float32 can say.
        levels = nodes.to(mean.device).reshape(-1, *[1] * len(shape)).expand(-1, *shape)
        return d.icdf(levels).to(torch.promote_types(mean.dtype, torch.float32))
    except NotImplementedError:
        known = "Normal, MultivariateNormal, a categorical, Bernoulli, Beta, TanhNormal, Delta or a family with icdf"
        got = f"{type(d).__name__}: it has no elementwise quantile function (icdf)"
        fix = "Pass its quantiles as graphsnd.Quantiles, samples as graphsnd.Samples, or deterministic actions."
        raise InputError("distribution", f"to be {known}", got, fix) from None


class _BetaQuantile(torch.autograd.Function):
    """Quantile function of the Beta distribution, which torch lacks, with its implicit derivative."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        from scipy.special import betaincinv

        levels = nodes.numpy().reshape(-1, *[1] * a.dim())
        quantiles = torch.from_numpy(betaincinv(_numpy(a), _numpy(b), levels))
        ctx.save_for_backward(a, b, quantiles)  # in float64: rounded to 1, a quantile has no density
        return quantiles.to(a.device, torch.promote_types(a.dtype, torch.float32))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        from scipy.special import betainc, betaln

        a, b, quantiles = ctx.saved_tensors
        x, p, q = _numpy(quantiles).clip(1e-300, 1 - 1e-16), _numpy(a), _numpy(b)
        # F(x(a, b); a, b) = u, so dx/da = -(dF/da) / pdf. dF/da has no elementary form; a central difference
        # of the regularised incomplete beta function in float64 is good to about 1e-9.
        log_pdf = (p - 1) * np.log(x) + (q - 1) * np.log1p(-x) - betaln(p, q)
        step = 1e-5
        d_a = (betainc(p * (1 + step), q, x) - betainc(p * (1 - step), q, x)) / (2 * step * p)
        d_b = (betainc(p, q * (1 + step), x) - betainc(p, q * (1 - step), x)) / (2 * step * q)
        slope = -np.exp(-log_pdf)
        grad_a = (grad * torch.from_numpy(slope * d_a).to(grad)).sum(0).to(a.dtype)
        grad_b = (grad * torch.from_numpy(slope * d_b).to(grad)).sum(0).to(b.dtype)
        return grad_a, grad_b, None


def _numpy(tensor: torch.Tensor) -> npt.NDArray[np.float64]:
    return tensor.detach().double().cpu().numpy()
