#!/usr/bin/env python3
"""Prints what PyTorch's optimizers make of test/users/optimizers.c, from the parameters that the program prints first: losses, parameters,
and averages of parameters; and what PyTorch's batch norm makes of norm.c.

optimizers.txt keeps the numbers for machines without PyTorch: optimizers.py PROGRAM... > optimizers.txt, with the program of each optimizer."""
import math
import pathlib
import subprocess
import sys

ROWS, WIDTH, HIDDEN, STEPS = 12, 9, 14, 24
SIZES = [HIDDEN * WIDTH, HIDDEN, 3 * HIDDEN]  # of the parameters that the program prints before the losses
GIVEN = {"groups": sum(SIZES), "adafactor": sum(SIZES), "muon": sum(SIZES), "norm": 0}


def kept_numbers():
    """{name: numbers}"""
    lines = (pathlib.Path(__file__).resolve().parent / "optimizers.txt").read_text().splitlines()
    return {name: [float(word) for word in line.split()] for name, line in (line.split(":") for line in lines)}


def main():
    for name, program in zip(GIVEN, sys.argv[1:]):
        lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
        found = trained(name, [[float(word) for word in line.split()] for line in lines[:3]]) if GIVEN[name] else normed()
        print(f"{name}: " + " ".join(f"{v:.9g}" for v in found))


def normed():
    """All numbers of norm.c."""
    import torch
    norm, found = torch.nn.BatchNorm1d(5, momentum=0.3), []
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.5)
    for step in range(8):
        x = torch.tensor([((i * 7 + step * 5) % 13 - 4) / 6 for i in range(12 * 5 * 3)], dtype=torch.float32).reshape(12, 5, 3)
        loss = ((torch.tanh(norm(x)) - 0.25) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    for values in [norm.weight, norm.bias, norm.running_mean, norm.running_var]:
        found += values.tolist()
    norm.eval()
    return found + torch.tanh(norm(x)).flatten().tolist()


def trained(name, lines):
    """All numbers, of the initial parameters."""
    import torch
    found = []
    up, bias, down = (torch.nn.Parameter(torch.tensor(values, dtype=torch.float32)) for values in lines[:3])
    up.data, down.data = up.data.reshape(HIDDEN, WIDTH), down.data.reshape(3, HIDDEN)
    params = [up, bias, down]
    if name == "groups":
        chosen = [torch.optim.AdamW([{"params": [up], "lr": 2e-2, "weight_decay": 0.1}, {"params": [bias], "lr": 1e-3, "weight_decay": 0},
                                     {"params": [down], "lr": 5e-3, "weight_decay": 0.5, "betas": (0.7, 0.999)}])]
    elif name == "adafactor":
        chosen = [torch.optim.Adafactor(params, lr=5e-2, weight_decay=0.1)]
    else:
        import torch.optim._muon as muon
        muon._zeropower_via_newtonschulz = newton_schulz
        chosen = [torch.optim.Muon([up, down], lr=2e-2), torch.optim.AdamW([bias], lr=1e-2)]
    schedules = [torch.optim.lr_scheduler.LambdaLR(chosen[0], factor)] if name == "groups" else []
    averages = None
    for step in range(STEPS):
        x = torch.tensor([((i * 7 + step * 5) % 13 - 6) / 6 for i in range(ROWS * WIDTH)], dtype=torch.float32).reshape(ROWS, WIDTH)
        y = torch.tensor([((i * 5 + step * 3) % 11 - 5) / 5 for i in range(ROWS * 3)], dtype=torch.float32).reshape(ROWS, 3)
        loss = ((torch.tanh(x @ up.T + bias) @ down.T - y) ** 2).mean()
        for p in params:
            p.grad = None
        loss.backward()
        if name == "groups":
            torch.nn.utils.clip_grad_norm_(params, 0.5)
        for optimizer in chosen + schedules:
            optimizer.step()
        averages = [p.detach().clone() for p in params] if averages is None else [0.8 * a + 0.2 * p.detach() for a, p in zip(averages, params)]
        found.append(loss.item())
    for p in params:
        found += p.detach().flatten().tolist()
    return found + (torch.tanh(x @ averages[0].T + averages[1]) @ averages[2].T).flatten().tolist()


def factor(step):
    """Up along a line over 5 steps, then down along a cosine to 0.1."""
    return (step + 1) / 5 if step < 5 else 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min((step - 5) / (STEPS - 5), 1)))


def newton_schulz(g, coefficients, steps, eps):
    """Muon's iteration in f32; PyTorch's own rounds to bf16."""
    a, b, c = coefficients
    x = g.T if g.size(0) > g.size(1) else g
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if g.size(0) > g.size(1) else x


if __name__ == "__main__":
    main()
