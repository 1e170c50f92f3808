"""Call policies without changing them, and read their answers as behaviours."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel

from graphsnd.behavior import (
    Behavior,
    Categorical,
    Deterministic,
    Gaussian,
    Joint,
    MultivariateGaussian,
    Quantiles,
    Samples,
)
from graphsnd.behavior.behavior import BY_GROUP
from graphsnd.behavior.distributions import read_distribution
from graphsnd.errors import InputError, as_tensor, plural, shape_of

# The tensors that make up a behaviour, in the order of its constructor, with the dimensions after the agents axis.
FIELDS: dict[Callable[..., Behavior], tuple[tuple[str, int], ...]] = {
    Gaussian: (("loc", 1), ("scale", 1)),
    MultivariateGaussian: (("loc", 1), ("covariance", 2)),
    Categorical: (("probs", 1),),
    Deterministic: (("actions", 1),),
    Quantiles: (("values", 2),),
    Samples: (("samples", 2),),
}
# Families by the names of the tensors that stand for them, in files and dicts.
FAMILIES = {tuple(name for name, _ in fields): family for family, fields in FIELDS.items()}
FAMILIES[("logits",)] = Categorical
# What tells an action, in the order in which it is looked for among the outputs of a policy; and other names of it.
TOLD = (("loc", "scale"), ("loc", "log_scale"), ("loc", "covariance"), ("logits",), ("probs",), ("actions",))
SPELLINGS = {"mean": "loc", "std": "scale", "log_std": "log_scale", "action": "actions"}
ANSWER = "a distribution, an action (a tensor), a behaviour, or outputs with names"
Outputs = str | Sequence[str] | None
# The fix for policies whose answer to a row is not a function of the row.
MIXED = (
    "Recurrent and communicating policies: graphsnd.evaluate([policy, ...], observations, whole=True), each "
    "given the observations as they are. Policies that draw: return the distribution, or use "
    "graphsnd.draw_samples. A function around a module: call module.eval() first."
)
LOCK = threading.RLock()  # while modules run: their modes change, and batching puts parameters into the first of them
FAULTS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)  # what a policy raises on a wrong shape
SHARED = "the shared network"
ROWS = 16  # on which a policy is tried


@contextmanager
def evaluation_mode(policy: object) -> Iterator[None]:
    """Turn dropout off and let batch normalisation use its stored statistics; restore the modes at the end.

    Recurrent layers without dropout keep their mode, which changes no number; cuDNN has no gradients in the other.
    One thread at a time: a second would restore modes that the first still needs.
    """
    if not isinstance(policy, nn.Module):
        yield
        return
    with LOCK:
        training = []
        for part in policy.modules():
            if part.training and (not isinstance(part, nn.RNNBase) or part.dropout):
                training.append(part)
                part.training = False
        try:
            yield
        finally:
            for part in training:
                part.training = True


def unwrap(policy: Any) -> Any:
    """Return the module in a parallel wrapper unless gradients are wanted: DDP's may wait for all other ranks."""
    wrapped = isinstance(policy, DistributedDataParallel | nn.DataParallel)
    return policy.module if wrapped and not torch.is_grad_enabled() else policy


def ask(policy: Callable[[Any], Any], shown: Any, name: str | None = None) -> Any:
    """Return the answer of a policy in evaluation mode to a copy of ``shown``, which it may write into.

    Raises:
        InputError: If the policy raises an error of its own; the message says what it was given.
    """
    try:
        with evaluation_mode(policy):
            return unwrap(policy)(shown.clone() if hasattr(shown, "clone") else shown)
    except (InputError, torch.OutOfMemoryError):
        raise
    except FAULTS as error:
        what, one = name or "the stacked module", "It is called with a row for each observation and agent."
        fixes = {None: "A module that takes one observation per agent: agents=.", SHARED: one}
        fix = fixes.get(name, "Images: feature_dims=3. Sequences: whole=True.")
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".rstrip(".")
        widths = re.search(r"\(\d+x(\d+) and (\d+)x\d+\)", said)  # of a linear layer's input and weights
        if widths and getattr(shown, "shape", ())[-1:] == (int(widths[1]),):
            raise InputError("observations", f"with {widths[2]} features, as {what} takes them", widths[1]) from error
        if invalid := re.search(r"parameter (\w+) .*distribution (\w+)\(.*found invalid values", said):
            wrong = "NaN" if "nan" in said else "a value out of range"
            got, fix = f"a {invalid[2]} with {wrong} in {invalid[1]} from {what}", "It may have diverged."
            raise InputError("team", "of policies whose distributions are valid", got, fix) from error
        if re.search("dtype|Input type|scalar type", said):  # arrays of NumPy are float64, weights float32
            fix = "Convert them to the dtype of its weights, as with observations.float()."
        elif re.search("missing .*(argument|function)", said):
            fix = "Pass what takes observations alone, such as agent.actor or lambda o: agent(o, state)[0]."
        kind = getattr(shown, "dtype", None) or type(shown).__name__  # a TensorDict has a shape but no dtype
        shape = f" of shape {tuple(shown.shape)}" if hasattr(shown, "shape") else ""
        got = f"{kind}{shape}, on which it raised {said}"
        raise InputError("observations", f"that {what} can take", got, fix) from error


