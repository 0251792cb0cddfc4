#!/usr/bin/env python3
"""The models of gpu_check in PyTorch: tokens a second of training steps (bf16 autocast, fused AdamW, torch.compile), and milliseconds of attention.

    torch_models.py gpt2 --batch 32      torch_models.py llama --batch 16      torch_models.py attention

A batch for which there is not enough memory is halved, and the output says so.
"""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SEQ = 1024


class Attention(nn.Module):
    def __init__(self, width, heads, bias, rotary):
        super().__init__()
        self.heads, self.rotary = heads, rotary
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)
        if rotary:
            d = width // heads
            angle = torch.outer(torch.arange(SEQ), 10000.0 ** (-torch.arange(0, d, 2) / d))
            self.register_buffer("cos", torch.cat([angle.cos()] * 2, -1), persistent=False)
            self.register_buffer("sin", torch.cat([-angle.sin(), angle.sin()], -1), persistent=False)

    def turn(self, x):
        return x * self.cos.to(x.dtype) + x.roll(x.shape[-1] // 2, -1) * self.sin.to(x.dtype)

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = (t.view(b, s, self.heads, w // self.heads).transpose(1, 2) for t in self.qkv(x).split(w, -1))
        if self.rotary:
            q, k = self.turn(q), self.turn(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, s, w))


class GPT2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, True, False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, heads, False, True)
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((width, hidden), (width, hidden), (hidden, width)))

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, name):
        super().__init__()
        gpt = name == "gpt2"
        vocab, width, layers = (50304, 768, 12) if gpt else (32000, 2048, 24)
        self.tokens = nn.Embedding(vocab, width)
        self.places = nn.Embedding(SEQ, width) if gpt else None
        self.blocks = nn.ModuleList(GPT2Block(width, 12) if gpt else LlamaBlock(width, 16, 5504) for _ in range(layers))
        self.norm = nn.LayerNorm(width) if gpt else nn.RMSNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        if gpt:
            self.head.weight = self.tokens.weight

    def forward(self, ids, targets):
        x = self.tokens(ids)
        if self.places is not None:
            x = x + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1))


def train(name, batch, steps):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Model(name).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(0, 256, (batch, SEQ + 1), device="cuda")
    step_model = torch.compile(model)

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step_model(ids[:, :-1], ids[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    start = time.monotonic()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return batch * SEQ * steps / (time.monotonic() - start)


def train_largest(name, batch, steps):
    wanted = batch
    while True:
        try:
            rate = train(name, batch, steps)
            break
        except torch.cuda.OutOfMemoryError:
            batch //= 2
        torch.cuda.empty_cache()  # only now are the tensors of the failed try gone
        torch._dynamo.reset()
    print(f"{rate:.1f} tokens/s" + (f" with a batch of {batch}" if batch < wanted else ""))


def attention(steps):
    """Forward and backward of causal attention, sequence 4096, heads of 128, 4 rows of 16 heads: milliseconds, as attention_speed prints them."""
    q, k, v = (torch.randn(4, 16, 4096, 128, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    dy = torch.randn_like(q)

    def measure(work):
        for _ in range(3):
            work()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(steps):
            work()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / steps

    for causal in (False, True):
        forward = measure(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        backward = measure(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True))
        print(f"{'causal' if causal else 'full'} forward {forward:.4f} backward {backward:.4f}")


if __name__ == "__main__":
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("what", choices=["gpt2", "llama", "attention"])
    a.add_argument("--batch", type=int, default=8)
    a.add_argument("--steps", type=int, default=20)
    a.add_argument("--memory", type=float, default=76, help="gigabytes of the card that may be used")
    a = a.parse_args()
    torch.cuda.set_per_process_memory_fraction(min(1.0, a.memory * 1e9 / torch.cuda.get_device_properties(0).total_memory))
    attention(a.steps) if a.what == "attention" else train_largest(a.what, a.batch, a.steps)
