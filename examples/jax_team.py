"""Train a team in JAX, all agents in one vmap, and log how their policies part."""

import jax
import jax.numpy as jnp
import optax
from flax import linen

import graphsnd as gs
from graphsnd.integrations.jax import JaxTeam

AGENTS, ACTIONS = 4, 4


class Policy(linen.Module):
    """Logits of the actions."""

    @linen.compact
    def __call__(self, observations: jax.Array) -> dict[str, jax.Array]:
        """Shape ``[observations, actions]``."""
        return {"logits": linen.Dense(ACTIONS)(linen.tanh(linen.Dense(32)(observations)))}


policy = Policy()
keys = jax.random.split(jax.random.key(0), AGENTS)
params = jax.vmap(policy.init, in_axes=(0, None))(keys, jnp.zeros((1, 6)))
observations = jax.random.normal(jax.random.key(1), (512, 6))
team = JaxTeam(policy, params, names=[f"agent {i}" for i in range(AGENTS)])


def loss(params: dict, key: jax.Array) -> jax.Array:
    """REINFORCE: every agent is rewarded for the action of its own number, and for what it observes."""
    logits = jax.vmap(policy.apply, in_axes=(0, None))(params, observations)["logits"]
    actions = jax.random.categorical(key, logits)
    reward = (actions == jnp.arange(AGENTS)[:, None]) + observations[:, :ACTIONS][jnp.arange(512), actions]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], -1)[..., 0]
    return -(chosen * (reward - reward.mean())).mean()


optimiser = optax.adam(1e-2)
state = optimiser.init(params)
update = jax.jit(lambda params, state, key: optimiser.update(jax.grad(loss)(params, key), state))
for step in range(61):
    changes, state = update(params, state, jax.random.key(step))
    params = optax.apply_updates(params, changes)
    if step % 15 == 0:
        team.params = params
        print(f"step {step:3}  SND {float(gs.measure(team, observations)):.4f}")
