#!/usr/bin/env python3
"""Trains a twin of a model of this folder in PyTorch, as users of PyTorch write it.

    twins.py MODEL FOLDER THREADS eager|compiled [--bf16]

FOLDER has the inputs (models.py writes them), and the weights that hetucc's program has written;
the twin begins with the same ones. A line with a number on standard input trains as many steps; the
answer is a line with the least milliseconds of a step and the last loss. After the last line, prints
the bytes of the peak memory beyond those after the import of torch.
"""
import math
import pathlib
import sys
import time

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F


def status_bytes(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Shortcut(nn.Sequential):
    def __init__(self, inputs, outputs, stride):
        same = stride == 1 and inputs == outputs
        super().__init__(*(() if same else (convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))))


class Basic(nn.Module):
    each = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(convolution(inputs, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(),
                                  convolution(width, width, 3, 1), nn.BatchNorm2d(width))
        self.short = Shortcut(inputs, width, stride)

    def forward(self, x):
        return F.relu(self.short(x) + self.body(x))


class Bottleneck(nn.Module):
    each = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(convolution(inputs, width, 1, 1), nn.BatchNorm2d(width), nn.ReLU(),
                                  convolution(width, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(),
                                  convolution(width, 4 * width, 1, 1), nn.BatchNorm2d(4 * width))
        self.short = Shortcut(inputs, 4 * width, stride)

    def forward(self, x):
        return F.relu(self.short(x) + self.body(x))


class ResNet(nn.Module):
    def __init__(self, stem, block, counts, classes):
        super().__init__()
        width, blocks = 64, []
        for group, count in enumerate(counts):
            for l in range(count):
                blocks.append(block(width, 64 << group, 2 if group and not l else 1))
                width = block.each * 64 << group
        self.body, self.head = nn.Sequential(*stem, *blocks), nn.Linear(width, classes)

    def forward(self, x, y):
        return F.cross_entropy(self.head(self.body(x).mean((2, 3))), y)


def resnet18():
    return ResNet([convolution(3, 64, 3, 1), nn.BatchNorm2d(64), nn.ReLU()], Basic, (2, 2, 2, 2), 10)


def resnet50():
    stem = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return ResNet(stem, Bottleneck, (3, 4, 6, 3), 1000)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down0, self.down1, self.middle = self.twice(3, 32), self.twice(32, 64), self.twice(64, 128)
        self.up1, self.up0, self.last = self.twice(192, 64), self.twice(96, 32), convolution(32, 3, 3, 1)

    @staticmethod
    def twice(inputs, width):
        return nn.Sequential(convolution(inputs, width, 3, 1), nn.GroupNorm(8, width), nn.SiLU(),
                             convolution(width, width, 3, 1), nn.GroupNorm(8, width), nn.SiLU())

    def forward(self, x, y):
        seen0 = self.down0(x)
        seen1 = self.down1(F.avg_pool2d(seen0, 2))
        x = self.middle(F.avg_pool2d(seen1, 2))
        x = self.up1(torch.cat((F.interpolate(x, scale_factor=2), seen1), 1))
        x = self.up0(torch.cat((F.interpolate(x, scale_factor=2), seen0), 1))
        return F.mse_loss(self.last(x), y)


class Attention(nn.Module):
    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).flatten(2))


class FeedForward(nn.Sequential):
    def __init__(self, width, approximate):
        super().__init__(nn.Linear(width, 4 * width), nn.GELU(approximate), nn.Linear(4 * width, width))