def ask_quietly(policy: Callable[[Tensor], Any], shown: Tensor, name: str | None = None) -> Any:
    """Return the policy's answer, and restore its buffers."""
    if not isinstance(policy, nn.Module) or isinstance(policy, torch.jit.ScriptModule):
        return ask(policy, shown, name)
    module: nn.Module = unwrap(policy)
    buffers = {key: buffer.clone() for key, buffer in module.named_buffers()}
    with evaluation_mode(module):
        return ask(lambda given: functional_call(module, buffers, (given,)), shown, name)


@torch.no_grad()
def check_rows(
    ask: Callable[[Tensor], Sequence[Tensor]],
    rows: Tensor,
    names: Sequence[str | None],
    *,
    most: int = ROWS,
    mixing: bool = True,
) -> bool:
    """Raise if a policy's answer to one row depends on the other rows, or is random.

    Policies are asked about a few rows, and twice more with one half of these rows replaced by the other half. An
    answer that changes where its row did not depends on the other rows or on chance. A policy that mixes rows
    (recurrent, communicating, normalising over the batch) was not trained on the batch that graphsnd makes. A policy
    that draws its answer makes identical agents seem different.

    Args:
        ask: Returns the answers of all policies to rows, each tensor ``[policies, rows, ...]``.
        rows: Shape ``[rows, ...]``.
        names: The policies' names, for the message.
        most: Largest number of rows to use, evenly spaced.
        mixing: Replace rows. Otherwise only chance is found.

    Returns:
        Whether this is settled; False where all rows are equal, which shows nothing of mixing.

    Raises:
        InputError: When an answer depends on other rows or on chance.
    """
    count = min(len(rows), most)
    few = rows[torch.arange(count, device=rows.device) * (len(rows) - 1) // max(1, count - 1)]
    # By the parity of the index' bits, so that rows at any distance are parted: neighbours, blocks, first and last.
    odd = torch.tensor([index.bit_count() % 2 == 1 for index in range(count)], device=few.device)
    same, settled = torch.ones(len(names), dtype=torch.bool, device=few.device), False
    with LOCK, torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            first = ask(few)
        except InputError:
            ask(rows)  # so that the message has the shapes of what was passed
            raise
        for kept in (odd, ~odd) if mixing else (slice(None),):
            changed = few.clone()
            if isinstance(kept, Tensor):
                changed[~kept] = few[kept].repeat(2, *[1] * (few.dim() - 1))[: int((~kept).sum())]
            settled |= not torch.equal(changed, few)
            for one, two in zip(first, ask(changed), strict=True):
                # Relative to each policy's own actions: beside large ones of another, a small change still counts.
                close = 64 * torch.finfo(one.dtype).eps * one.abs().nan_to_num(0, 0).flatten(1).amax(1, keepdim=True)
                x, y = one[:, kept].flatten(1), two[:, kept].flatten(1)
                same &= ((x == y) | ((x - y).abs() <= close) | (x.isnan() & y.isnan())).all(1)
    if not bool(same.all()):
        name = names[int(same.int().argmin())]
        got = f"{'a module' if name is None else f'policy {name},'} whose answer changes with the other observations"
        raise InputError("team", "to answer each observation by itself", f"{got} of the batch, or by chance", MIXED)
    return settled


def read_answer(
    answer: Any, *, squashed: bool, outputs: Outputs = None, validate: bool = True, lead: int | None = None
) -> Behavior:
    """Return a policy's answer as a behaviour.

    Args:
        answer: A distribution, a tensor (deterministic action), a behaviour, or a dict, list or tuple of distributions
            and behaviours, one for each part of the action; or several outputs, see :func:`choose_outputs`.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        outputs: Names of several outputs.
        validate: Check values.
        lead: Dimensions of the observations, where it is all agents': see :func:`read_distribution`.

    Raises:
        InputError: For anything else.

    Example:
        >>> read_answer(torch.zeros(16, 1, 2), squashed=True)
        Deterministic(agents=1, observations=16)
        >>> read_answer((torch.zeros(16, 1, 2), torch.zeros(16, 1)), squashed=True, outputs="logits, value")
        Categorical(agents=1, observations=16)
    """
    chosen = choose_outputs(as_tensor(answer), outputs, partial(build_answer, validate=validate))
    if isinstance(chosen, Behavior):
        return chosen
    if isinstance(chosen, Tensor):
        return Deterministic(chosen, validate=validate)
    if isinstance(chosen, D.Distribution) or _in_parts(chosen):
        return read_distribution(chosen, squashed=squashed, validate=validate, lead=lead)
    fix = "Wrap the policy: lambda o: graphsnd.Categorical(logits=net(o))."
    raise InputError("team", f"of policies that return {ANSWER}", type(answer).__name__, fix)


def build_answer(told: Mapping[str, Any], *, validate: bool = True) -> Behavior:
    """Return the behaviour of tensors by their names, as :func:`choose_outputs` finds them."""
    tensors = {name: as_tensor(part) for name, part in told.items()}
    if "log_scale" in tensors:
        tensors["scale"] = torch.as_tensor(tensors.pop("log_scale")).exp()
    (family,) = (family for names, family in FAMILIES.items() if set(names) == tensors.keys())
    return family(**tensors, validate=validate)


def choose_outputs(answer: Any, outputs: Outputs = None, build: Callable[[dict[str, Any]], Any] = build_answer) -> Any:
    """Return the outputs of a policy that describe its action; other outputs of an actor-critic are dropped.

    Distributions and behaviours are recognised by type, tensors by name: ``loc`` or ``mean`` with ``scale`` or ``std``,
    ``log_scale`` or ``log_std``, or ``covariance``; ``logits``; ``probs``; ``actions`` or ``action``.

    Args:
        answer: A dict or a named tuple; a tuple or list with ``outputs`` or a distribution in it; a tensor with
            ``outputs``. Anything else is returned as it is.
        outputs: Names of the entries of a tuple or list, such as ``"logits, value"``, or of the tensor.
        build: Takes tensors by their names, in the first spelling.

    Returns:
        One distribution or behaviour, or several in a dict or list.

    Raises:
        InputError: For tensors of which the names do not tell an action.
    """
    answer = answer._asdict() if hasattr(answer, "_asdict") else answer
    answer = (answer,) if outputs and hasattr(answer, "shape") else answer
    names = (outputs.replace(",", " ").split() if isinstance(outputs, str) else outputs) or ()
    if named := isinstance(answer, Mapping):
        held = dict(answer)
    elif isinstance(answer, tuple | list):
        named = len(names) == len(answer)
        held = dict(zip(names if named else range(len(answer)), answer, strict=True))
    else:
        return answer
    parts = {key: part for key, part in held.items() if _tells(part)}
    if len(parts) == 1 < len(held):
        return next(iter(parts.values()))
    if parts:
        return parts if named else list(parts.values())
    told = {SPELLINGS.get(str(key), str(key)): part for key, part in held.items()}
    for known in TOLD if named else ():
        if told.keys() >= set(known):
            return build({name: told[name] for name in known})
    shapes = [tuple(part.shape) if hasattr(part, "shape") else type(part).__name__ for part in held.values()]
    got = ", ".join(f"{key} {shape}" if named else str(shape) for key, shape in zip(held, shapes, strict=True))
    if names and not named:
        raise InputError("outputs", f"to name {len(held)} outputs of shapes {got}", f"{len(names)}: {', '.join(names)}")
    fix = "Name them, as in outputs='logits, value', or return a dict with such names: loc or mean with scale, std or "
    fix += "log_std; logits; probs; action. Others, such as a value or a hidden state, are left out."
    raise InputError(
        "team", f"of policies that return {ANSWER}", f"{len(held)} {plural('output', len(held))}: {got}", fix
    )


def read_single(
    answer: object, lead: Sequence[int], *, squashed: bool, outputs: Outputs = None, validate: bool = True
) -> Behavior:
    """Return one agent's answer to observations ``[*lead, features]``, the last of ``lead`` in place of the agents.

    Args:
        answer: Answer of one agent, ``[*lead, actions]``; otherwise as in :func:`read_answer`.
        lead: The leading shape that the policy was given.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        outputs: Names of several outputs.
        validate: Check values.

    Raises:
        InputError: When the answer has another leading shape.
    """
    expected = f"to answer with shape {(*lead, 'actions')}"
    fix = "A policy of a list answers for one agent, without an agents axis."
    answer = answer if isinstance(answer, Tensor) else as_tensor(answer)
    if outputs or not isinstance(answer, Tensor):
        behavior = read_answer(answer, squashed=squashed, outputs=outputs, validate=validate)
    elif answer.dim() >= 2:
        behavior = Deterministic(answer, validate=validate)
    else:
        if not answer.is_floating_point():  # the index of a discrete action
            fix = "For discrete actions return their probabilities: graphsnd.Categorical(probs=...) or (logits=...)."
        raise InputError("team", expected, shape_of(answer), fix)
    # A policy that loses or adds a row would shift the answers of all agents after it.
    if (*behavior.batch_shape, behavior.agents) != tuple(lead):
        raise InputError("team", expected, f"shape {(*behavior.batch_shape, behavior.agents, '...')}", fix)
    return behavior


def take_agents(behavior: Behavior, agents: Tensor) -> Behavior:
    """Return the behaviour of some agents of each observation.

    Args:
        behavior: Batch shape ``[observations]``.
        agents: int64, shape ``[observations, k]``.
    """
    rows = torch.arange(len(agents), device=agents.device).unsqueeze(-1)
    return map_tensors(lambda given, _: given[0][rows, agents], [behavior])


def map_tensors(
    function: Callable[[list[Tensor], int], Tensor],
    behaviors: Sequence[Behavior],
    *,
    skip: int = 0,
    validate: bool = False,
) -> Behavior:
    """Return the behaviour of the same family whose tensors a function makes of those of the given ones.

    Args:
        function: Takes a list with the same tensor of every behaviour, and its number of dimensions after the agents.
        behaviors: Behaviours of one family, at least one.
        skip: Leading dimensions in which the tensors may differ.
        validate: Check values.
    """
    first = behaviors[0]
    if len(behaviors) > 1:
        _check_alike(behaviors, skip)
    if isinstance(first, Joint):
        parts = zip(*(b.parts.values() for b in behaviors if isinstance(b, Joint)), strict=True)
        return first._with_parts([map_tensors(function, part, skip=skip, validate=validate) for part in parts])
    each = zip(*map(tensors_of, behaviors), strict=True)
    made = [function(list(given), trailing) for given, (_, trailing) in zip(each, FIELDS[type(first)], strict=True)]
    return with_tensors(first, made, validate=validate)


def tensors_of(behavior: Behavior) -> list[Tensor]:
    """Return the tensors that make up a behaviour."""
    if isinstance(behavior, Joint):
        return [tensor for part in behavior.parts.values() for tensor in tensors_of(part)]
    tensors = []
    for name, _ in FIELDS[type(behavior)]:
        tensors.append(getattr(behavior, name))
    return tensors


def with_tensors(behavior: Behavior, tensors: Iterable[Tensor], *, validate: bool = False) -> Behavior:
    """Return the behaviour of the same family made up of other tensors, given in the order of :func:`tensors_of`.

    Args:
        behavior: Names the family, and for a joint behaviour its parts.
        tensors: Tensors of ``behavior``'s family, for any observations and agents.
        validate: Check values.
    """
    if isinstance(behavior, Joint):
        rest = iter(tensors)
        parts = [(part, islice(rest, len(tensors_of(part)))) for part in behavior.parts.values()]
        return behavior._with_parts([with_tensors(part, own, validate=validate) for part, own in parts])
    family: Callable[..., Behavior] = type(behavior)
    return family(*tensors, validate=validate)


def _tells(part: object) -> bool:
    """Whether a part of an answer is a distribution or behaviour, or holds nothing else."""
    return isinstance(part, D.Distribution | Behavior) or _in_parts(part)


def _in_parts(answer: object) -> bool:
    """Whether an answer has a distribution or behaviour for each of several parts; tensors say too little of theirs."""
    parts = list(answer.values()) if isinstance(answer, Mapping) else answer
    return isinstance(parts, list | tuple) and bool(parts) and all(map(_tells, parts))


def _check_alike(behaviors: Sequence[Behavior], skip: int) -> None:
    """Raise unless behaviours are of one family, and their tensors of one shape after the first ``skip`` dimensions."""
    families = {type(each).__name__ for each in behaviors}
    if len(families) > 1:
        fix = f"Use one distribution for all. {BY_GROUP}"
        raise InputError("team", "whose policies answer in one family", " and ".join(sorted(families)), fix)
    if isinstance(behaviors[0], Joint):
        made = {(tuple(each.parts), each.distance) for each in behaviors if isinstance(each, Joint)}
        if len(made) > 1:
            fix = "Use the same names, weights and distances for all."
            raise InputError("team", "whose policies answer with the same parts", " and ".join(map(str, made)), fix)
        return
    for name, _ in FIELDS.get(type(behaviors[0]), ()):
        shapes = {tuple(getattr(each, name).shape[skip:]) for each in behaviors}
        if len(shapes) > 1:
            got, fix = " and ".join(map(str, shapes)), f"Agents with different spaces have no distance. {BY_GROUP}"
            raise InputError("team", f"whose policies agree on the shape of {name}", got, fix)
