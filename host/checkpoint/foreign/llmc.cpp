#include "checkpoint/foreign/llmc.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::int32_t kMagic = 20240326, kFp32 = 3, kBf16 = 5;
constexpr std::size_t kHeader = 256;
constexpr std::uint64_t kHeaderBytes = kHeader * sizeof(std::int32_t);

struct Stored {
  std::uint64_t begin = 0;  // in the file
  Shape shape;
};

class Layout {
 public:
  Layout(const fs::path& path, std::span<const std::byte> bytes, std::int64_t rows) : path_(path) {
    std::memcpy(header_.data(), bytes.data(), kHeaderBytes);
    KF_CHECK(header_[1] == kFp32 || header_[1] == kBf16, Code::checkpoint,
             "{}: is of version {} of llm.c's checkpoints; 3 (fp32) and 5 (bf16) are read", path, header_[1]);
    type_ = header_[1] == kFp32 ? at::kFloat : at::kBFloat16;
    settings_ = {.program = "llm.c",
                 .activation = "gelu_tanh",
                 .layers = number(4, "layers", 1 << 16),
                 .heads = number(5, "heads", 1 << 16),
                 .dim = number(6, "channels", 1 << 20),
                 .vocab = number(3, "ids", 1 << 26),
                 .positions = number(2, "positions", 1 << 28)};
    const std::int64_t padded = number(7, "padded ids", 1 << 26);
    KF_CHECK(padded >= settings_.vocab && settings_.dim % settings_.heads == 0, Code::checkpoint,
             "{}: its header has {} ids padded to {}, and {} heads over {} channels", path, settings_.vocab, padded, settings_.heads,
             settings_.dim);
    place(padded, rows == padded ? padded : settings_.vocab);
    KF_CHECK(end_ == bytes.size(), Code::checkpoint, "{}: has {} bytes, and its header gives {}: the file is cut short or damaged", path,
             bytes.size(), end_);
  }

  const std::map<std::string, Stored>& tensors() const { return tensors_; }
  const Gpt2Settings& settings() const { return settings_; }
  at::ScalarType type() const { return type_; }

 private:
  std::int64_t number(std::size_t index, const char* what, std::int32_t most) const {
    KF_CHECK(header_[index] > 0 && header_[index] <= most, Code::checkpoint, "{}: its header has {} {}, which is not between 1 and {}",
             path_, header_[index], what, most);
    return header_[index];
  }

  void add(const std::string& name, const Shape& shape) {
    tensors_[name] = {end_, shape};
    end_ += static_cast<std::uint64_t>(Range::whole(shape).numel()) * c10::elementSize(type_);
  }
  /// One after the other for all layers.
  void add_of_layers(const std::string& name, const Shape& shape) {
    for (std::int64_t layer = 0; layer < settings_.layers; ++layer) {
      add(format("transformer.h.{}.{}", layer, name), shape);
    }
  }

  /// The order of llm.c's ParameterTensors.
  void place(std::int64_t padded, std::int64_t rows) {
    const std::int64_t c = settings_.dim;
    add("transformer.wte.weight", {padded, c});
    tensors_["transformer.wte.weight"].shape[0] = rows;  // those of padding lie behind
    add("transformer.wpe.weight", {settings_.positions, c});
    const auto both = [&](const std::string& name, const Shape& shape) {
      add_of_layers(name + ".weight", shape);
      add_of_layers(name + ".bias", {shape[0]});
    };
    both("ln_1", {c});
    both("attn.c_attn", {3 * c, c});
    both("attn.c_proj", {c, c});
    both("ln_2", {c});
    both("mlp.c_fc", {4 * c, c});
    both("mlp.c_proj", {c, 4 * c});
    add("transformer.ln_f.weight", {c});
    add("transformer.ln_f.bias", {c});
  }

  const fs::path& path_;
  std::array<std::int32_t, kHeader> header_{};
  at::ScalarType type_ = at::kFloat;
  Gpt2Settings settings_;
  std::uint64_t end_ = kHeaderBytes;
  std::map<std::string, Stored> tensors_;
};

}  // namespace

bool is_llmc(std::span<const std::byte> bytes) {
  std::int32_t magic = 0;
  if (bytes.size() < kHeaderBytes) {
    return false;
  }
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kMagic;
}

LlmcFile open_llmc(const fs::path& path, std::int64_t rows) {
  const auto file = std::make_shared<const MappedFile>(path);
  KF_CHECK(is_llmc(file->bytes()), Code::checkpoint, "{}: is no checkpoint of llm.c", path);
  const auto layout = std::make_shared<const Layout>(path, file->bytes(), rows);
  const auto view = [file, layout](const std::string& name) {
    const Stored& stored = layout->tensors().at(name);
    const std::byte* const data = file->bytes().data() + stored.begin;
    return at::from_blob(const_cast<std::byte*>(data), stored.shape, at::TensorOptions().dtype(layout->type()));  // only read
  };
  LlmcFile out;
  out.settings = layout->settings();
  for (const auto& [name, stored] : layout->tensors()) {
    out.tensors.names.push_back(name);
  }
  out.tensors.get = [view](const std::string& name) { return view(name).clone(); };
  out.tensors.ranged = {[layout](const std::string& name) {
                          return TensorKind{layout->tensors().at(name).shape, layout->type()};
                        },
                        [view](const TensorPiece& into) {
                          const at::NoGradGuard no_grad;
                          into.tensor.copy_(into.range.of(view(into.name)));
                        }};
  return out;
}

}  // namespace kf
