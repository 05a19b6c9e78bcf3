#pragma once
// Text to token ids and back.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

namespace config {
struct Config;
}
struct Registries;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Without any id added at either end.
  virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;
  /// The bytes that the ids stand for, "" for special ids; they need not be whole UTF-8 characters. Throws Code::data for an unknown id.
  virtual std::string decode(std::span<const std::int64_t> ids) const = 0;
  virtual std::int64_t vocab_size() const = 0;
  /// Ends a document.
  virtual std::optional<std::int64_t> eos_id() const = 0;
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
  std::string decode(std::span<const std::int64_t> ids) const override;
  std::int64_t vocab_size() const override { return kByteVocab; }
  std::optional<std::int64_t> eos_id() const override { return kByteEos; }

 private:
  std::int64_t model_vocab_;
};

/// By data.tokenizer_path: "lua:NAME" is the registered tokenizer NAME; byte-level without a path. Throws Code::data, and Code::config for
/// a name that is not registered.
std::unique_ptr<Tokenizer> make_tokenizer(const config::Config& config, const Registries* registries);

}  // namespace kf
