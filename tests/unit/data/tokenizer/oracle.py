#!/usr/bin/env python3
"""Tiny tokenizers of every kind, and what Python's libraries make of random text with them.

usage: oracle.py FOLDER [SEED] [TEXTS]
Writes FOLDER/NAME/{tokenizer.json|tokenizer.model|...} and FOLDER/NAME/cases.jsonl: one object a line with text, ids, and where the library
knows it text_ids (special tokens as text), special_ids (with what is put around), decoded.
"""

import base64
import io
import json
import os
import random
import sys

import sentencepiece
import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

out, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
count = int(sys.argv[3]) if len(sys.argv) > 3 else 60
rng = random.Random(seed)

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K_NEW = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CON = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CON}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CON}|\p{{N}}{{1,3}}" + TAIL
TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}" + TAIL
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

WORDS = ("the of and to in is it's DON'T we'll I'D YOU'RE can't hello World HELLO camelCase snake_case HTTPServer x86_64 3.14159 12345678 1,000 "
         "def return self.value for (int i = 0; i < n; ++i) { } [] => -> != // /* # == \"quoted\" 'single' naïve café Zürich straße İstanbul "
         "ﬁne Привет мир Ελλάδα שלום مرحبا नमस्ते ไทย 你好世界 こんにちは カタカナ 한국어 ㎏ ½ Ⅷ ² ſ 'ſ Ǆ ǅ e\u0301 a\u0323\u0302 👨‍👩‍👧 🇩🇪 👍🏽 ❤️ "
         "\u200b \ufeff \u2028 \u00a0 \u3000 \u0085 ▁ <s> </s> <unk> <|endoftext|> <|end [CLS] [SEP] [MASK] <mask> kf kfx <0x41> ## ##a").split(" ")
BLANKS = [" "] * 12 + ["  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\n  ", "\u00a0", "\u3000", "\u2003", "", "", "\x0b", "\x85"]


def any_char():
    while True:
        limit = rng.choice([0x80, 0x250, 0x600, 0x1000, 0x3100, 0x10000, 0x20000, 0x2A6E0])
        c = rng.randrange(limit)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def text():
    kind = rng.random()
    if kind < 0.12:
        return "".join(any_char() for _ in range(rng.randrange(0, 40)))
    if kind < 0.2:
        return "".join(rng.choice(" \n\r\t\u00a0a1'.") for _ in range(rng.randrange(1, 30)))
    if kind < 0.25:
        return rng.choice("aZ 1.é中\n") * rng.randrange(1, 200)
    parts = []
    for _ in range(rng.randrange(1, 40)):
        parts.append(rng.choice(WORDS) if rng.random() < 0.9 else any_char() * rng.randrange(1, 4))
        parts.append(rng.choice(BLANKS))
    return "".join(parts)


# What other tokenizers in C++ got wrong.
HARD = ["", " ", "a", "\n", "a  b", "x   \n\n  y", "\t\tif", "don't DON'T", "12345", "München", "\u2029 \ua3e4", "e\u0301", "▁", "a▁b", "a<|endoftext|>b",
        "  \n \n", "<s><s>", "x" * 300, " " * 50]

corpus = [text() for _ in range(400)]
few = ["".join(rng.choice(WORDS) + rng.choice(BLANKS) for _ in range(20)) for _ in range(300)]  # of not too many characters
corpus += ["The quick brown fox jumps over the lazy dog. " * 2, "for i in range(10):\n    print(i)\n"] * 20


