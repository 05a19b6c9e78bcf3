#pragma once
// Text to token ids and back.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_range.h"

namespace kf {

namespace config {
struct Config;
}
struct Registries;

/// What the names of special tokens ("<|endoftext|>") in a text are: ordinary text, the special tokens, or an error.
enum class SpecialText { text, special, error };

/// "text", "special" or "error"; throws Code::config for another word.
SpecialText special_text_named(std::string_view word);

/// What is added of the tokenizer's own, as its files say: nothing, what stands around a text (BOS, EOS, [CLS] and [SEP]), or of that only
/// what stands in front, as before a prompt, which goes on behind its last word.
enum class Surround { nothing, text, prompt };

struct EncodeOptions {
  SpecialText special = SpecialText::text;
  Surround surround = Surround::nothing;
  /// Stretches, rising, in which names of special tokens are the tokens whatever `special` says, and whatever `reads_special` says: what a
  /// format wrote around what people say. A name that lies half in such a stretch is text.
  std::span<const ByteRange> written = {};
};

/// Text is UTF-8. Bytes that are not: tokenizers that work on bytes (byte-level BPE without a normalizer, tiktoken, tekken) keep them, so
/// that decoding gives them back; all others read U+FFFD for them, as decoders of UTF-8 with replacement do.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Whether names of special tokens in a text can be the tokens at all. SentencePiece and tekken, as their own libraries, never read them
  /// so.
  virtual bool reads_special() const { return false; }

  /// Without any id added at either end; names of special tokens in the text are text.
  virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;
  /// Puts the ids behind those in `out`. Returns how often the name of a special token stands in the text, whatever becomes of it (0 where
  /// the tokenizer has none). Throws Code::data where `options.special` is error and there is one, naming it and its place.
  virtual std::size_t append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& options) const;

  /// The bytes that the ids stand for, "" for special ids; they need not be whole UTF-8 characters. Throws Code::data for an unknown id.
  virtual std::string decode(std::span<const std::int64_t> ids) const = 0;
  /// As decode, but special ids give their names.
  virtual std::string decode_with_special(std::span<const std::int64_t> ids) const { return decode(ids); }

  /// One more than the largest id.
  virtual std::int64_t vocab_size() const = 0;
  /// Ends a document.
  virtual std::optional<std::int64_t> eos_id() const = 0;
  /// Begins a document.
  virtual std::optional<std::int64_t> bos_id() const { return std::nullopt; }
  /// Fills up rows.
  virtual std::optional<std::int64_t> pad_id() const { return std::nullopt; }
  /// The id as its vocabulary spells it ("Ġthe", "▁the", "<0x0A>"); nothing where there is no such id, or no spelling.
  virtual std::optional<std::string> token(std::int64_t /*id*/) const { return std::nullopt; }
  /// The id of a token by that spelling, special ones included.
  virtual std::optional<std::int64_t> token_id(std::string_view /*token*/) const { return std::nullopt; }

  /// SHA-256, in hex, of what decides the ids: the content of the tokenizer's files, never their names or places, and the version of the
  /// format in which ids are kept. "" where that cannot be known (tokenizers in Lua: hash the script).
  virtual std::string content_hash() const { return {}; }
  /// Whether several threads may encode and decode at once.
  virtual bool concurrent() const { return false; }
  /// "byte-level BPE, 50,257 tokens": for logs.
  virtual std::string summary() const { return {}; }
};

/// The ids of a text that a model goes on from: what the tokenizer's library puts in front of a text, and nothing behind it. A text that
/// begins with that itself has it once. Names of special tokens in it are the tokens, where the tokenizer reads them at all.
std::vector<std::int64_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text);

/// Text of ids that arrive one by one: gives out what can no longer change. Whole UTF-8 characters only, until `finish`.
class TextStream {
 public:
  /// `before`: ids whose text is out already, as a prompt's; how the first id reads (a word's blank) depends on them.
  explicit TextStream(const Tokenizer& tokenizer, std::span<const std::int64_t> before = {});
  /// The text that this id completes; often "".
  std::string push(std::int64_t id);
  /// What is left: bytes of a character that was never finished.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::int64_t> ids_;  // from a token before the first whose text is not out yet
  std::size_t given_ = 0;          // bytes of their text that are out
};

/// Ids of the byte-level tokenizer: the bytes themselves, and one that ends a document.
inline constexpr std::int64_t kByteEos = 256;
inline constexpr std::int64_t kByteVocab = 257;

class ByteTokenizer final : public Tokenizer {
 public:
  /// `model_vocab`: model.vocab_size. Ids from 257 up to it are never produced and decode to "", as a model that is not yet trained samples
  /// them.
  explicit ByteTokenizer(std::int64_t model_vocab = kByteVocab);
  std::vector<std::int64_t> encode(std::string_view text) const override;
  std::size_t append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& options) const override;
  std::string decode(std::span<const std::int64_t> ids) const override;
  std::int64_t vocab_size() const override { return kByteVocab; }
  std::optional<std::int64_t> eos_id() const override { return kByteEos; }
  std::string content_hash() const override;
  bool concurrent() const override { return true; }
  std::string summary() const override { return "bytes"; }

 private:
  std::int64_t model_vocab_;
};

/// A tokenizer from a file or folder; see docs/data.md for the formats. Throws Code::data naming the file and, for what is broken or not
/// supported, the place in it.
/// Ids from its vocab_size() up to `model_vocab` decode to "".
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path, std::int64_t model_vocab = 0);

/// The same for a path, or the name of a model on the hub.
std::unique_ptr<Tokenizer> open_named_tokenizer(const std::string& text, std::int64_t model_vocab = 0);

/// By data.tokenizer_path: a file or folder, "lua:NAME" for the registered tokenizer NAME, bytes without a path. Throws Code::data for
/// files, and Code::config for a name that is not registered and for a model.vocab_size that is too small.
std::unique_ptr<Tokenizer> make_tokenizer(const config::Config& config, const Registries* registries);

}  // namespace kf
