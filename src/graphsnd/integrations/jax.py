"""Policies of JAX and Flax as a team; arrays pass by DLPack.

Needs ``jax``. See ``docs/jax.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError, as_tensor, require
from graphsnd.teams import answers
from graphsnd.teams.joint import JointTeam
from graphsnd.teams.shared import SharedTeam

__all__ = ["JaxTeam", "nnx_team", "stack"]

jax = require("jax", "jax")


class SharedJaxTeam(SharedTeam):
    """A team of agents that share one function and one set of parameters, and read their identities.

    Args:
        apply: Function of parameters and observations, as in :class:`JaxTeam`; with ``argument`` it also takes the
            identities of all rows by that name.
        params: Parameters of the network.
        agents: Number of agents, or a list of their names.
        outputs: Names of several outputs, as in :class:`JaxTeam`.
        **told: Arguments ``columns`` or ``argument``, and ``identity``, of :meth:`graphsnd.Team.shared`.

    Attributes:
        params: Parameters. Others of the same shapes may replace them; nothing is compiled again.

    Example:
        >>> team = JaxTeam.shared(lambda w, seen: seen @ w, jax.numpy.eye(3), 2, columns=slice(-2, None))
        >>> team.evaluate(jax.numpy.zeros((1, 3))).actions
        tensor([[[0., 1., 0.],
                 [0., 0., 1.]]])
    """

    def __init__(self, apply: Any, params: Any, agents: Any, *, outputs: answers.Outputs = None, **told: Any) -> None:
        function = apply.apply if hasattr(apply, "apply") else apply
        self._compiled = jax.jit(lambda one, shown, own: _flatten(function(one, shown, **own), outputs))
        self.params = params
        super().__init__(self._answer_rows, agents, **told)

    def _ask(self, *given: Any) -> Behavior:
        self.policies = [self._answer_rows]  # this team may be a copy, with other parameters
        return super()._ask(*given)

    def _answer_rows(self, rows: Tensor, **own: Tensor) -> Behavior:
        given = jax.tree.map(lambda part: jax.numpy.from_dlpack(part.detach().contiguous()), (rows, own))
        return answers.build_answer(self._compiled(self.params, *given))


class JaxTeam(JointTeam):
    """``n`` policies that are one function of parameters and observations, and ``n`` sets of parameters.

    Args:
        apply: Function from the parameters of one agent and observations ``[observations, *features]`` to its answer:
            an array ``[observations, actions]`` (the action), or several with names, in a dict or by ``outputs``; or a
            Flax linen module. It runs for all agents at once, ``jit(vmap(apply))``.
        params: Parameters of all agents in one pytree, agents first in every array.
        names: The agents' names.
        feature_dims: Trailing dimensions of one observation, 3 for images.
        outputs: Names of several outputs, see :func:`graphsnd.evaluate`.

    Attributes:
        params: Parameters. Others of the same shapes may replace them, as in training; nothing is compiled again.

    Raises:
        InputError: For parameters without an agents axis, and other answers.

    Example:
        >>> import jax, torch, graphsnd as gs
        >>> weights = jax.numpy.stack([jax.numpy.eye(3), 3 * jax.numpy.eye(3)])
        >>> team = JaxTeam(lambda w, observations: observations @ w, weights)
        >>> float(gs.measure(team, torch.tensor([[1.0, 0.0, 0.0]])))
        2.0
    """

    shared = SharedJaxTeam  # type: ignore[assignment]

    def __init__(
        self,
        apply: Callable[[Any, Any], Any],
        params: Any,
        *,
        names: Sequence[str] | None = None,
        feature_dims: int = 1,
        outputs: answers.Outputs = None,
    ) -> None:
        sizes: set[tuple[int, ...]] = {getattr(leaf, "shape", ())[:1] for leaf in jax.tree.leaves(params)}
        if len(sizes) != 1 or sizes == {()}:
            fix = "Make them with jax.vmap(init), or join single ones: graphsnd.integrations.jax.stack([...])."
            raise InputError("params", "with the agents first in every array", f"arrays that begin with {sizes}", fix)
        function = apply.apply if hasattr(apply, "apply") else apply
        self._run = jax.jit(jax.vmap(lambda one, shown: _flatten(function(one, shown), outputs), in_axes=(0, None)))
        self.params = params
        super().__init__(self._answer, agents=None, feature_dims=feature_dims)
        ((self._agents,),) = sizes
        if names is not None:
            self._names = self.with_names(names).names

    def _evaluate(self, observations: Tensor) -> Behavior:
        self.policy = self._answer  # this team may be a copy, with other parameters
        return super()._evaluate(observations)

    def _answer(self, shown: Tensor) -> Behavior:
        flat = shown.flatten(0, -1 - self.feature_dims).contiguous()
        answer = self._run(self.params, jax.numpy.from_dlpack(flat.detach()))
        lead = shown.shape[: -self.feature_dims]
        # Agents first in JAX, before the actions here.
        tensors = {key: as_tensor(part).movedim(0, 1).unflatten(0, lead) for key, part in answer.items()}
        return answers.build_answer(tensors)


def _flatten(answer: Any, outputs: answers.Outputs) -> dict[str, Any]:
    """Return one agent's answer as arrays under the names of a family."""
    plain = hasattr(answer, "shape") and not outputs
    answer = {"actions": answer} if plain else answers.choose_outputs(answer, outputs, dict)
    if not isinstance(answer, dict):
        raise InputError("apply", "to answer with an array, or several with names", type(answer).__name__)
    shape = next(iter(answer.values())).shape
    return {key: jax.numpy.broadcast_to(part, shape) for key, part in answer.items()}


def stack(params: Sequence[Any]) -> Any:
    """Return the parameters of single agents as one pytree, agents first in every array.

    Args:
        params: Pytree of each agent, all of one structure.

    Example:
        >>> stack([{"w": jax.numpy.zeros(3)}, {"w": jax.numpy.ones(3)}])["w"].shape
        (2, 3)
    """
    return jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *params)


def nnx_team(
    modules: Mapping[str, Any] | Sequence[Any], *, answer: Callable[[Any], Any] | None = None, feature_dims: int = 1
) -> JaxTeam:
    """Return a team of Flax nnx modules of one kind, in evaluation mode.

    Args:
        modules: Modules by name, or a list.
        answer: Function from a module's output to an answer that :class:`JaxTeam` takes:
            ``lambda logits: {"logits": logits}``.
        feature_dims: Trailing dimensions of one observation, 3 for images.

    Raises:
        InputError: For modules that differ in more than their parameters.

    Example:
        >>> from flax import nnx
        >>> modules = {name: nnx.Linear(4, 2, rngs=nnx.Rngs(seed)) for seed, name in enumerate(("scout", "guard"))}
        >>> nnx_team(modules).names
        ('scout', 'guard')
    """
    nnx = require("flax.nnx", "flax")
    held = list(modules.values() if isinstance(modules, Mapping) else modules)
    quiet = {"deterministic": True, "use_running_average": True, "raise_if_not_found": False}
    graphs, states = zip(*(nnx.split(nnx.view(module, **quiet)) for module in held), strict=True)
    if any(graph != graphs[0] for graph in graphs):
        raise InputError("modules", "that differ in their parameters only", "different ones")

    def apply(state: Any, shown: Any) -> Any:
        put_out = nnx.merge(graphs[0], state)(shown)
        return put_out if answer is None else answer(put_out)

    names = list(modules) if isinstance(modules, Mapping) else None
    return JaxTeam(apply, stack(states), names=names, feature_dims=feature_dims)
