"""The contract of a team: n policies, evaluated on all observations or on single (observation, agent) pairs."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import Named, stack_agents
from graphsnd.errors import InputError, as_tensor, check_finite, check_index, check_tensor, plural, shape_of
from graphsnd.teams.arrays import Arrays


class Team(Named, ABC):
    """``n`` policies that answer for themselves.

    A metric over every pair needs :meth:`evaluate`. An estimator that measures few pairs on few observations
    needs only :meth:`partial`, whose cost follows the requested answers, not the team.

    Attributes:
        agents: Number of policies.
        observation_features: Length of one observation; None when unknown.
        feature_dims: Trailing dimensions of one observation: 1, or 3 for images.
        device: Device of the policies.
        names: The agents' names in order: the keys of the dict of policies, or "0", "1", ...
        cost: Multiply-adds of one policy on one observation; None when unknown.
        proportional: Whether the work of :meth:`partial` is proportional to the requests.
        whole: Whether observations belong together, as sequences and joint observations do: :meth:`evaluate` answers
            them, :meth:`partial` does not.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.teams.as_team({name: torch.nn.Linear(4, 2) for name in ("scout", "guard", "medic")})
        >>> team.names, team.evaluate(torch.zeros(16, 4))
        (('scout', 'guard', 'medic'), Deterministic(agents=3, observations=16))
        >>> team.partial(torch.zeros(16, 4), torch.tensor([[0, 2]] * 16))  # of agents 0 and 2 only
        Deterministic(agents=2, observations=16)
    """

    observation_features: int | None = None
    feature_dims: int = 1
    device: torch.device
    cost: int | None = None
    proportional: bool = True
    whole: bool = False
    arrays: Arrays | None = None  # of observations that are several arrays

    def evaluate(self, observations: Tensor) -> Behavior:
        """Return what every agent would do on every observation.

        Args:
            observations: Shape ``[..., features]``, or a dict of what each agent observed, which is pooled.

        Returns:
            A behaviour with batch shape ``[...]`` and ``n`` agents.

        Raises:
            InputError: When the observations do not fit the policies, or the policies do not fit each other.
        """
        observations = self.read_observations(observations)
        self._check_observations(observations)
        if not math.prod(observations.shape[: -self.feature_dims]):
            raise InputError("observations", "to hold at least one observation", shape_of(observations))
        try:
            behavior = self._evaluate(observations)
        except InputError as error:
            self._blame(error, error.index[observations.dim() - self.feature_dims :])
            raise
        return behavior if self._names is None else behavior.with_names(self._names)

    def read_observations(self, observations: Any) -> Tensor:
        """Return observations as one tensor ``[..., features]``; a dict of what each agent observed is pooled."""
        joined = self.join_arrays(observations)
        observations = joined if isinstance(joined, Tensor) else as_tensor(joined)
        if isinstance(observations, Tensor):
            return check_tensor("observations", observations, self.feature_dims, "(..., features)")
        by_name = isinstance(observations, Mapping) and set(observations.keys()) == set(self._names or ())
        if hasattr(observations, "batch_size") and not by_name:
            fix = "Pass the entry that policies read: rollout['agents', 'observation']. For TorchRL: ActorTeam."
            raise InputError("observations", "to be a tensor, or a dict by agent", "a TensorDict", fix)
        # Policies that communicate may tell seats apart, so those of a dict are in the order of the agents.
        names = self._names if by_name else None
        rows = [as_tensor(part) for part in observations.values()] if isinstance(observations, Mapping) else []
        flat = all(isinstance(part, Tensor) and part.dim() == 1 + self.feature_dims for part in rows)
        if flat and len({len(part) for part in rows}) > 1 and len({part.shape[1:] for part in rows}) == 1:
            return torch.cat(rows)  # of agents that were not there all the time
        pooled = stack_agents("observations", observations, names, trailing=self.feature_dims)
        return check_tensor("observations", pooled, self.feature_dims, "(..., features)")

    def join_arrays(self, observations: Any) -> Any:
        """Return observations of several arrays as rows of numbers, and those of one array as they are.

        Args:
            observations: The arrays by their names, or in their order, each ``[..., *shape]``; or a dict of such by
                agent. Rows ``[..., features]`` are returned as they are.

        Raises:
            InputError: For other arrays, or arrays of other shapes.
        """
        if self.arrays is None:
            return observations
        dictionary = isinstance(observations, Mapping) and not hasattr(observations, "batch_size")  # no TensorDict
        if dictionary and self.arrays.keys().isdisjoint(observations):
            return {agent: self.join_arrays(own) for agent, own in observations.items()}
        given = as_tensor(observations)
        if isinstance(given, Tensor) and given.shape[-1:] == (self.observation_features,):
            return observations
        rows = self.arrays.join(observations)
        self.observation_features = rows.shape[-1]
        return rows

    def partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        """Return what some agents would do on each observation, another choice of agents for each.

        Equal, up to rounding, to :meth:`evaluate` gathered at ``agents``. Rounding may differ between two agents
        on one observation, because their requests are batched with others: identical policies are then a last
        digit apart, where ``evaluate`` gives exactly the same.

        Args:
            observations: Shape ``[observations, features]``.
            agents: int64, shape ``[observations, k]``; repeats are allowed.

        Returns:
            A behaviour with batch shape ``[observations]`` and ``k`` agents, those of ``agents[o]`` in order.

        Raises:
            InputError: When shapes do not fit or an agent is outside ``0 .. n - 1``.
        """
        observations = check_tensor("observations", observations, 2, "(observations, features)")
        if observations.dim() != 1 + self.feature_dims or not len(observations):
            expected = "with shape (observations, features) and at least one observation"
            fix = "Pool leading dimensions with observations.flatten(0, -2)."
            raise InputError("observations", expected, shape_of(observations), fix)
        self._check_observations(observations)
        agents = check_tensor("agents", agents, 2, "(observations, k)")
        if len(agents) != len(observations) or not agents.numel():
            raise InputError("agents", f"with shape ({len(observations)}, k), k at least 1", shape_of(agents))
        check_index("agents", agents, self.agents)
        try:
            return self._partial(observations, agents)
        except InputError as error:
            self._blame(error, agents[error.index[:1]].tolist()[error.index[1] :] if error.index else ())
            raise

    def _blame(self, error: InputError, agents: Sequence[int]) -> None:
        """Let an error of an answer say whose it is: the first of ``agents``."""
        for agent in () if self.whole else agents[:1]:
            error.got += f" of agent {self._names[agent] if self._names else agent}"
        error.index = ()

    def alike(self) -> str:
        """Return what makes all agents act alike, as the end of a sentence; nothing where they may differ."""
        return ""

    @abstractmethod
    def _evaluate(self, observations: Tensor) -> Behavior: ...

    @abstractmethod
    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior: ...

    def _describe(self) -> dict[str, Any] | None:
        """Return what the file of a saved team says beside its agents; None for policies that are code."""
        return None

    def _modules(self) -> nn.ModuleDict:
        """Return the modules of a saved team, so that the names of their tensors are those in its file."""
        raise NotImplementedError

    def bound(self, distance: Distance) -> float | None:
        """Return a certain upper bound on the distance between two agents on any observation; None when unknown."""
        return distance.maximum

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``team.safetensors`` and ``team.json`` into the folder ``path``, each at once or not at all.

        Raises:
            InputError: Unless it is a stacked or a controlled team: other policies are code, and nothing is pickled.
        """
        from graphsnd.teams.files import save

        save(self, path)

    @staticmethod
    def load(
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        policy: Callable[[], nn.Module] | None = None,
        entry: str | None = None,
        device: torch.device | str = "cpu",
    ) -> Team:
        """Read a team that :meth:`save` wrote, or a folder of state dicts; nothing is unpickled.

        Args:
            path: The folder of a saved team, or one of the two files in it. With ``policy`` a folder of ``.pt`` or
                ``.safetensors`` files, or a list of them: one agent for each.
            policy: Makes the module that each of those state dicts is loaded into.
            entry: Key of the state dict in files that hold several; only with ``policy``.
            device: Device of the weights.

        Raises:
            InputError: When a file is missing, damaged, of another version, or the tensors do not fit.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     for agent in range(3):
            ...         torch.save(nn.Linear(4, 2).state_dict(), f"{folder}/agent_{agent}.pt")
            ...     Team.load(folder, policy=lambda: nn.Linear(4, 2)).names
            ('agent_0', 'agent_1', 'agent_2')
        """
        from graphsnd.teams.files import load, load_policies

        if policy is not None:
            return load_policies(path, policy, entry=entry, device=device)
        return load(path, device=device)  # type: ignore[arg-type]

    @staticmethod
    def shared(
        policy: Callable[..., Any],
        agents: int | Sequence[str],
        *,
        columns: slice | Sequence[int] | int | None = None,
        argument: str | None = None,
        identity: Tensor | None = None,
        squashed: bool = True,
        outputs: str | Sequence[str] | None = None,
    ) -> Team:
        """Return the team of agents that share one network, which reads for which agent it acts.

        Every observation is shown to the network once for each agent, each time with that agent's identity, in one
        batch.

        Args:
            policy: Network or function that answers for one agent, as a policy in :func:`~graphsnd.evaluate`.
            agents: Number of agents, or a list of their names.
            columns: Features of an observation that hold the identity: a slice, a list or one integer. They are
                replaced.
            argument: Parameter of ``policy`` that takes the identities of all rows, ``[rows, k]``, instead of columns.
            identity: Identity of each agent, ``[agents, k]``, such as capabilities or an embedding, which
                gradients reach; or ``[agents]``, such as ``torch.arange(agents)`` for a network with its own embedding.
                One-hot vectors when None.
            squashed: Passed to :func:`~graphsnd.from_distribution`.
            outputs: Names of several outputs, see :func:`~graphsnd.evaluate`.

        Raises:
            InputError: For columns that do not fit the identity or, later, the observations.

        Example:
            >>> import torch, graphsnd as gs
            >>> network = torch.nn.Linear(4 + 3, 2)  # 4 features and a one-hot identity
            >>> team = gs.Team.shared(network, agents=3, columns=slice(-3, None))
            >>> team.evaluate(torch.zeros(16, 7))
            Deterministic(agents=3, observations=16)
        """
        from graphsnd.teams.shared import SharedTeam

        return SharedTeam(
            policy, agents, columns=columns, argument=argument, identity=identity, squashed=squashed, outputs=outputs
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(agents={self.agents}, observation_features={self.observation_features})"

    def _repr_html_(self) -> str:
        from graphsnd.plots.notebook import team_html

        return team_html(self)

    def _check_observations(self, observations: Tensor) -> None:
        features = self.observation_features
        if features is not None and observations.shape[-1] != features:
            expected = f"with {features} {plural('feature', features)} in the last axis"
            raise InputError("observations", expected, shape_of(observations))
        if bool(observations.isnan().any()):  # infinite ones, such as of a lidar that sees nothing, may be meant
            check_finite("observations", observations)


def tensors_in(module: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of a module by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def device_of(policy: object) -> torch.device:
    """Return the device of a module's first floating parameter or buffer; the CPU for anything that has none."""
    for tensor in tensors_in(policy).values() if isinstance(policy, nn.Module) else ():
        if tensor.is_meta:
            fix = "Load its weights first: load_state_dict(weights, assign=True)."
            raise InputError("team", "of policies with weights", "a module on the meta device", fix)
        if tensor.is_floating_point():
            return tensor.device
    return torch.device("cpu")