def write(name, files, cases):
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    for file, content in files.items():
        with open(os.path.join(folder, file), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
    with open(os.path.join(folder, "cases.jsonl"), "w") as f:
        for case in cases:
            f.write(json.dumps(case) + "\n")


def hf(name, tok):
    """Cases of a tokenizer of the library `tokenizers`."""
    data = tok.to_str()
    cases = []
    for t in [text() for _ in range(count)] + HARD:
        tok.encode_special_tokens = False
        ids = tok.encode(t, add_special_tokens=False).ids
        case = {"text": t, "ids": ids, "special_ids": tok.encode(t).ids, "decoded": tok.decode(ids, skip_special_tokens=False)}
        case["decoded_skip"] = tok.decode(ids)
        tok.encode_special_tokens = True
        case["text_ids"] = tok.encode(t, add_special_tokens=False).ids
        tok.encode_special_tokens = False
        cases.append(case)
    write(name, {"tokenizer.json": data}, cases)


def bpe(pre, norm=None, decoder=None, size=600, special=("<|endoftext|>", "<s>", "</s>"), added=(), post=None, train_pre=None, letters=250, **model):
    tok = Tokenizer(models.BPE(**{k: v for k, v in model.items() if k in ("unk_token", "fuse_unk", "byte_fallback", "ignore_merges",
                                                                         "end_of_word_suffix", "continuing_subword_prefix")}))
    if norm:
        tok.normalizer = norm
    pre_used = train_pre if train_pre is not None else pre
    if pre_used:
        tok.pre_tokenizer = pre_used
    alphabet = pre_tokenizers.ByteLevel.alphabet() if "ByteLevel" in str(pre) else []
    specials = list(special) + ([model["unk_token"]] if model.get("unk_token") and model["unk_token"] not in special else [])
    if model.get("byte_fallback"):
        specials += [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, initial_alphabet=alphabet, limit_alphabet=letters, show_progress=False,
                                  **{k: v for k, v in model.items() if k in ("end_of_word_suffix", "continuing_subword_prefix")})
    tok.train_from_iterator(corpus, trainer)
    if pre and train_pre is not None:
        tok.pre_tokenizer = pre
    if decoder:
        tok.decoder = decoder
    if post:
        tok.post_processor = post(tok)
    if added:
        tok.add_tokens(list(added))
    if model.get("byte_fallback"):
        data = json.loads(tok.to_str())
        data["added_tokens"] = [a for a in data["added_tokens"] if not a["content"].startswith("<0x")]
        tok = Tokenizer.from_str(json.dumps(data))
    return tok


def P(*parts):
    return pre_tokenizers.Sequence(list(parts)) if len(parts) > 1 else parts[0]


bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
bl = decoders.ByteLevel()
added = [AddedToken("<mask>", lstrip=True), AddedToken("kf", single_word=True), AddedToken("  \n", rstrip=True, normalized=False),
         AddedToken("café", normalized=True), AddedToken("[MASK]", special=True)]
template = lambda t: processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", t.token_to_id("<s>")), ("</s>", t.token_to_id("</s>"))])

hf("byte_gpt2", bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=bl, letters=300))
hf("byte_missing", bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=bl))
hf("byte_gpt2_prefix", bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), decoder=bl, added=added, post=template))
for name, pattern in dict(gpt2=GPT2, cl100k=CL100K, cl100k_new=CL100K_NEW, qwen2=QWEN2, o200k=O200K, tekken=TEKKEN).items():
    hf("split_" + name, bpe(P(pre_tokenizers.Split(Regex(pattern), "isolated"), bytes_only), decoder=bl, added=added, letters=300, ignore_merges=name == "cl100k"))
hf("split_removed_inverted", bpe(P(pre_tokenizers.Split(Regex(CL100K), "removed", invert=True), bytes_only), decoder=bl))
hf("qwen2_nfc", bpe(P(pre_tokenizers.Split(Regex(QWEN2), "isolated"), bytes_only), norm=normalizers.NFC(), decoder=bl, added=added))
hf("deepseek", bpe(P(pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"), pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
                     pre_tokenizers.Split(Regex(DEEPSEEK), "isolated"), bytes_only), decoder=bl))
