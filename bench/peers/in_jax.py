"""What cpu.py measures, in JAX: functions of arrays, to be jitted. Tokens stand first, [T,B,...], as lax.scan reads them."""

import jax
import jax.numpy as jnp
from jax import lax

EPSILON = 1e-5
BLOCK = 16  # tokens whose states the backward pass computes again, as the library does


def scan(decay, u):
    """decay, u [T,B,D]."""

    def step(h, token):
        h = token[0] * h + token[1]
        return h, h

    return lax.scan(step, jnp.zeros(u.shape[1:], u.dtype), (decay, u))[1]


def associative_scan(decay, u):
    def then(earlier, later):
        return later[0] * earlier[0], later[0] * earlier[1] + later[1]

    return lax.associative_scan(then, (decay, u))[1]


def with_backward(f):
    """(value, cotangents of all arguments)."""

    def run(y_bar, *x):
        y, back = jax.vjp(f, *x)
        return y, back(y_bar)

    return run


def selective_scan(delta, omega, b, c, u, checkpointed=True):
    """delta, u [T,B,D]; omega [N,D]; b, c [T,B,N]."""
    T, B, D = u.shape
    rate = -jnp.exp(omega)

    def step(H, token):
        delta, b, c, u = token
        H = jnp.exp(rate * delta[:, None, :]) * H + b[:, :, None] * (delta * u)[:, None, :]
        return H, jnp.einsum("bn,bnd->bd", c, H)

    H = jnp.zeros((B, len(omega), D), u.dtype)
    if not checkpointed:
        return lax.scan(step, H, (delta, b, c, u))[1]
    blocks = [x.reshape(T // BLOCK, BLOCK, *x.shape[1:]) for x in (delta, b, c, u)]
    return lax.scan(jax.checkpoint(lambda H, x: lax.scan(step, H, x)), H, blocks)[1].reshape(T, B, D)


def unit(v):
    return v / jnp.maximum(jnp.linalg.norm(v, axis=-1, keepdims=True), EPSILON)


def centred(v):
    v = v - v.mean(-1, keepdims=True)
    return v / jnp.sqrt((v**2).mean(-1, keepdims=True) + EPSILON)


def residual(to, y):
    """Of each row [...,D]."""
    return jnp.abs(to - y).max(-1) / (jnp.abs(to).max(-1) + 1e-8)


class FpMamba:
    """The block of fp_mamba.py on x_in [T,B,D]. What an iteration does not change is computed once."""

    def __init__(self, theta, x_in):
        self.theta, self.x_in = theta, x_in
        self.u = x_in / jnp.sqrt((x_in**2).mean(-1, keepdims=True) + EPSILON) * theta["norm.weight"]
        self.x = self.u @ theta["x"].T
        self.D = self.x.shape[-1]
        self.delta = jax.nn.softplus(self.x @ theta["delta"].T + theta["delta.bias"])
        self.decay = jnp.exp(-jnp.exp(theta["ssm.omega"]) * self.delta[..., None, :])  # [T,B,N,D]
        self.given = {name: self.x @ theta[name][:, : self.D].T for name in ("Q.u", "Q.alpha", "b", "c")}

    def maps(self, given, before):
        """Unit vectors and alpha of Q, b and c: what sees y_{t-1}."""
        of = {name: given[name] + before @ self.theta[name][:, self.D :].T for name in given}
        R = of["Q.alpha"].shape[-1]
        directions = unit(jax.nn.silu(of["Q.u"]).reshape(*of["Q.u"].shape[:-1], R, self.D))
        return directions, jax.nn.sigmoid(of["Q.alpha"] + self.theta["Q.alpha.bias"]), unit(of["b"]), unit(of["c"])

    def mix(self, directions, alpha, x, y):
        d = x - y
        for r in range(directions.shape[-2]):
            d = d - (alpha[..., r, None] * (directions[..., r, :] * d).sum(-1, keepdims=True)) * directions[..., r, :]
        return y + d

    def norm(self, read, mixed):
        y = centred(read + self.theta["D"] * mixed)
        return y * self.theta["y_norm.weight"] + self.theta["y_norm.bias"]

    def read_out(self, y):
        before = jnp.concatenate([jnp.zeros_like(y[:1]), y[:-1]])
        z = jnp.concatenate([self.u, before], -1) @ self.theta["z"].T
        return self.x_in + (jax.nn.silu(z) * y) @ self.theta["out"].T


def solve_at_once(theta, x_in, tolerance=1e-4, ell_max=100):
    """C = T; a sequence that has converged stays as it is. The result [T,B,D]."""
    m = FpMamba(theta, x_in)

    def f(y):
        before = jnp.concatenate([jnp.zeros_like(y[:1]), y[:-1]])
        directions, alpha, b, c = m.maps(m.given, before)
        mixed = m.mix(directions, alpha, m.x, y)

        def step(H, token):
            decay, b, c, u = token
            H = decay * H + b[:, :, None] * u[:, None, :]
            return H, jnp.einsum("bn,bnd->bd", c, H)

        H = jnp.zeros(m.decay.shape[1:], y.dtype)
        return m.norm(lax.scan(step, H, (m.decay, b, c, m.delta * mixed))[1], mixed)

    def iterate(state):
        y, running, ell = state
        to = f(y)
        still = running & (residual(to, y).max(0) >= tolerance)
        return jnp.where(running[:, None], to, y), still, ell + 1

    running = jnp.ones(x_in.shape[1], bool)
    going = lambda state: state[1].any() & (state[2] < ell_max)
    return m.read_out(lax.while_loop(going, iterate, (jnp.zeros_like(m.x), running, 0))[0])


def solve_by_token(theta, x_in, tolerance=1e-4, ell_max=100):
    """C = 1: maps that see y_{t-1} once a token, then the mixer, the state and the norm until all have converged."""
    m = FpMamba(theta, x_in)

    def token(carry, of_token):
        H, before = carry
        x, delta, decay, given = of_token
        directions, alpha, b, c = m.maps(given, before)
        kept = jnp.einsum("bn,bnd->bd", c, decay * H)
        written = (c * b).sum(-1, keepdims=True)

        def f(y):
            mixed = m.mix(directions, alpha, x, y)
            return m.norm(kept + written * (delta * mixed), mixed)

        def iterate(state):
            y, running, ell = state
            to = f(y)
            still = running & (residual(to, y) >= tolerance)
            return jnp.where(running[:, None], to, y), still, ell + 1

        running = jnp.ones(len(x), bool)
        going = lambda state: state[1].any() & (state[2] < ell_max)
        y = lax.while_loop(going, iterate, (jnp.zeros_like(x), running, 0))[0]
        u = delta * m.mix(directions, alpha, x, y)
        return (decay * H + b[:, :, None] * u[:, None, :], y), y

    start = jnp.zeros(m.decay.shape[1:], x_in.dtype), jnp.zeros_like(m.x[0])
    return m.read_out(lax.scan(token, start, (m.x, m.delta, m.decay, m.given))[1])
