#!/usr/bin/env python3
"""Makes tests/unit/checkpoint/saved again: what PyTorch writes, for the tests that read it. Needs Python's torch (made with 2.11) and numpy."""

import argparse
import collections
import json
import os
import pathlib
import shutil
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

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


VOCAB, DIM, HIDDEN, LAYERS, KV = 11, 8, 12, 2, 4


def model():
    """A model under our names, which are KempnerForge's: tensor k in the order of names is k, k + 1/1024, ..."""
    shapes = {"token_embedding.embedding.weight": (VOCAB, DIM), "norm.weight": (DIM,), "output_head.proj.weight": (VOCAB, DIM)}
    for layer in range(LAYERS):
        base = f"layers.{layer}."
        for name, shape in (("attention.q_proj", (DIM, DIM)), ("attention.k_proj", (KV, DIM)), ("attention.v_proj", (KV, DIM)),
                            ("attention.o_proj", (DIM, DIM)), ("attention_norm", (DIM,)), ("mlp_norm", (DIM,)),
                            ("mlp.gate_proj", (HIDDEN, DIM)), ("mlp.up_proj", (HIDDEN, DIM)), ("mlp.down_proj", (DIM, HIDDEN))):
            shapes[base + name + ".weight"] = shape
    return {name: numbers(*shapes[name], start=k, step=1 / 1024) for k, name in enumerate(sorted(shapes))}


def huggingface_names(weights):
    out = {}
    for name, tensor in weights.items():
        for ours, theirs in (("token_embedding.embedding", "model.embed_tokens"), ("output_head.proj", "lm_head"), ("layers.", "model.layers."),
                             ("attention_norm", "input_layernorm"), ("mlp_norm", "post_attention_layernorm"), (".attention.", ".self_attn.")):
            name = name.replace(ours, theirs)
        out["model.norm.weight" if name == "norm.weight" else name] = tensor
    return out


def huggingface():
    """A Llama in two pickled shards."""
    folder = os.path.join(OUT, "huggingface")
    os.makedirs(folder)
    weights = huggingface_names(model())
    names = sorted(weights)
    files = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
    where = {name: files[k % 2] for k, name in enumerate(names)}
    for file in files:
        torch.save({name: weights[name] for name in names if where[name] == file}, os.path.join(folder, file))
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": DIM, "intermediate_size": HIDDEN,
              "num_hidden_layers": LAYERS, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": VOCAB,
              "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False}
    for name, value in (("config.json", config), ("pytorch_model.bin.index.json", {"metadata": {}, "weight_map": where})):
        with open(os.path.join(folder, name), "w") as out:
            json.dump(value, out, indent=1)
            out.write("\n")


def shards(rank, port):
    """Two ranks: matrices by rows, output projections by columns, norms whole; a model and an optimizer, as KempnerForge saves them."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))

    def split(name, tensor):
        if tensor.dim() < 2:
            return tensor
        return distribute_tensor(tensor, mesh, [Shard(1 if name.endswith("o_proj.weight") else 0)])

    weights = {name: split(name, tensor) for name, tensor in model().items()}
    moments = {name: split(name, tensor * 0) for name, tensor in model().items()}
    dcp.save({"model": weights, "optimizer": {"state": moments, "lr": 0.1}}, checkpoint_id=os.path.join(OUT, "distributed", "step_10"))
    dist.destroy_process_group()


def stages():
    """Two pipeline stages, a folder each."""
    for stage in range(2):
        own = {name: tensor.to(torch.bfloat16) for name, tensor in model().items()
               if (name.startswith(("layers.1", "norm", "output"))) == (stage == 1)}
        dcp.save({"model": own}, checkpoint_id=os.path.join(OUT, "stages", f"pp{stage}"), no_dist=True)


def nested():
    """A model deeper inside, as PyTorch's own examples save it."""
    weights = {name: tensor.to(torch.bfloat16) for name, tensor in model().items()}
    dcp.save({"app": {"model": weights, "step": 3}}, checkpoint_id=pathlib.Path(OUT) / "nested", no_dist=True)


