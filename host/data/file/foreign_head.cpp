#include "data/file/foreign_head.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

constexpr std::size_t kHeadBytes = 256 * sizeof(std::int32_t);

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

struct LlmcTokens {
  std::int32_t magic;
  std::int32_t version;
  TokenType type;
};
constexpr std::array<LlmcTokens, 2> kLlmcTokens{{{20240520, 1, TokenType::uint16}, {20240801, 7, TokenType::uint32}}};

struct LlmcOther {
  std::int32_t magic;
  const char* what;
};
constexpr std::array<LlmcOther, 6> kLlmcOthers{{{20240326, "a GPT-2 checkpoint"},
                                                {20240327, "a debug state"},
                                                {20240328, "a tokenizer"},
                                                {20240522, "an evaluation set of multiple choice"},
                                                {20240527, "an optimizer state"},
                                                {20240803, "a Llama checkpoint"}}};

struct Signature {
  std::string_view start;
  const char* what;
};
constexpr std::array<Signature, 12> kSignatures{
    {{"PAR1", "a Parquet file; its name should end in .parquet"},
     {"ARROW1", "an Arrow file; its name should end in .arrow"},
     {{"PK\3\4", 4}, "a ZIP archive, as .npz and PyTorch's files are; save the ids alone with numpy.save"},
     {{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14}, "a PyTorch file; save the ids alone with numpy.save"},
     {"\x89HDF", "an HDF5 file; save the ids alone with numpy.save"},
     {"GGUF", "a GGUF model, which holds no training data"},
     {"ggjt", "a GGML model, which holds no training data"},
     {"\x1f\x8b\x08", "compressed with gzip; ids are mapped, so decompress it first"},
     {{"\x28\xb5\x2f\xfd", 4}, "compressed with zstd; ids are mapped, so decompress it first"},
     {{"\xfd\x37zXZ\0", 6}, "compressed with xz; ids are mapped, so decompress it first"},
     {{"MMIDIDX\0\0", 9}, "the index of a Megatron data set; name the .bin file beside it, which is read with its index"},
     {{"TNTIDX\0\0", 8}, "an index of fairseq's or early Megatron's, which is not read; convert the data set to .npy"}}};

/// 8 bytes of length, then a JSON object of that length.
bool is_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() < 10) {
    return false;
  }
  const auto length = value_at<std::uint64_t>(bytes, 0);
  return length >= 2 && length <= bytes.size() - 8 && value_at<char>(bytes, 8) == '{' &&
         (value_at<char>(bytes, 9) == '"' || value_at<char>(bytes, 9) == '}');
}

/// A protocol, a frame, and its length, which the file has.
bool is_pickle(std::span<const std::byte> bytes) {
  return bytes.size() > 11 && value_at<std::uint8_t>(bytes, 0) == 0x80 && value_at<std::uint8_t>(bytes, 1) >= 4 &&
         value_at<std::uint8_t>(bytes, 1) <= 5 && value_at<std::uint8_t>(bytes, 2) == 0x95 &&
         value_at<std::uint64_t>(bytes, 3) <= bytes.size() - 11 && value_at<std::uint64_t>(bytes, 3) > 0;
}

/// The number of items, where each begins, and where the last ends: at the end of the file.
bool is_litdata_chunk(std::span<const std::byte> bytes) {
  if (bytes.size() < 12) {
    return false;
  }
  const std::uint64_t items = value_at<std::uint32_t>(bytes, 0);
  const std::uint64_t head = 4 + 4 * (items + 1);
  return items > 0 && head <= bytes.size() && value_at<std::uint32_t>(bytes, 4) == head &&
         value_at<std::uint32_t>(bytes, head - 4) == bytes.size();
}

}  // namespace

std::optional<TokenLayout> llmc_layout(std::span<const std::byte> bytes, const fs::path& path) {
  if (bytes.size() < 3 * sizeof(std::int32_t)) {
    return std::nullopt;
  }
  const auto magic = value_at<std::int32_t>(bytes, 0);
  const auto version = value_at<std::int32_t>(bytes, 4);
  for (const LlmcOther& other : kLlmcOthers) {
    KF_CHECK(magic != other.magic || version < 0 || version > 99, Code::data,
             "{} is {} of llm.c (magic number {}), which holds no ids to learn from", path, other.what, magic);
  }
  for (const LlmcTokens& known : kLlmcTokens) {
    if (magic != known.magic) {
      continue;
    }
    KF_CHECK(version == known.version, Code::data, "{}: its header is llm.c's (magic number {}), in version {}; version {} can be read",
             path, magic, version, known.version);
    KF_CHECK(bytes.size() >= kHeadBytes, Code::data, "{}: cut off inside llm.c's header: {} of {} bytes", path, bytes.size(), kHeadBytes);
    const std::size_t there = bytes.size() - kHeadBytes;
    const std::size_t width = token_width(known.type);
    const auto said = value_at<std::uint32_t>(bytes, 8);
    // The number is written into 32 bits, so of larger files it is what is left of it.
    KF_CHECK(there % width == 0 && static_cast<std::uint32_t>(there / width) == said, Code::data,
             "{}: llm.c's header says {} ids of {} ({} bytes each), but {} bytes follow it: the file is {}", path, said,
             token_type_name(known.type), width, there, there / width < said ? "cut off" : "too long");
    return TokenLayout{known.type, kHeadBytes, static_cast<std::int64_t>(there / width), false};
  }
  return std::nullopt;
}

void refuse_foreign(std::span<const std::byte> bytes, const fs::path& path) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 16));
  for (const Signature& signature : kSignatures) {
    KF_CHECK(!head.starts_with(signature.start), Code::data, "{} holds no bare ids: it is {}", path, signature.what);
  }
  KF_CHECK(!is_safetensors(bytes), Code::data, "{} holds no bare ids: it is a safetensors file, as models are", path);
  KF_CHECK(!is_pickle(bytes), Code::data, "{} holds no bare ids: it is a pickled object of Python; save the ids alone with numpy.save",
           path);
  KF_CHECK(!is_litdata_chunk(bytes), Code::data,
           "{} holds no bare ids: it is a chunk of LitData with a table of items; save the ids alone with numpy.save", path);
}

}  // namespace kf
