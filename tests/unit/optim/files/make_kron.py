#!/usr/bin/env python3
"""Writes kron.safetensors beside itself: Kron (PSGD) of pytorch_optimizer (PyPI) over given gradients of a matrix and a vector, with given
probes in place of drawn ones and without its random balancing."""
import os

import torch
from pytorch_optimizer import Kron
from pytorch_optimizer.optimizer import psgd
from safetensors.torch import save_file

torch.manual_seed(6)
steps, out = 12, {}
for name, shape in (("matrix", (5, 4)), ("vector", (6,))):
    start = torch.randn(shape)
    gradients = torch.randn(steps, *shape) * torch.linspace(0.3, 1.5, steps).view(-1, *[1] * len(shape))
    probes = torch.randn(steps, *shape)
    given = iter(probes)
    psgd.torch.randn_like = lambda *_args, **_kwargs: next(given).clone()
    weight = torch.nn.Parameter(start.clone())
    optimizer = Kron([weight], lr=0.02, momentum=0.9, weight_decay=0.1, balance_prob=0.0)
    path = []
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimizer.step()
        path.append(weight.detach().clone())
    out |= {f"{name}.start": start, f"{name}.gradients": gradients, f"{name}.probes": probes, f"{name}.weights": torch.stack(path)}
save_file(out, os.path.join(os.path.dirname(os.path.abspath(__file__)), "kron.safetensors"))
