#!/usr/bin/env python3
"""Makes tiny LoRA adapters beside the Llama in data/hf/llama_tied_small, with the logits that PEFT computes with them, for tests/parity.

usage: make_peft_case.py FOLDER KF_HOST [NAME...]     needs peft, transformers 5 and torch; without names, all cases
Each case becomes FOLDER/NAME with adapter_config.json and adapter_model.safetensors as their writer left them, case.json and
expect.safetensors: input_ids, logits. PEFT writes those of THEIRS; kf-host trains and exports those of OURS, and PEFT opens them.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy
import peft
import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = os.path.join(HERE, "data", "hf", "llama_tied_small")
ROWS, LENGTH = 1, 12

# name: target_modules of PEFT, adapter.targets that say the same, rank, alpha
THEIRS = {
    "by_peft_list": (["q_proj", "v_proj"], ["q_proj", "v_proj"], 4, 8),
    "by_peft_pattern": (r".*layers\.1\.(self_attn\.(k|o)_proj|mlp\.up_proj)", ["layers.1.attention.k_proj", "layers.1.attention.o_proj", "layers.1.mlp.up_proj"], 3, 5),
    "by_peft_all_linear": ("all-linear", ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], 2, 2),
}
# name: adapter.targets, rank, alpha
OURS = {
    "by_kf_words": (["q_proj", "v_proj", "down_proj"], 4, 8),
    "by_kf_names": (["layers.0.attention.o_proj", "layers.1.mlp.gate_proj"], 3, 2.5),
}


def base_model():
    return transformers.AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32, attn_implementation="eager").eval()


def write_theirs(folder, modules, rank, alpha, seed):
    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=modules, r=rank, lora_alpha=alpha, lora_dropout=0.1)
    model = peft.get_peft_model(base_model(), config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    model.save_pretrained(folder)
    readme = os.path.join(folder, "README.md")
    if os.path.exists(readme):
        os.remove(readme)


def write_ours(host, folder, targets, rank, alpha, seed):
    with tempfile.TemporaryDirectory() as work:
        generator = numpy.random.default_rng(seed)
        numpy.save(os.path.join(work, "tokens.npy"), generator.integers(0, 131, 4096).astype(numpy.uint16))
        options = {
            "data.dataset_path": "tokens.npy", "checkpoint.init_from": BASE, "adapter.name": "lora", "adapter.targets": json.dumps(targets),
            "adapter.rank": rank, "adapter.alpha": alpha, "train.max_steps": 20, "train.batch_size": 2, "train.seq_len": 24,
            "train.mixed_precision": "fp32", "optimizer.lr": 0.02, "scheduler.warmup_steps": 2, "run.name": "adapter", "run.device": "cpu"}
        with open(os.path.join(work, "job.toml"), "w"):
            pass
        subprocess.run([host, "job.toml", *(f"--{key}={value}" for key, value in options.items())], cwd=work, check=True)
        subprocess.run([host, "adapter", "export", "runs/adapter", os.path.abspath(folder)], cwd=work, check=True)


def rename_base(folder):
    """The folder of the base model is this machine's."""
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace(BASE, "org/base"))


def logits_of(folder, ids):
    """In double precision, so that the rounding that the test sees is this program's alone."""
    with torch.no_grad():
        model = peft.PeftModel.from_pretrained(base_model(), folder).eval().double()
        return model(input_ids=ids, use_cache=False).logits.float().contiguous()


def make(folder, name, targets, rank, alpha, writer, seed):
    os.makedirs(folder, exist_ok=True)
    writer(folder, seed)
    rename_base(folder)
    ids = torch.randint(0, 131, (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))
    save_file({"input_ids": ids, "logits": logits_of(folder, ids)}, os.path.join(folder, "expect.safetensors"))
    with open(os.path.join(folder, "case.json"), "w") as file:
        json.dump({"area": "peft", "name": name, "kind": "written by " + ("peft" if name in THEIRS else "kf-host"), "base": "../../hf/llama_tied_small",
                   "targets": targets, "rank": rank, "alpha": alpha, "seed": seed, "peft": peft.__version__,
                   "transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}, file, indent=1)
        file.write("\n")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out, host, names = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:] or [*THEIRS, *OURS]
    for seed, name in enumerate([*THEIRS, *OURS]):
        if name not in names:
            continue
        folder = os.path.join(out, name)
        if name in THEIRS:
            modules, targets, rank, alpha = THEIRS[name]
            make(folder, name, targets, rank, alpha, lambda f, s: write_theirs(f, modules, rank, alpha, s), seed)
        else:
            targets, rank, alpha = OURS[name]
            make(folder, name, targets, rank, alpha, lambda f, s: write_ours(host, f, targets, rank, alpha, s), seed)
        print(name, "made")


if __name__ == "__main__":
    main()
