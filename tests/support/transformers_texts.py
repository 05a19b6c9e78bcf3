"""What Python's transformers make of the tokenizers of exported folders.

usage: transformers_texts.py TEXT FOLDER...
A JSON object a line: the ids of the text, and of a chat in which a user says it, where there is a template."""
import json
import sys

import transformers

transformers.logging.set_verbosity_error()
for folder in sys.argv[2:]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    chat = None
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template([{"role": "user", "content": sys.argv[1]}], tokenize=False, add_generation_prompt=True)
        chat = tokenizer(text, add_special_tokens=False)["input_ids"]
    print(json.dumps({"ids": tokenizer(sys.argv[1])["input_ids"], "chat": chat}))
