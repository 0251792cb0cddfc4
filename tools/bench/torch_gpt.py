#!/usr/bin/env python3
"""Trains the GPT of examples/gpt in PyTorch on CPU ranks, as users of PyTorch write it.

    torch_gpt.py dp|tp RANKS LAYERS WIDTH HEADS BATCH SEQ STEPS

Prints the median tokens a second of training steps, and the last loss (dp: of rank 0's rows). dp is
DistributedDataParallel. tp is DTensor: heads, hidden layer and vocabulary are cut, and the loss is
computed on cut logits. Communication is gloo; each rank has one thread; all steps use the same
batch. Needs torch from PyPI.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

VOCAB, WARM = 256, 3


class Block(nn.Module):
    """A pre-norm block; x (batch, seq, width). The projections' sizes give the rank's heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.each = width // heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, self.each)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers, width, heads, seq):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, width), nn.Embedding(seq, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, VOCAB, bias=False)
        self.tie()
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def tie(self):
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def cut(model, mesh):
    """Applies Megatron's tensor parallelism by DTensor."""
    columns, rows = ColwiseParallel, RowwiseParallel
    for block in model.blocks:
        parallelize_module(block, mesh, {"q": columns(), "k": columns(), "v": columns(), "out": rows(), "up": columns(), "down": rows()})
    parallelize_module(model, mesh, {"tokens": rows(input_layouts=Replicate()), "head": columns(output_layouts=Shard(-1), use_local_output=False)})
    model.tie()
    return model


def train(rank, kind, ranks, layers, width, heads, batch, seq, steps, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = GPT(layers, width, heads, seq)
    text = torch.randint(0, VOCAB, (batch, seq + 1), generator=torch.Generator().manual_seed(2))
    if kind == "dp":
        model, text = DistributedDataParallel(model), text.tensor_split(ranks)[rank]
    else:
        model = cut(model, init_device_mesh("cpu", (ranks,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    taken = []
    for _ in range(WARM + steps):
        dist.barrier()
        start = time.monotonic()
        with loss_parallel():
            loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        taken.append(time.monotonic() - start)
    loss = loss.detach() if kind == "dp" else loss.detach().full_tensor()
    if rank == 0:
        print(f"{batch * seq / statistics.median(taken[WARM:]):.1f} tokens/s, loss {float(loss):.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    kind, ranks, *sizes = sys.argv[1], *map(int, sys.argv[2:])
    torch.multiprocessing.spawn(train, (kind, ranks, *sizes, 20000 + os.getpid() % 20000), ranks)
