#!/usr/bin/env python3
"""Makes tiny Hugging Face models with what transformers computes from them, in the format that tests/parity reads.

usage: make_hf_case.py FOLDER [NAME...]     needs torch and transformers 5; without names, all of CASES
Each case becomes FOLDER/NAME with config.json and model.safetensors as save_pretrained writes them, config_v4.json (the older spelling),
case.json and expect.safetensors: input_ids, labels, logits, loss, grad.*, gen_prompt, gen_ids.
"""
import json
import os
import sys
import tempfile

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import torch
import transformers
from safetensors.torch import load_file, save_file

from hf_cases import CASES

VOCAB, ROWS, LENGTH, NEW = 97, 2, 24, 12


def build(model_type, options, seed):
    options = dict(options)
    if "text_config" not in options:
        options.setdefault("vocab_size", VOCAB)
        for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
            options.setdefault(key, None)
    config = transformers.AutoConfig.for_model(model_type, **options)
    # Falcon's eager code adds the distances twice, to the scores and to the mask; the published models were trained with one, as "sdpa" has it.
    attention = "sdpa" if getattr(config, "alibi", False) else "eager"
    config._attn_implementation = attention
    torch.manual_seed(seed)
    kind = transformers.AutoModelForImageTextToText if "text_config" in options else transformers.AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation=attention, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            # Everything counts: norms, biases and sinks away from one and zero, matrices large enough that logits spread.
            parameter.add_(noise * 0.2) if parameter.dim() < 2 else parameter.copy_(noise * (0.5 if "router" in name or "gate.weight" in name else 0.15))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias") and buffer.numel() > 0:
                buffer.copy_(torch.randn(buffer.shape, generator=generator) * 0.1)
            if name.endswith("layer_scalar"):
                buffer.fill_(1 + 0.3 * torch.randn(1, generator=generator).item())
    for name, buffer in model.named_buffers():
        if name.endswith("layer_scalar"):  # ours learns
            buffer.requires_grad_(True)
    return model


def gradients_as_saved(model):
    """The gradients under the names and in the layout of the file: a copy of the model holds them as weights."""
    kept = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    buffers = {name: buffer.detach().clone() for name, buffer in model.named_buffers()
               if name.endswith(("e_score_correction_bias", "layer_scalar"))}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.grad if parameter.grad is not None else torch.zeros_like(parameter))
        for name, buffer in model.named_buffers():
            if name in buffers:
                buffer.copy_(buffer.grad) if buffer.grad is not None else buffer.zero_()
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            out = load_file(os.path.join(folder, "model.safetensors"))
        for name, parameter in model.named_parameters():
            parameter.copy_(kept[name])
        for name, buffer in model.named_buffers():
            if name in buffers:
                buffer.copy_(buffers[name])
    return out


def older_spelling(config):
    if "text_config" in config:
        return None
    old = dict(config)
    if "dtype" in old:
        old["torch_dtype"] = old.pop("dtype")
    rope = old.pop("rope_parameters", None)
    if rope and any(isinstance(value, dict) for value in rope.values()):
        return None
    if rope:
        rope = dict(rope)
        old["rope_theta"] = rope.pop("rope_theta", 10000.0)
        if "partial_rotary_factor" in rope:
            old["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
        old["rope_scaling"] = None if rope.get("rope_type", "default") == "default" else rope
    return old


def make(folder, name, model_type, options, seed):
    model = build(model_type, options, seed)
    os.makedirs(folder, exist_ok=True)
    model.save_pretrained(folder)
    generation = os.path.join(folder, "generation_config.json")
    if os.path.exists(generation):
        os.remove(generation)
    generator = torch.Generator().manual_seed(seed + 1)
    vocab = model.config.get_text_config().vocab_size
    ids = torch.randint(0, vocab, (ROWS, LENGTH), generator=generator)
    labels = ids.clone()
    labels[:, :5] = -100
    model.zero_grad()
    speaker = model.language_model if model_type == "llama4" else model  # the whole class wants pictures
    logits = speaker(input_ids=ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    loss.backward()
    expect = {"input_ids": ids, "labels": labels, "logits": logits.detach().contiguous(), "loss": loss.detach()}
    for key, value in gradients_as_saved(model).items():
        expect["grad." + key] = value.contiguous()
    prompt = ids[:1, :6]
    sequence = prompt
    with torch.no_grad():
        for _ in range(NEW):
            sequence = torch.cat([sequence, speaker(input_ids=sequence, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)], 1)
    expect["gen_prompt"] = prompt.clone()
    expect["gen_ids"] = sequence[:, 6:].clone()
    save_file(expect, os.path.join(folder, "expect.safetensors"))
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    old = older_spelling(config)
    if old:
        with open(os.path.join(folder, "config_v4.json"), "w") as file:
            json.dump(old, file, indent=1)
    with open(os.path.join(folder, "case.json"), "w") as file:
        json.dump({"name": name, "model_type": model_type, "seed": seed, "transformers": transformers.__version__, "torch": torch.__version__,
                   "loss": loss.item()}, file)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    names = sys.argv[2:] or list(CASES)
    for seed, name in enumerate(CASES):
        if name in names:
            model_type, options = CASES[name]
            try:
                make(os.path.join(sys.argv[1], name), name, model_type, options, 100 + seed)
                print(name, "made")
            except Exception as error:  # the others still are made
                print(name, "FAILED:", type(error).__name__, str(error)[:300])


if __name__ == "__main__":
    main()