def gpt2(bias):
    """A GPT-2 with nn.Linear's matrices, as nanoGPT and llm.c have it: tensor k in the order of names is k, k + 1/1024, ..."""
    shapes = {"transformer.wte.weight": (VOCAB, DIM), "transformer.wpe.weight": (16, DIM), "transformer.ln_f.weight": (DIM,)}
    for layer in range(LAYERS):
        base = f"transformer.h.{layer}."
        for name, shape in (("ln_1", (DIM,)), ("attn.c_attn", (3 * DIM, DIM)), ("attn.c_proj", (DIM, DIM)), ("ln_2", (DIM,)),
                            ("mlp.c_fc", (4 * DIM, DIM)), ("mlp.c_proj", (DIM, 4 * DIM))):
            shapes[base + name + ".weight"] = shape
    if bias:
        shapes.update({name[:-6] + "bias": shape[:1] for name, shape in list(shapes.items()) if ".wte" not in name and ".wpe" not in name})
    return {name: numbers(*shapes[name], start=k, step=1 / 1024) for k, name in enumerate(sorted(shapes))}


def nanogpt():
    for name, bias in (("nanogpt.pt", False), ("nanogpt_bias.pt", True)):
        weights = gpt2(bias)
        weights["lm_head.weight"] = weights["transformer.wte.weight"]
        weights["transformer.h.0.attn.bias"] = torch.ones(1, 1, 16, 16).tril()
        args = {"n_layer": LAYERS, "n_head": 2, "n_embd": DIM, "block_size": 16, "bias": bias, "vocab_size": VOCAB, "dropout": 0.0}
        torch.save({"model": {"_orig_mod." + key: value for key, value in weights.items()}, "optimizer": {"state": {}, "param_groups": []},
                    "model_args": args, "iter_num": 7, "best_val_loss": torch.tensor(2.5), "config": {"dataset": "shakespeare"}},
                   os.path.join(OUT, name))


def llmc():
    weights = gpt2(True)
    parts = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
    names = ["transformer.wpe.weight"] + [f"transformer.h.{layer}.{part}.{kind}" for part in parts for kind in ("weight", "bias")
                                          for layer in range(LAYERS)] + ["transformer.ln_f.weight", "transformer.ln_f.bias"]
    padded = torch.cat([weights["transformer.wte.weight"], torch.zeros(16 - VOCAB, DIM)])
    for name, version, dtype in (("llmc.bin", 3, torch.float32), ("llmc_bf16.bin", 5, torch.bfloat16)):
        header = torch.zeros(256, dtype=torch.int32)
        header[:8] = torch.tensor([20240326, version, 16, VOCAB, LAYERS, 2, DIM, 16])
        with open(os.path.join(OUT, name), "wb") as out:
            for tensor in [header, padded.to(dtype)] + [weights[key].to(dtype) for key in names]:
                out.write(bytes(tensor.contiguous().flatten().view(torch.uint8).tolist()))


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    torch.save({"model": model()}, os.path.join(OUT, "model.pt"))
    torch.save({"module." + name: tensor.t().contiguous().t() for name, tensor in model().items()}, os.path.join(OUT, "columns.pth"))
    huggingface()
    torch.multiprocessing.spawn(shards, args=(29533,), nprocs=2)
    stages()
    nested()
    nanogpt()
    llmc()
    torch.save(state_dict(), os.path.join(OUT, "state.pt"))
    torch.save(state_dict(), os.path.join(OUT, "protocol_5.pt"), pickle_protocol=5)
    torch.save({k: v for k, v in state_dict().items() if not k.startswith(("uint16", "float8"))}, os.path.join(OUT, "old_format.pt"),
               _use_new_zipfile_serialization=False)
    torch.save(module(), os.path.join(OUT, "module.pt"))
    torch.save({"fine": numbers(2), "negative": torch.ones(2)._neg_view()}, os.path.join(OUT, "negative.pt"))
    torch.jit.script(torch.nn.Identity()).save(os.path.join(OUT, "script.pt"))
    torch.save({"epoch": 3, "loss": 0.5, "model": module(), "optimizer": {"state": {}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]},
                "big": 2**80, "negative": -5, "long": 2**40, "names": {"a", "b"}, "size": torch.Size([2, 3]), "dtype": torch.bfloat16,
                "device": torch.device("cpu"), "bytes": b"\x00\xff", "numpy": np.float64(0.5), "random": np.arange(3), "args": argparse.Namespace(lr=0.1)}, os.path.join(OUT, "training.pt"))
    prefixed = {"_orig_mod." + k: v for k, v in module().items()}
    torch.save({"state_dict": prefixed}, os.path.join(OUT, "wrapped.pt"))
    torch.save({"pytorch-lightning_version": "2.5.0", "state_dict": {"model." + k: v for k, v in module().items()}, "epoch": 1},
               os.path.join(OUT, "lightning.ckpt"))


if __name__ == "__main__":
    sys.exit(main())