hf("digits_bytes", bpe(P(pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)), decoder=bl))
hf("bytes_then_split", bpe(P(pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Split("Ġ", "merged_with_next")), decoder=bl))
hf("post_sequence", bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.Sequence([bl, decoders.Fuse()]), post=lambda t: processors.Sequence(
    [template(t), processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>"))), processors.ByteLevel()])))
hf("byte_normalizer", bpe(None, norm=normalizers.ByteLevel(), decoder=bl))

for scheme in ("always", "first", "never"):
    for split in (True, False):
        hf(f"metaspace_{scheme}_{split}", bpe(pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split), decoder=decoders.Metaspace(prepend_scheme=scheme),
                                              unk_token="<unk>", fuse_unk=split, added=added))
llama = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
llama_decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
hf("llama2", bpe(None, norm=llama, decoder=llama_decoder, unk_token="<unk>", fuse_unk=True, byte_fallback=True, size=900, post=None))
hf("suffix", bpe(pre_tokenizers.Whitespace(), norm=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), decoder=decoders.BPEDecoder("</w>"),
                 unk_token="<unk>", end_of_word_suffix="</w>"))
hf("continuing", bpe(pre_tokenizers.WhitespaceSplit(), decoder=decoders.WordPiece("##"), unk_token="<unk>", continuing_subword_prefix="##"))
hf("no_unknown", bpe(pre_tokenizers.BertPreTokenizer()))

norms = dict(nfd=normalizers.NFD(), nfkd=normalizers.NFKD(), nfkc=normalizers.NFKC(), lower=normalizers.Lowercase(), strip=normalizers.Strip(),
             strip_left=normalizers.Strip(right=False), nmt=normalizers.Nmt(), accents=normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
             bert=normalizers.BertNormalizer(), bert_keep=normalizers.BertNormalizer(lowercase=False, handle_chinese_chars=False),
             bert_accents=normalizers.BertNormalizer(strip_accents=False, clean_text=False),
             replace=normalizers.Sequence([normalizers.Replace("a", "bb"), normalizers.Replace(Regex(r"\s+"), " ")]), prepend=normalizers.Prepend("_"))
for name, norm in norms.items():
    hf("norm_" + name, bpe(pre_tokenizers.WhitespaceSplit(), norm=norm, unk_token="<unk>", added=added))

pres = dict(whitespace=pre_tokenizers.Whitespace(), whitespace_split=pre_tokenizers.WhitespaceSplit(), bert=pre_tokenizers.BertPreTokenizer(),
            punctuation=pre_tokenizers.Punctuation(), digits=pre_tokenizers.Digits(), digits_each=pre_tokenizers.Digits(True),
            scripts=pre_tokenizers.UnicodeScripts(), delimiter=pre_tokenizers.CharDelimiterSplit("e"), fixed=pre_tokenizers.FixedLength(length=3))
for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
    pres["punctuation_" + behavior] = pre_tokenizers.Punctuation(behavior)
    for invert in (False, True):
        pres[f"split_{behavior}_{invert}"] = pre_tokenizers.Split(Regex(r"\s|[aeiou]+"), behavior, invert)
        pres[f"string_{behavior}_{invert}"] = pre_tokenizers.Split("th", behavior, invert)
for name, pre in pres.items():
    hf("pre_" + name, bpe(pre, train_pre=pre_tokenizers.Metaspace(split=False), unk_token="<unk>", size=500))
for name, pattern in dict(word=r"\w+|\W", boundary=r"\b", digits=r"\d+", classes=r"[^\S\n]+|[\w.]+", repeat=r"\p{N}{2,3}+|[^\p{N}]", hexes=r"\h+", lines=r"^.*$",
                          any_case=r"(?i)[A-F]+|(?:th|he)+", empty=r"x*", bloom=r" ?[^(\s|[.,!?…。，、।۔،])]+").items():
    hf("regex_" + name, bpe(pre_tokenizers.Split(Regex(pattern), "isolated"), train_pre=pre_tokenizers.Metaspace(split=False), unk_token="<unk>", size=500))

# Constructs of Oniguruma, alone: a model of bytes, in which each match is one letter.
EXPRESSIONS = r"""\s+$ $ ^\s* \A\s* \s*\z \s*\Z (?m).+ (?m:.)+ (?-m:.) (?i)ss|st (?im)a.b (?i-m:a). (?x)a\sb#c (?x)[[:alpha:]]+#d \h+ \H+ \R+ \N+ \O \K a\Kb \Ga
a{,2} a{1,2}+ a{2}? a{,2}? a*+ a?? a** a+?+ (?:ab){,2} a{1,2}{2} a{,} a{ |a a| (a||b) (?<n>a)\k<n> (?<n>a)\g<n> (a)\1 (a|b)\k<-1> \pL \p{^L}+ \p{Letter}+ \p{Alpha}+ \p{Alnum}+
\p{Digit}+ \p{Upper}+ \p{Lower}+ \p{Punct}+ \p{Word}+ \p{Graph}+ \p{Print}+ \p{Cntrl}+ \p{XDigit}+ \p{Blank}+ \p{ASCII}+ \p{Any} \p{Cn}+ \p{C}+ \p{Uppercase_Letter}
\p{LATIN}+ \p{lu} \p{LC}+ [[:alpha:]]+ [[:alnum:]]+ [[:upper:]]+ [[:lower:]]+ [[:word:]]+ [[:graph:]]+ [[:print:]]+ [[:cntrl:]]+ [[:blank:]]+ [[:ascii:]]+ [[:^alpha:]]+
[a-z&&[^aeiou]]+ [\w&&[^\d]]+ [^a-z&&b-d]+ [\p{L}&&\p{Lu}]+ [\w&&\D&&[^_]]+ [^\p{Alpha}&&[^a]] \x{e9} \u00e9 [\u0041-\u0043]+ \v \C-a \Q.\E a(?i)b|c ((?i)a)A (?:(?i)a|B)c
(?<=a|bb)x (?<=^|\s)\w (?#a)b""".split()
for i, pattern in enumerate(EXPRESSIONS):
    tok = Tokenizer(models.BPE({**{f"<0x{b:02X}>": b for b in range(256)}, "¦": 256}, [], byte_fallback=True))
    tok.normalizer = normalizers.Replace(Regex(pattern), "¦")
    hf(f"onig_{i}", tok)


def unigram(pre, norm=None, decoder=None, byte_fallback=False, special=("<s>", "</s>", "<unk>")):
    tok = Tokenizer(models.Unigram())
    if norm:
        tok.normalizer = norm
    tok.pre_tokenizer = pre
    tok.train_from_iterator(few, trainers.UnigramTrainer(vocab_size=500, special_tokens=list(special), unk_token="<unk>", show_progress=False))
    if decoder:
        tok.decoder = decoder
    if byte_fallback:
        data = json.loads(tok.to_str())
        data["model"]["byte_fallback"] = True
        data["model"]["vocab"] += [[f"<0x{i:02X}>", -20.0] for i in range(256)]
        tok = Tokenizer.from_str(json.dumps(data))
    return tok


hf("unigram", unigram(pre_tokenizers.Metaspace(), decoder=decoders.Metaspace()))
hf("unigram_bytes", unigram(pre_tokenizers.Metaspace(), decoder=decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]), byte_fallback=True))


