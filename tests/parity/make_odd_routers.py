#!/usr/bin/env python3
"""Makes router cases of odd widths from the formulas alone, in double precision, in the format of the golden moe cases.

usage: make_odd_routers.py FOLDER     needs numpy and safetensors
"""
import json
import math
import os
import sys

import numpy as np
from safetensors.numpy import save_file

RATE, DECAY = 0.001, 0.99
CASES = [dict(name="softmax_13", router="softmax_topk", dim=13, num_experts=5, top_k=3, seed=1),
         dict(name="softmax_one_expert", router="softmax_topk", dim=7, num_experts=3, top_k=1, seed=2),
         dict(name="sigmoid_9", router="sigmoid_topk", dim=9, num_experts=7, top_k=3, bias_schedule="constant", seed=3),
         dict(name="sigmoid_1", router="sigmoid_topk", dim=1, num_experts=3, top_k=2, bias_schedule="cosine_decay", sequence_aux_loss_weight=0.3, seed=4)]
STEPS, TOKENS, MAX_STEPS = 4, 11, 10


def rate(schedule, progress):
    return RATE * (0.5 * (1 + math.cos(math.pi * progress)) if schedule == "cosine_decay" else 1)


def drive(case):
    rng = np.random.default_rng(case["seed"])
    experts, k, softmax = case["num_experts"], case["top_k"], case["router"] == "softmax_topk"
    gate = (rng.standard_normal((experts, case["dim"])) / math.sqrt(case["dim"])).astype(np.float32)
    x = rng.standard_normal((STEPS, TOKENS, case["dim"])).astype(np.float32)
    bias = np.zeros(experts)
    ema = np.full(experts, 1 / experts)
    out = {name: [] for name in ("indices", "weights", "counts", "bias_after", "ema_after", "aux", "z", "bias_rate")}
    for step in range(STEPS):
        logits = x[step].astype(np.float64) @ gate.astype(np.float64).T
        lse = np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)) + logits.max(-1)
        scores = np.exp(logits - lse[:, None]) if softmax else 1 / (1 + np.exp(-logits))
        chosen = np.argsort(-(scores + (0 if softmax else bias)), axis=-1, kind="stable")[:, :k]
        best = np.sort(scores + (0 if softmax else bias), axis=-1)[:, -min(k + 1, experts):]
        assert np.diff(best, axis=-1).min() > 1e-5, case["name"]  # no selection hangs on rounding
        weights = np.take_along_axis(scores, chosen, -1)
        weights = weights / weights.sum(-1, keepdims=True) if k > 1 else weights
        counts = np.bincount(chosen.ravel(), minlength=experts).astype(np.float64)
        share = counts / counts.sum()
        weight = 1 if softmax else case.get("sequence_aux_loss_weight", 0)
        out["aux"].append(weight * experts * float((share * scores.mean(0)).sum()))
        out["z"].append(float((lse ** 2).mean()))
        if not softmax:
            step_rate = rate(case["bias_schedule"], step / MAX_STEPS)
            ema = ema + (1 - DECAY) * (share - ema)
            bias = bias + step_rate * (1 / experts - ema)
            out["bias_rate"].append(step_rate)
            out["bias_after"].append(bias.copy())
            out["ema_after"].append(ema.copy())
        out["indices"].append(chosen)
        out["weights"].append(weights)
        out["counts"].append(counts)
    tensors = {"gate.weight": gate, "x": x, "indices": np.stack(out["indices"]).astype(np.int64),
               "weights": np.stack(out["weights"]).astype(np.float32), "counts": np.stack(out["counts"]).astype(np.float32)}
    if not softmax:
        tensors["bias_after"] = np.stack(out["bias_after"]).astype(np.float32)
        tensors["ema_after"] = np.stack(out["ema_after"]).astype(np.float32)
    return tensors, {name: out[name] for name in ("aux", "z", "bias_rate")}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    cases = []
    for case in CASES:
        tensors, expected = drive(case)
        save_file(tensors, os.path.join(sys.argv[1], case["name"] + ".safetensors"))
        config = {key: value for key, value in case.items() if key not in ("name", "seed")}
        cases.append(dict(name=case["name"], kind="router", seed=case["seed"], file=case["name"] + ".safetensors", config=dict(config, max_steps=MAX_STEPS),
                          steps=STEPS, tokens=TOKENS, expected=expected, tolerance="1e-6 abs; indices and counts exact; bias/ema 1e-7"))
    with open(os.path.join(sys.argv[1], "cases.json"), "w") as file:
        json.dump({"area": "moe", "about": "Routers of odd widths, from the formulas in double precision (make_odd_routers.py).", "format": {},
                   "n_cases": len(cases), "cases": cases}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
