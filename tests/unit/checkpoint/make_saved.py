#!/usr/bin/env python3
"""Makes tests/unit/checkpoint/saved again: what PyTorch writes, for the tests that read it. Needs Python's torch (made with 2.11)."""

import collections
import os
import shutil
import sys

import torch
import torch.distributed.checkpoint as dcp

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "saved")


def numbers(*shape, start=0, step=0.25):
    """What tests compute again: start, start + step, ..."""
    count = 1
    for dim in shape:
        count *= dim
    return (torch.arange(count, dtype=torch.float32) * step + start).reshape(shape)


def state_dict():
    base = numbers(4, 6)
    shared = numbers(3, 2, start=100)
    out = collections.OrderedDict()
    out["plain"] = base
    out["transposed"] = base.t()
    out["view"] = base[1:3, ::2]
    out["scalar"] = torch.tensor(2.5)
    out["empty"] = torch.empty(0, 7)
    out["shared"] = shared
    out["shared_again"] = shared
    out["parameter"] = torch.nn.Parameter(numbers(2, 3, start=-1))
    for dtype in ("float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "float8_e4m3fn"):
        out[dtype] = numbers(2, 4, step=1).to(getattr(torch, dtype))
    out["expanded"] = torch.ones(1).expand(1000)
    return out


def module():
    """A state dict as modules give it: with _metadata."""
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(numbers(2, 3))
        layer.bias.copy_(numbers(2, start=7))
    return layer.state_dict()


def main():
    os.makedirs(OUT, exist_ok=True)
    torch.save(state_dict(), os.path.join(OUT, "state.pt"))
    torch.save(state_dict(), os.path.join(OUT, "protocol_5.pt"), pickle_protocol=5)
    torch.save({k: v for k, v in state_dict().items() if not k.startswith(("uint16", "float8"))}, os.path.join(OUT, "old_format.pt"),
               _use_new_zipfile_serialization=False)
    torch.save(module(), os.path.join(OUT, "module.pt"))
    torch.save({"epoch": 3, "loss": 0.5, "model": module(), "optimizer": {"state": {}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]},
                "big": 2**80, "negative": -5, "long": 2**40, "names": {"a", "b"}, "size": torch.Size([2, 3]), "dtype": torch.bfloat16,
                "device": torch.device("cpu"), "bytes": b"\x00\xff"}, os.path.join(OUT, "training.pt"))
    prefixed = {"_orig_mod." + k: v for k, v in module().items()}
    torch.save({"state_dict": prefixed}, os.path.join(OUT, "wrapped.pt"))
    torch.save({"pytorch-lightning_version": "2.5.0", "state_dict": {"model." + k: v for k, v in module().items()}, "epoch": 1},
               os.path.join(OUT, "lightning.ckpt"))


if __name__ == "__main__":
    sys.exit(main())