def spm(name, **options):
    model = io.BytesIO()
    lines = [line for t in few for line in t.split("\n")]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, hard_vocab_limit=False, minloglevel=2, num_threads=1,
                                             **options)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    cases = []
    for t in [text() for _ in range(count)] + HARD:
        ids = sp.encode(t)
        special = sp.encode(t, add_bos=True)
        cases.append({"text": t, "ids": ids, "text_ids": ids, "special_ids": special, "decoded": sp.decode(ids), "decoded_skip": sp.decode(ids)})
        noise = [rng.randrange(sp.get_piece_size()) for _ in range(10)]
        cases.append({"noise": noise, "decoded": sp.decode(noise)})
    write(name, {"tokenizer.model": model.getvalue()}, cases)
    return model.getvalue()


for kind in ("bpe", "unigram"):
    nfkc = spm(f"spm_{kind}_nmt_nfkc", model_type=kind, vocab_size=500)
    spm(f"spm_{kind}_bytes", model_type=kind, vocab_size=900, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        split_digits=True, character_coverage=0.98)
    spm(f"spm_{kind}_symbols", model_type=kind, vocab_size=500, user_defined_symbols=["<sep>", "tion", "he", "  ", "[MASK]"], control_symbols=["<ctl>"],
        normalization_rule_name="nfkc_cf", add_dummy_prefix=False)
    spm(f"spm_{kind}_suffix", model_type=kind, vocab_size=500, treat_whitespace_as_suffix=True, pad_id=3)
    spm(f"spm_{kind}_raw", model_type=kind, vocab_size=500, normalization_rule_name="identity", escape_whitespaces=True, remove_extra_whitespaces=True,
        split_by_unicode_script=False, split_by_whitespace=False)
spm("spm_char", model_type="char", vocab_size=300, user_defined_symbols=["the"])
spm("spm_word", model_type="word", vocab_size=300)

# The charsmap of a SentencePiece model is what Hugging Face's Precompiled holds.
at = nfkc.rfind(b"nmt_nfkc\x12") + len(b"nmt_nfkc\x12")
size, shift = 0, 0
while True:
    byte = nfkc[at]
    size |= (byte & 127) << shift
    shift, at = shift + 7, at + 1
    if byte < 128:
        break
charsmap = nfkc[at:at + size]
hf("unigram_precompiled", unigram(pre_tokenizers.Metaspace(), norm=normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")]),
                                  decoder=decoders.Metaspace()))


def word_model(model, trainer, pre, norm=None, decoder=None, post=None):
    tok = Tokenizer(model)
    if norm:
        tok.normalizer = norm
    tok.pre_tokenizer = pre
    tok.train_from_iterator(corpus, trainer)
    if decoder:
        tok.decoder = decoder
    if post:
        tok.post_processor = post(tok)
    return tok


specials = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
bert_post = lambda t: processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
hf("wordpiece_bert", word_model(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=500, special_tokens=specials, show_progress=False),
                                pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer(), decoders.WordPiece(), bert_post))
hf("wordpiece_plain", word_model(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=7),
                                 trainers.WordPieceTrainer(vocab_size=500, special_tokens=specials, show_progress=False),
                                 pre_tokenizers.WhitespaceSplit(), None, decoders.WordPiece(cleanup=False)))
