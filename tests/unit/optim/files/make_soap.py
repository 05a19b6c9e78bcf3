#!/usr/bin/env python3
"""Writes soap.safetensors beside itself: SOAP of pytorch_optimizer (PyPI) over twelve given gradients of a matrix."""
import os

import torch
from pytorch_optimizer import SOAP
from safetensors.torch import save_file

torch.manual_seed(5)
start = torch.randn(5, 4)
gradients = torch.randn(12, 5, 4) * torch.linspace(0.2, 2, 12)[:, None, None]
weight = torch.nn.Parameter(start.clone())
optimizer = SOAP([weight], lr=0.02, betas=(0.9, 0.95), weight_decay=0.1, precondition_frequency=3, eps=1e-8)
path = []
for gradient in gradients:
    weight.grad = gradient.clone()
    optimizer.step()
    path.append(weight.detach().clone())
save_file({"start": start, "gradients": gradients, "weights": torch.stack(path)}, os.path.join(os.path.dirname(os.path.abspath(__file__)), "soap.safetensors"))
