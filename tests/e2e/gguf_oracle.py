"""Runs a GGUF file in llama.cpp: gguf_oracle.py FILE PROMPT COUNT. Prints {"architecture", "types", "prompt_tokens", "ids", "logprobs"} of a greedy
answer as JSON."""

import json
import sys

import gguf
import xllamacpp


def main():
    path, prompt, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    reader = gguf.GGUFReader(path)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = 256
    params.warmup = False
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    answer = server.handle_completions(
        {"prompt": prompt, "n_predict": count, "temperature": 0, "logprobs": 1, "ignore_eos": True, "cache_prompt": False})
    answer = json.loads(answer) if isinstance(answer, (str, bytes)) else answer
    content = answer["choices"][0]["logprobs"]["content"]
    print(json.dumps({"architecture": reader.fields["general.architecture"].contents(),
                      "types": sorted({tensor.tensor_type.name for tensor in reader.tensors}),
                      "prompt_tokens": answer["usage"]["prompt_tokens"],
                      "ids": [token["id"] for token in content], "logprobs": [token["logprob"] for token in content]}))


if __name__ == "__main__":
    main()