class Block(nn.Module):
    """A pre-norm block of a transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm0, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm1, self.fed = nn.LayerNorm(width), FeedForward(width, "tanh")

    def forward(self, x):
        x = x + self.attention(self.norm0(x))
        return x + self.fed(self.norm1(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.at = nn.Parameter(torch.empty(1, 1, 192)), nn.Parameter(torch.empty(197, 192))
        self.patch = nn.Conv2d(3, 192, 16, 16)
        self.blocks = nn.Sequential(*(Block(192, 3) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(192), nn.Linear(192, 1000)

    def forward(self, x, y):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), 1, 192), x), 1) + self.at
        return F.cross_entropy(self.head(self.norm(self.blocks(x))[:, 0]), y)


def normed(x):
    return F.layer_norm(x, x.shape[-1:])


class DiffusionBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.condition, self.attention = nn.Linear(width, 6 * width), Attention(width, heads)
        self.fed = FeedForward(width, "tanh")

    def forward(self, x, told):
        offset0, factor0, gate0, offset1, factor1, gate1 = self.condition(F.silu(told)).unsqueeze(1).chunk(6, -1)
        x = x + gate0 * self.attention(normed(x) * (1 + factor0) + offset0)
        return x + gate1 * self.fed(normed(x) * (1 + factor1) + offset1)


class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(192, 192), nn.SiLU(), nn.Linear(192, 192))
        self.patch, self.at = nn.Conv2d(3, 192, 4, 4), nn.Parameter(torch.empty(64, 192))
        self.blocks, self.last = nn.ModuleList(DiffusionBlock(192, 6) for _ in range(6)), nn.Linear(192, 48)

    def forward(self, images, noise, time):
        kept, added = ((f(time * (math.pi / 2))).view(-1, 1, 1, 1) for f in (torch.cos, torch.sin))
        angle = 1000 * time[:, None] * torch.exp(torch.arange(96) * (-math.log(10000) / 96))
        told = self.time(torch.cat((angle.sin(), angle.cos()), 1))
        x = self.patch(images * kept + noise * added).flatten(2).transpose(1, 2) + self.at
        for block in self.blocks:
            x = block(x, told)
        made = self.last(normed(x)).view(-1, 8, 8, 3, 4, 4).permute(0, 3, 1, 4, 2, 5).reshape(images.shape)
        return F.mse_loss(made, noise)


class Words(nn.Module):
    """A model of sequences: `body` between a table of tokens and the loss of the tokens that come next."""

    def __init__(self, vocab, width, body):
        super().__init__()
        self.table, self.body, self.head = nn.Embedding(vocab, width), body, nn.Linear(width, vocab)

    def forward(self, x, y):
        x = self.body(self.table(x))
        x = x[0] if isinstance(x, tuple) else x  # of an nn.LSTM, also its states
        return F.cross_entropy(self.head(x).flatten(0, 1), y.flatten())


class BertBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.norm0 = Attention(width, heads), nn.LayerNorm(width)
        self.fed, self.norm1 = FeedForward(width, "none"), nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm0(x + self.attention(x))
        return self.norm1(x + self.fed(x))


class Placed(nn.Module):
    def __init__(self, places, width):
        super().__init__()
        self.at, self.norm = nn.Parameter(torch.empty(places, width)), nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + self.at)


class Experts(nn.Module):
    """Each place goes to two experts by products with one-hot numbers, as long as they have room."""

    def __init__(self, width, experts, room):
        super().__init__()
        self.experts, self.room, self.gate = experts, room, nn.Linear(width, experts)
        self.up = nn.Parameter(torch.empty(experts, width, 4 * width))
        self.down = nn.Parameter(torch.empty(experts, 4 * width, width))

    def forward(self, x):
        share = self.gate(x).softmax(-1)
        best = F.one_hot(share.argmax(-1), self.experts)
        chosen = best + F.one_hot((share * (1 - best)).argmax(-1), self.experts)
        at = torch.where(chosen > 0, chosen.cumsum(1) - chosen, -1)
        send = (at.unsqueeze(-1) == torch.arange(self.room)).to(x.dtype)
        made = F.gelu(torch.einsum("ebrw,ewf->ebrf", torch.einsum("bper,bpw->ebrw", send, x), self.up), approximate="tanh")
        made = torch.einsum("ebrf,efw->ebrw", made, self.down)
        return torch.einsum("bper,ebrw,bpe->bpw", send, made, share)


class ExpertBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm0, self.attention = nn.LayerNorm(128), Attention(128, 4, True)
        self.norm1, self.experts = nn.LayerNorm(128), Experts(128, 8, 16)

    def forward(self, x):
        x = x + self.attention(self.norm0(x))
        return x + self.experts(self.norm1(x))


def turned(x, base=10000):
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(half) / half)
    cos, sin, (a, b) = angle.cos(), angle.sin(), x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, ffn):
        super().__init__()
        each = width // heads
        self.each, self.norm0 = each, nn.RMSNorm(width, 1e-5)
        self.q, self.k, self.v, self.out = (nn.Linear(width, n * each, bias=False) for n in (heads, groups, groups, heads))
        self.norm1 = nn.RMSNorm(width, 1e-5)
        self.gate, self.up = (nn.Linear(width, ffn, bias=False) for _ in range(2))
        self.down = nn.Linear(ffn, width, bias=False)

    def forward(self, x):
        n = self.norm0(x)
        q, k, v = (f(n).unflatten(-1, (-1, self.each)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        n = self.norm1(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Scan(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, (self.key, self.value, self.gate, self.out) = nn.LayerNorm(width), (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        n = self.norm(x)
        weight = self.key(n).exp()
        y = (weight * self.value(n)).cumsum(1) / weight.cumsum(1)
        return x + self.out(self.gate(n).sigmoid() * y)


class MLP(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(64, 256), nn.GELU("tanh"), nn.Linear(256, 64))

    def forward(self, x):
        return F.mse_loss(super().forward(x), x)


class Recommender(nn.Module):
    def __init__(self, sparse=False):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, 32))
        self.tables = nn.ModuleList(nn.EmbeddingBag(20000, 32, mode="sum", sparse=sparse) for _ in range(8))
        self.top = nn.Sequential(nn.Linear(113, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x, y, z):
        first = self.bottom(x)
        features = torch.stack([first, *(table(ids) for table, ids in zip(self.tables, z))], 1)
        x = torch.cat((first, (features @ features.mT).flatten(1)), 1)
        return F.binary_cross_entropy_with_logits(self.top(x)[:, 0], y)


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleDict({"message": nn.Linear(128, 64), "node": nn.Linear(128, 64)}) for _ in range(3))
        self.head = nn.Linear(64, 16)

    def forward(self, x, y, z):
        start, end = z
        for layer in self.layers:
            messages = layer["message"](torch.cat((x[start], x[end]), 1)).relu()
            read = torch.zeros_like(x).index_add(0, end, messages.to(x.dtype))
            x = x + layer["node"](torch.cat((x, read), 1)).relu()
        return F.cross_entropy(self.head(x), y)


MODELS = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "unet": UNet,
    "vit": ViT,
    "lstm": lambda: Words(256, 256, nn.LSTM(256, 256, 2, batch_first=True)),
    "gru": lambda: Words(256, 256, nn.GRU(256, 256, 2, batch_first=True)),
    "bert": lambda: Words(8192, 256, nn.Sequential(Placed(128, 256), *(BertBlock(256, 4) for _ in range(4)))),
    "moe": lambda: Words(256, 128, nn.Sequential(ExpertBlock(), ExpertBlock())),
    "recommender": Recommender,
    "recommender_sparse": lambda: Recommender(sparse=True),
    "llama": lambda: Words(256, 256, nn.Sequential(*(LlamaBlock(256, 8, 4, 688) for _ in range(4)), nn.RMSNorm(256, 1e-5))),
    "mlp": MLP,
    "scan": lambda: Words(256, 256, nn.Sequential(Scan(256), Scan(256))),
    "diffusion": Diffusion,
    "graph": Graph,
}


def inputs(folder):
    """The inputs x, y and z; an index is of 64 bits, as F.cross_entropy wants them."""
    for name in "xyz":
        path = folder / f"{name}.npy"
        if path.exists():
            x = torch.from_numpy(numpy.load(path))
            yield x if x.is_floating_point() else x.long()


def weights(folder):
    """The arrays that hetucc's program has written, by name."""
    data, at, found = (folder / "weights").read_bytes(), 0, {}
    while at < len(data):
        end = data.index(b"\n", at)
        name, count = data[at:end].decode().split()
        found[name] = torch.from_numpy(numpy.frombuffer(data, numpy.float32, int(count), end + 1).copy())
        at = end + 1 + 4 * int(count)
    return found


