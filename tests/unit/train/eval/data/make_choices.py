"""Makes a tiny Llama, questions, and what lm-evaluation-harness's rules give for them, with transformers. Needs torch and transformers.

usage: make_choices.py FOLDER [--lm-eval]

With --lm-eval the numbers come from lm_eval's own HFLM.loglikelihood; without, from the same rules written down here.
"""
import json
import sys
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

folder = Path(sys.argv[1])
torch.manual_seed(11)
config = LlamaConfig(
    vocab_size=257, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
    max_position_embeddings=48, initializer_range=0.3, tie_word_embeddings=True, bos_token_id=None, eos_token_id=256,
)
model = LlamaForCausalLM(config).eval().float()
model.save_pretrained(folder / "choices_model")

items = [
    {"prompt": "The sky is", "choices": ["blue", "green", "a very long colour"], "answer": 0},
    {"context": "2 + 2 =", "choices": ["3", "4", "5", "twenty-two"], "gold": 1},
    {"query": "", "choices": ["yes", "no"], "gold": 1},
    {"prompt": "ends in space \n", "choices": ["x", "yy"], "answer": 0},
    {"prompt": "Grüße aus", "choices": ["Köln", "München"], "answer": 1},
    {"prompt": "This context is far too long for the forty-eight positions that the model takes, so it is cut", "choices": ["at its beginning", "never"],
     "answer": 0},
    {"prompt": "Q", "choices": ["a", "b", "c", "d", "e"], "answer": 3},
]
(folder / "choices.jsonl").write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items))


def encode(text):
    return list(text.encode())


def divide(context, continuation):
    spaces = len(context) - len(context.rstrip())
    if spaces > 0:
        continuation = context[-spaces:] + continuation
        context = context[:-spaces]
    if context == "":
        return [256], encode(continuation)
    whole = encode(context + continuation)
    return whole[: len(encode(context))], whole[len(encode(context)) :]


def loglikelihood(context, continuation):
    left, right = divide(context, continuation)
    ids = (left + right)[-(config.max_position_embeddings + 1) :]
    with torch.no_grad():
        logits = model(torch.tensor([ids[:-1]])).logits[0].double().log_softmax(-1)
    tail = logits[-len(right) :]
    return float(tail.gather(1, torch.tensor(right).unsqueeze(1)).sum())


pairs = []
for item in items:
    context = next(item[key] for key in ("prompt", "context", "query") if key in item)
    pairs.append([(context, " " + choice) for choice in item["choices"]])

if "--lm-eval" in sys.argv:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    def letters():
        """The characters by which byte-level BPE spells bytes, byte by byte."""
        plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
        rest = [b for b in range(256) if b not in plain]
        table = {b: chr(b) for b in plain}
        table.update({b: chr(256 + i) for i, b in enumerate(rest)})
        return table

    vocab = {letter: byte for byte, letter in letters().items()}
    tokenizer = Tokenizer(models.BPE(vocab={**vocab, "<eos>": 256}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<eos>"])
    tokenizer.save(str(folder / "byte_tokenizer.json"), pretty=False)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<eos>")
    lm = HFLM(pretrained=model, tokenizer=wrapped, batch_size=3, device="cpu", max_length=config.max_position_embeddings)
    flat = [pair for row in pairs for pair in row]
    answers = iter(lm.loglikelihood([Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(flat)]))
    scores = [[next(answers)[0] for _ in row] for row in pairs]
    check = [[loglikelihood(*pair) for pair in row] for row in pairs]
    worst = max(abs(a - b) for x, y in zip(scores, check) for a, b in zip(x, y))
    print("lm_eval and the rules here differ by at most", worst)
else:
    scores = [[loglikelihood(*pair) for pair in row] for row in pairs]

gold = [item.get("answer", item.get("gold")) for item in items]
best = [max(range(len(row)), key=lambda i: row[i]) for row in scores]
by_characters = [max(range(len(row)), key=lambda i: row[i] / len(item["choices"][i])) for row, item in zip(scores, items)]
by_bytes = [max(range(len(row)), key=lambda i: row[i] / len(item["choices"][i].encode())) for row, item in zip(scores, items)]
result = {
    "loglikelihoods": scores,
    "acc": sum(a == b for a, b in zip(best, gold)) / len(items),
    "acc_norm": sum(a == b for a, b in zip(by_characters, gold)) / len(items),
    "acc_bytes": sum(a == b for a, b in zip(by_bytes, gold)) / len(items),
}
(folder / "choices_expected.json").write_text(json.dumps(result, indent=1) + "\n")
