"""What cpu.py measures, in PyTorch on a CPU: loops over tokens, the FP-Mamba solve and training steps, compiled."""

import fp_mamba
import torch
import torch.nn.functional as F


def scan(decay, u, h):
    """decay, u, h [T,B,D]; into h."""
    h[0].copy_(u[0])
    for t in range(1, len(u)):
        torch.addcmul(u[t], decay[t], h[t - 1], out=h[t])


def scan_back(decay, h, h_bar, g, decay_bar):
    """The adjoint, into g, which is u_bar, and decay_bar."""
    g[-1].copy_(h_bar[-1])
    for t in range(len(h) - 2, -1, -1):
        torch.addcmul(h_bar[t], decay[t + 1], g[t + 1], out=g[t])
    decay_bar[0].zero_()
    torch.mul(g[1:], h[:-1], out=decay_bar[1:])


def solver(theta):
    """FpMamba of fp_mamba.py, C = T; an iteration is one compiled function, decays and the loop over tokens in it."""
    block = fp_mamba.FpMamba(theta, fp_mamba.selective_scan_loop)
    block.f = torch.compile(block.f, fullgraph=True, dynamic=False)
    return block


class Trainer:
    """Steps of a model of one block: embedding, block, norm, head; mean cross-entropy, a gradient whose norm is at most
    1, AdamW. `loss` is a function of parameters, tokens and targets."""

    def __init__(self, problem):
        self.theta = {
            name: torch.nn.Parameter(torch.from_numpy(problem[name].copy()))
            for name in problem.names
            if name not in ("tokens", "targets")
        }
        decays = {name: problem.decays(name) for name in self.theta}
        self.optimise([p for name, p in self.theta.items() if decays[name]], [p for name, p in self.theta.items() if not decays[name]])

    def optimise(self, decaying, others):
        self.optimiser = torch.optim.AdamW(
            [{"params": decaying, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
            lr=3e-3,
            betas=(0.9, 0.99),
            eps=1e-8,
            fused=True,
        )

    def logits_loss(self, y, targets):
        y = F.rms_norm(y, y.shape[-1:], self.theta["head.norm.weight"], fp_mamba.EPSILON)
        return F.cross_entropy((y @ self.theta["head.logits"].T).flatten(0, 1), targets.flatten())

    def step(self, tokens, targets):
        self.optimiser.zero_grad()
        loss = self.loss(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.theta.values(), 1.0)
        self.optimiser.step()
        return loss


class FpMambaTrainer(Trainer):
    """C = T to 1e-4, then one step of the adjoint, as the authors have it: the fixed point is found without a gradient,
    which is that of one more iteration. Iteration and what follows it are a compiled function each."""

    def __init__(self, problem):
        super().__init__(problem)
        of_block = {name.removeprefix("blocks.0."): p for name, p in self.theta.items() if name.startswith("blocks.0.")}
        self.block = fp_mamba.FpMamba(of_block, fp_mamba.selective_scan_loop)
        self.iterate = torch.compile(self._iterate, fullgraph=True, dynamic=False)
        self.prepare = torch.compile(self._prepare, fullgraph=True, dynamic=False)
        self.last = torch.compile(self._last, fullgraph=True, dynamic=False)

    def _prepare(self, tokens):
        return self.block.given(self.theta["embedding"][tokens])

    def _iterate(self, p, y, running):
        to = self.block.f(p, y)
        residual = ((to - y).abs().amax(2) / (to.abs().amax(2) + 1e-8)).amax(1)
        return torch.where(running[:, None, None], to, y), running & (residual >= 1e-4)

    def _last(self, tokens, targets, y):
        x_in = self.theta["embedding"][tokens]
        p = self.block.given(x_in)
        return self.logits_loss(self.block.read_out(x_in, p, self.block.f(p, y)), targets)

    def loss(self, tokens, targets):
        with torch.no_grad():
            p = self.prepare(tokens)
            y, running = torch.zeros_like(p.x), torch.ones(len(tokens), dtype=torch.bool)
            for self.iterations in range(1, 101):
                y, running = self.iterate(p, y, running)
                if not running.any():
                    break
        return self.last(tokens, targets, y)


class LstmTrainer(Trainer):
    """torch.nn.LSTM between the same norms; its gates are those of the library's block."""

    def __init__(self, problem):
        super().__init__(problem)
        D = problem["blocks.0.i"].shape[0]
        gates = [torch.from_numpy(problem[f"blocks.0.{g}"].copy()) for g in "ifgo"]
        biases = [torch.from_numpy(problem[f"blocks.0.{g}.bias"].copy()) for g in "ifgo"]
        self.lstm = torch.nn.LSTM(D, D, batch_first=True)
        with torch.no_grad():
            self.lstm.weight_ih_l0.copy_(torch.cat([g[:, :D] for g in gates]))
            self.lstm.weight_hh_l0.copy_(torch.cat([g[:, D:] for g in gates]))
            self.lstm.bias_ih_l0.copy_(torch.cat(biases))
            self.lstm.bias_hh_l0.zero_()
        for g in "ifgo":
            for name in (f"blocks.0.{g}", f"blocks.0.{g}.bias"):
                del self.theta[name]
        of_lstm = {f"lstm.{name}": p for name, p in self.lstm.named_parameters() if name != "bias_hh_l0"}
        self.lstm.bias_hh_l0.requires_grad_(False)  # one bias, as in the library
        self.theta |= of_lstm
        all_of_them = self.theta.values()
        self.optimise([p for p in all_of_them if p.ndim == 2], [p for p in all_of_them if p.ndim < 2])

    def loss(self, tokens, targets):
        x_in = self.theta["embedding"][tokens]
        u = F.rms_norm(x_in, x_in.shape[-1:], self.theta["blocks.0.norm.weight"], fp_mamba.EPSILON)
        y = x_in + self.lstm(u)[0] @ self.theta["blocks.0.out"].T
        return self.logits_loss(y, targets)
