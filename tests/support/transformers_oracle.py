"""What Python's transformers make of exported folders: logits and greedy texts.

usage: transformers_oracle.py FOLDER...   each has ids.safetensors: ids (B, T), logits (B, T, V), prompt (1, P), as kf-host computes them
A JSON object a line: folder, class, missing and unexpected tensors, the largest difference of logits, the ids of a greedy continuation."""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import load_file

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)
for folder in sys.argv[1:]:
    expected = load_file(os.path.join(folder, "ids.safetensors"))
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager")
    model.eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        logits = model(input_ids=expected["ids"].long(), use_cache=False).logits
        prompt = expected["prompt"].long()
        written = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)[0, prompt.shape[1]:]
    print(json.dumps({"folder": os.path.basename(folder), "class": type(model).__name__, "missing": sorted(info["missing_keys"]),
                      "unexpected": sorted(info["unexpected_keys"]), "difference": (logits - expected["logits"]).abs().max().item(),
                      "largest": expected["logits"].abs().max().item(), "text": tokenizer.decode(written, skip_special_tokens=True)}))
