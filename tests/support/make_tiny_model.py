#!/usr/bin/env python3
"""Makes examples/hub-stand-in/root/kf-host/tiny again: a Llama of 13,000 random weights in two shards, with a tokenizer.

Needs nothing but Python. The weights come from a generator of its own, so every run writes the same bytes.
"""

import json
import os
import shutil
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "examples")
OUT = os.path.join(ROOT, "hub-stand-in", "root", "kf-host", "tiny")
VOCAB, DIM, HIDDEN, LAYERS, HEADS = 512, 16, 32, 2, 2


def draws(count, scale):
    """bfloat16 in [-scale, scale), by a linear congruential generator."""
    out = bytearray()
    for _ in range(count):
        draws.state = (draws.state * 6364136223846793005 + 1442695040888963407) % 2**64
        value = ((draws.state >> 40) / 2**23 - 1) * scale
        out += struct.pack("<f", value)[2:]
    return bytes(out)


draws.state = 1


def tensors():
    yield "model.embed_tokens.weight", (VOCAB, DIM), draws(VOCAB * DIM, 1.0)
    ones = struct.pack("<f", 1.0)[2:]
    for layer in range(LAYERS):
        base = f"model.layers.{layer}."
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield f"{base}self_attn.{name}.weight", (DIM, DIM), draws(DIM * DIM, 0.4)
        for name, shape in (("gate_proj", (HIDDEN, DIM)), ("up_proj", (HIDDEN, DIM)), ("down_proj", (DIM, HIDDEN))):
            yield f"{base}mlp.{name}.weight", shape, draws(shape[0] * shape[1], 0.4)
        yield base + "input_layernorm.weight", (DIM,), ones * DIM
        yield base + "post_attention_layernorm.weight", (DIM,), ones * DIM
    yield "model.norm.weight", (DIM,), ones * DIM


def write(path, items):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape, content in items:
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def write_json(name, value):
    with open(os.path.join(OUT, name), "w") as out:
        json.dump(value, out, indent=1)
        out.write("\n")


os.makedirs(OUT, exist_ok=True)
everything = list(tensors())
shards = {"model-00001-of-00002.safetensors": everything[:6], "model-00002-of-00002.safetensors": everything[6:]}
for name, items in shards.items():
    write(os.path.join(OUT, name), items)
write_json("model.safetensors.index.json", {
    "metadata": {"total_size": sum(len(item[2]) for item in everything)},
    "weight_map": {item[0]: name for name, items in shards.items() for item in items},
})
write_json("config.json", {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": DIM, "intermediate_size": HIDDEN,
    "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "bos_token_id": None, "eos_token_id": 0,
})
write_json("generation_config.json", {"eos_token_id": 0})
shutil.copy(os.path.join(ROOT, "own-tokenizer", "tokenizer.json"), OUT)
write_json("tokenizer_config.json", {"eos_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"})
