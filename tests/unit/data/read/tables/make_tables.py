"""Makes the files of this folder, with pyarrow 26: python3 make_tables.py"""

import json
import os

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq

os.chdir(os.path.dirname(os.path.abspath(__file__)))
TEXTS = ["a", "bé", "", "a"]


def table(kind):
    text = pa.array(TEXTS).dictionary_encode() if kind == "dictionary" else pa.array(TEXTS, kind)
    return pa.table({"n": [1, 2, 3, 4], "text": text})


def file(name, data):
    with pa.ipc.new_file(name, data.schema) as out:
        out.write_table(data)


def stream(name, data):
    with pa.ipc.new_stream(name, data.schema) as out:
        out.write_table(data)


pq.write_table(table(pa.string()), "string.parquet", row_group_size=2)
pq.write_table(table(pa.large_string()), "large_string.parquet")
pq.write_table(table("dictionary"), "dictionary.parquet")
pq.write_table(table(pa.string()), "gzip.parquet", compression="gzip")
file("string_view.arrow", table(pa.string_view()))
file("dictionary.arrow", table("dictionary"))
stream("large_string.arrow", table(pa.large_string()))
pa.feather.write_feather(table(pa.string()), "lz4.arrow", compression="lz4")

ROLE = pa.struct([("content", pa.string()), ("role", pa.string()), ("extra", pa.int32())])
CHATS = [
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}],
    [{"role": "system", "content": "Be"}, {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "Ok"}],
]
chat = pa.table({"id": [1, 2], "messages": pa.array(CHATS, pa.list_(ROLE))})
pq.write_table(chat, "chat.parquet")
file("chat_file.arrow", chat)
stream("chat_large.arrow", pa.table({"messages": pa.array(CHATS, pa.large_list(ROLE))}))
nulls = [CHATS[0], [{"role": "user", "content": None}]]
pq.write_table(pa.table({"messages": pa.array(nulls, pa.list_(ROLE))}), "chat_null.parquet")
pq.write_table(pa.table({"text": ["a", "b", None, "d"]}), "null.parquet")

# Chats and pairs as they are published: ShareGPT, parts of text, tool calls, a list within a string, nested fields.
SHARE = pa.list_(pa.struct([("from", pa.string()), ("value", pa.large_string()), ("weight", pa.float64())]))
CALL = pa.struct([("id", pa.string()), ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())]))])
PART = pa.list_(pa.struct([("type", pa.string()), ("text", pa.string())]))
shapes = pa.table({
    "conversations": pa.array([[{"from": "human", "value": "hi \"\\\n"}, {"from": "gpt", "value": "hello", "weight": 0.5}]], SHARE),
    "calls": pa.array([[{"role": "user", "content": "w?", "tool_calls": None},
                        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "w", "arguments": "{}"}}]}]],
                      pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.list_(CALL))]))),
    "parts": pa.array([[{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]],
                      pa.list_(pa.struct([("role", pa.string()), ("content", PART)]))),
    "string": pa.array(['[{"role": "user", "content": "in a string"}]']),
    "prompt": pa.array(["two"]),
    "completion": pa.array([" is four"], pa.large_string()),
    "deep": pa.array([{"n": 3, "t": ["x", "y"], "b": True}], pa.struct([("n", pa.int16()), ("t", pa.list_(pa.string())), ("b", pa.bool_())])),
})
pq.write_table(shapes, "shapes.parquet")
file("shapes.arrow", shapes)

# A string column over bytes that are no UTF-8: pyarrow makes it without asking.
bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"a\xffb"]).buffers())
pq.write_table(pa.table({"text": bad}), "invalid_utf8.parquet")

os.makedirs("dict/test", exist_ok=True)
with open("dict/dataset_dict.json", "w") as out:
    json.dump({"splits": ["test"]}, out)
with open("dict/test/state.json", "w") as out:
    json.dump({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}, out)
stream("dict/test/data-00000-of-00001.arrow", table(pa.string()))
