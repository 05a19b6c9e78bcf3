"""The model of `bench steps` in plain PyTorch, as people write it, and a training step of it.

usage: torch_step.py CASE [--form eager|compile] [--warmup N] [--steps N] [--serve]

CASE is a folder that `bench steps` makes: case.json (the shape), weights.safetensors (initial weights) and batches.bin (int64: for each step
tokens, labels and, packed, documents; they repeat behind the last). Prints one line of JSON:
  first    when the first step was over (seconds since 1970)       start    when this process began
  losses   of the first case.checked steps                         seconds  of each of the `steps` behind the warm-up
  memory   the most that the process ever held, bytes
--serve reads numbers from standard input, makes so many steps for each, and prints such a line for each.
"""
import time

START = time.time()

import argparse
import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotate(x, cos, sin):  # (B, H, T, D)
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.width = c.heads, c.kv_heads, c.dim // c.heads
        self.q_proj = nn.Linear(c.dim, c.heads * self.width, bias=False)
        self.k_proj = nn.Linear(c.dim, c.kv_heads * self.width, bias=False)
        self.v_proj = nn.Linear(c.dim, c.kv_heads * self.width, bias=False)
        self.o_proj = nn.Linear(c.heads * self.width, c.dim, bias=False)

    def forward(self, x, cos, sin, mask):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.width).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.kv_heads, self.width).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.kv_heads, self.width).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=self.heads != self.kv_heads)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.top_k = c.top_k
        self.router = nn.ModuleDict({"gate": nn.Linear(c.dim, c.experts, bias=False)})
        self.experts = nn.ModuleList(SwiGLU(c.dim, c.hidden) for _ in range(c.experts))

    def forward(self, x):
        flat = x.reshape(-1, x.size(-1))
        weights, chosen = self.router["gate"](flat).float().softmax(-1).topk(self.top_k, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == number)
            out.index_add_(0, token, expert(flat[token]) * weights[token, slot, None])
        return out.view_as(x)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attention_norm = RMSNorm(c.dim, c.eps)
        self.attention = Attention(c)
        self.mlp_norm = RMSNorm(c.dim, c.eps)
        self.mlp = Experts(c) if c.experts else SwiGLU(c.dim, c.hidden)

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.attention_norm(x), cos, sin, mask)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.token_embedding = nn.ModuleDict({"embedding": nn.Embedding(c.vocab, c.dim)})
        self.layers = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = RMSNorm(c.dim, c.eps)
        self.output_head = nn.ModuleDict({"proj": nn.Linear(c.dim, c.vocab, bias=False)})
        width = c.dim // c.heads
        angles = torch.outer(torch.arange(c.length).float(), c.theta ** (-torch.arange(0, width, 2).float() / width)).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens, mask=None):
        x = self.token_embedding["embedding"](tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, mask)
        return self.output_head["proj"](self.norm(x))


class Trainee:
    """The peer gets what is fastest for it: a fused AdamW, and in bf16 weights of bf16 (no masters, no casts in a step)."""

    def __init__(self, case, folder, form):
        self.case = case
        with torch.device("meta"):
            self.model = Transformer(case)
        self.model.to_empty(device="cpu")
        self.model.load_state_dict(load_file(os.path.join(folder, "weights.safetensors")))
        fresh = Transformer(argparse.Namespace(**{**vars(case), "layers": 0, "vocab": 1}))  # what no file holds: the angles
        self.model.cos, self.model.sin = fresh.cos, fresh.sin
        if case.precision == "bf16":
            self.model.to(torch.bfloat16)
        matrices = [p for p in self.model.parameters() if p.dim() >= 2]
        vectors = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": case.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=case.lr, betas=tuple(case.betas), eps=case.adam_eps, fused=True)
        self.loss = torch.compile(self.loss_of) if form == "compile" else self.loss_of
        kinds = 3 if case.packed else 2
        raw = torch.from_file(os.path.join(folder, "batches.bin"), dtype=torch.int64, size=case.batches * kinds * case.batch * case.length)
        self.batches = raw.view(case.batches, kinds, case.batch, case.length)
        self.done = 0

    def loss_of(self, tokens, labels, mask):
        logits = self.model(tokens, mask)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))

    def mask_of(self, documents):  # (B, 1, T, T)
        same = documents[:, None, :, None] == documents[:, None, None, :]
        return same & torch.ones(self.case.length, self.case.length, dtype=torch.bool).tril()

    def step(self):
        parts = self.batches[self.done % self.case.batches]
        self.done += 1
        loss = self.loss(parts[0], parts[1], self.mask_of(parts[2]) if self.case.packed else None)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.case.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


def peak_memory():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--form", choices=["eager", "compile"], default="eager")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    with open(os.path.join(args.case, "case.json")) as file:
        case = argparse.Namespace(**json.load(file))
    torch.manual_seed(0)
    trainee = Trainee(case, args.case, args.form)
    losses = [trainee.step()]
    first = time.time()
    losses += [trainee.step() for _ in range(max(case.checked, args.warmup) - 1)]

    def timed(steps):
        seconds = []
        for _ in range(steps):
            begin = time.perf_counter()
            trainee.step()
            seconds.append(time.perf_counter() - begin)
        told = {"start": START, "first": first, "losses": losses[: case.checked], "seconds": seconds, "memory": peak_memory()}
        print(json.dumps(told), flush=True)

    for steps in sys.stdin if args.serve else [args.steps]:
        timed(int(steps))


if __name__ == "__main__":
    main()
