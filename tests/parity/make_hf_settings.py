#!/usr/bin/env python3
"""Writes what transformers makes of a tiny config.json of every family, for the test of its readers.

usage: make_hf_settings.py FILE     needs torch and transformers 5
FILE becomes {model_type: {"config": its config.json, "absent": {key: {what the class puts in where the key is left out}}}}.
"""
import copy
import json
import os
import sys
import tempfile

import transformers

from hf_cases import CASES

VERSIONS = ("transformers_version", "architectures", "dtype", "model_type")


def written(config):
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        with open(os.path.join(folder, "config.json")) as file:
            return json.load(file)


def without(cls, values, key):
    """What the class's config.json says where `key` was left out, as far as it differs; nothing where the class refuses."""
    fewer = copy.deepcopy(values)
    fewer.pop(key)
    try:
        after = written(cls.from_dict(fewer))
    except Exception:
        return None
    return {name: value for name, value in after.items() if name not in VERSIONS and (name not in fewer or fewer[name] != value)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = {}
    for model_type, options in CASES.values():
        if model_type in out or "text_config" in options:
            continue
        options = dict({"vocab_size": 97, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}, **options)
        config = transformers.AutoConfig.for_model(model_type, **options)
        values = written(config)
        absent = {key: without(type(config), values, key) for key in values if key not in VERSIONS}
        out[model_type] = {"config": {key: value for key, value in values.items() if key != "transformers_version"},
                           "absent": {key: value for key, value in absent.items() if value is not None}}
    with open(sys.argv[1], "w") as file:
        lines = [json.dumps(name) + ": " + json.dumps(out[name], separators=(",", ":"), sort_keys=True) for name in sorted(out)]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