hf("wordlevel", word_model(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=300, special_tokens=specials, show_progress=False),
                           pre_tokenizers.Whitespace(), None, decoders.CTC(pad_token="[UNK]"),
                           lambda t: processors.Sequence([processors.ByteLevel(), processors.RobertaProcessing(("[SEP]", 2), ("[CLS]", 1))])))


def ranks_of(tok):
    """Ranks of a byte-level BPE, as tiktoken wants them: by id, without special tokens."""
    letters = {}
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    extra = 256
    for b in range(256):
        letters[chr(b if b in printable else extra)] = b
        extra += b not in printable
    vocab = json.loads(tok.to_str())["model"]["vocab"]
    tokens = [bytes(letters[c] for c in t) for t, _ in sorted(vocab.items(), key=lambda x: x[1])]
    return {t: i for i, t in enumerate(tokens)}


def tik(name, pattern, file, sidecar, special, before=()):
    tok = bpe(P(pre_tokenizers.Split(Regex(GPT2), "isolated"), bytes_only), special=(), letters=300)
    ranks = ranks_of(tok)
    special = {k: len(ranks) + v for k, v in special.items()}
    enc = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    cases = []
    for t in [text() for _ in range(count)] + HARD:
        ids = enc.encode(t, allowed_special="all")
        cases.append({"text": t, "ids": ids, "text_ids": enc.encode_ordinary(t), "special_ids": [len(ranks) + b for b in before] + ids, "decoded": enc.decode(ids)})
    files = {file: "".join(f"{base64.b64encode(t).decode()} {i}\n" for t, i in ranks.items())}
    if sidecar:
        files[file + ".json"] = json.dumps({"pattern": sidecar, "special_tokens": special})
    write(name, files, cases)


tik("tiktoken_llama", CL100K, "tokenizer.model", None, {"<|begin_of_text|>": 0, "<|end_of_text|>": 1, "<|eot_id|>": 9}, [0])
tik("tiktoken_cl100k", CL100K_NEW, "small_cl100k.tiktoken", None, {"<|endoftext|>": 1})
tik("tiktoken_gpt2", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s", "r50k.tiktoken", None, {"<|endoftext|>": 0})
tik("tiktoken_o200k", O200K, "o200k.tiktoken", None, {"<|endoftext|>": 1})
tik("tiktoken_other", r"\w+|[^\w\s]+|\s", "mine.tiktoken", r"\w+|[^\w\s]+|\s", {"<|endoftext|>": 5, "[MASK]": 6})
tik("tiktoken_gaps", r"\p{L}+|\d", "mine.tiktoken", r"\p{L}+|\d", {"<s>": 0})


def vocab_merges(name):
    """GPT-2's two files, without a tokenizer.json."""
    model = json.loads(bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), letters=300, special=("<|endoftext|>",)).to_str())["model"]
    merges = "".join((m if isinstance(m, str) else " ".join(m)) + "\n" for m in model["merges"])
    tok = Tokenizer(models.BPE(model["vocab"], [tuple(m.split(" ")) for m in merges.split("\n")[:-1]]))
    tok.pre_tokenizer, tok.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), bl
    tok.add_special_tokens([AddedToken("<|endoftext|>", normalized=False, special=True)])
    hf(name, tok)
    os.remove(os.path.join(out, name, "tokenizer.json"))
    for file, content in {"vocab.json": json.dumps(model["vocab"]), "merges.txt": "#version: 0.2\n" + merges}.items():
        with open(os.path.join(out, name, file), "w") as f:
            f.write(content)


def tekken(name):
    """Where mistral-common is installed, too; a stored sample of it is among the files of the tests."""
    try:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError:
        return
    tok = bpe(P(pre_tokenizers.Split(Regex(TEKKEN), "isolated"), bytes_only), special=(), letters=300)
    tokens = [bytes([b]) for b in range(256)] + [t for t in ranks_of(tok) if len(t) > 1]
    special = 20
    entries = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)]
    write(name, {"tekken.json": json.dumps({"config": {"pattern": TEKKEN, "num_vocab_tokens": len(tokens), "default_vocab_size": len(tokens) + special,
                                                       "default_num_special_tokens": special, "version": "v3"}, "vocab": entries})}, [])
    lib = Tekkenizer.from_file(os.path.join(out, name, "tekken.json"))
    cases = []
    for t in [text() for _ in range(count)] + HARD:
        ids = lib.encode(t, False, False)
        cases.append({"text": t, "ids": ids, "text_ids": ids, "special_ids": lib.encode(t, True, False), "decoded": lib.decode(ids)})
    write(name, {}, cases)


vocab_merges("vocab_merges")
tekken("tekken")