def load(model, found):
    """Gives the parameters the program's numbers: both have declared them in the same order."""
    found = [value for name, value in found.items() if ".running." not in name]
    own = list(model.parameters())
    if [p.numel() for p in own] != [value.numel() for value in found]:
        sys.exit(f"{[p.numel() for p in own]}\n{[value.numel() for value in found]}: other parameters")
    with torch.no_grad():
        for p, value in zip(own, found):
            p.copy_(value.view_as(p))


def optimizers(model):
    sparse = [m.weight for m in model.modules() if getattr(m, "sparse", False)]
    dense = [p for p in model.parameters() if not any(p is s for s in sparse)]
    made = [torch.optim.AdamW(dense, lr=1e-3, fused=True)]
    return made + [torch.optim.SparseAdam(sparse, lr=1e-3)] if sparse else made


def main():
    kind, folder, threads, how = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(threads)
    before = status_bytes("VmRSS:")
    model = MODELS[kind]()
    load(model, weights(folder))
    batch, run = tuple(inputs(folder)), torch.compile(model) if how == "compiled" else model
    update = optimizers(model)
    for line in sys.stdin:
        least = math.inf
        for _ in range(int(line)):
            start = time.perf_counter()
            for o in update:
                o.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, "--bf16" in sys.argv):
                loss = run(*batch)
            loss.backward()
            for o in update:
                o.step()
            value = float(loss)
            least = min(least, 1e3 * (time.perf_counter() - start))
        print(f"{least:.4f} {value:.6f}", flush=True)
    print(status_bytes("VmHWM:") - before, flush=True)


if __name__ == "__main__":
    main()
