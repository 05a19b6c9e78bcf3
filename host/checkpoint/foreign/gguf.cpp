#include "checkpoint/foreign/gguf.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/foreign/gguf_names.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"

namespace kf::gguf {

struct OpenFile::Contents {
  explicit Contents(const fs::path& path) : file(path), header(read_header(file.bytes(), path)) {
    for (const TensorPlace& place : header.tensors) {
      places[place.name] = &place;
    }
  }
  MappedFile file;
  Header header;
  std::map<std::string, const TensorPlace*> places;
};

namespace {

constexpr std::size_t kBlockBytes = 2 + kBlock;  // a scale in fp16, then integers

at::ScalarType scalar_type(Type type) { return type == Type::f16 ? at::kHalf : type == Type::bf16 ? at::kBFloat16 : at::kFloat; }

void decode_blocks(const std::byte* bytes, std::int64_t blocks, float* out) {
  for (std::int64_t block = 0; block < blocks; ++block, bytes += kBlockBytes) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes, sizeof bits);
    const float scale = at::Half(bits, at::Half::from_bits());
    for (std::int64_t i = 0; i < kBlock; ++i) {
      *out++ = scale * static_cast<float>(static_cast<std::int8_t>(bytes[2 + i]));
    }
  }
}

/// `count` rows (along the first dim) from `first` on: a view of the file, or numbers of their own. Only read.
at::Tensor rows_of(const std::byte* file, const TensorPlace& place, std::int64_t first, std::int64_t count) {
  Shape shape = place.shape;
  const std::uint64_t row = place.bytes / static_cast<std::uint64_t>(shape[0]);
  shape[0] = count;
  const bool blocks = place.type == Type::q8_0;
  if (blocks && shape.size() == 1) {  // blocks lie along the one dim: all of it
    const at::Tensor whole = at::empty(place.shape, at::kFloat);
    decode_blocks(file + place.begin, place.shape[0] / kBlock, whole.mutable_data_ptr<float>());
    return whole.narrow(0, first, count);
  }
  const std::byte* const data = file + place.begin + static_cast<std::uint64_t>(first) * row;
  if (!blocks && reinterpret_cast<std::uintptr_t>(data) % c10::elementSize(scalar_type(place.type)) != 0) {  // general.alignment = 1
    at::Tensor out = at::empty(shape, at::TensorOptions().dtype(scalar_type(place.type)));
    std::memcpy(out.mutable_data_ptr(), data, out.nbytes());
    return out;
  }
  if (!blocks) {
    return at::from_blob(const_cast<std::byte*>(data), shape, at::TensorOptions().dtype(scalar_type(place.type)));
  }
  at::Tensor out = at::empty(shape, at::kFloat);
  decode_blocks(data, out.numel() / kBlock, out.mutable_data_ptr<float>());
  return out;
}

/// One of ours, made of one of theirs.
struct Made {
  std::string theirs;
  std::int64_t paired_heads = 0;
  bool less_one = false;
};

/// Rows of heads whose neighbours rotate together as those whose halves do.
at::Tensor by_halves(const at::Tensor& theirs, std::int64_t heads) {
  return theirs.unflatten(0, {heads, -1, 2}).transpose(1, 2).flatten(0, 2);
}

std::int64_t whole_number(const Header& header, const std::string& key) {
  const config::Node* const node = header.keys.find(key);
  const auto* const number = node != nullptr ? std::get_if<std::int64_t>(&node->value) : nullptr;
  return number != nullptr && *number > 0 ? *number : 0;
}

/// Our names of one file's tensors.
class Naming {
 public:
  Naming(const std::string& architecture, std::int64_t heads, std::int64_t kv_heads)
      : paired_(architecture == "llama"), less_one_(architecture == "gemma"), heads_(heads), kv_heads_(kv_heads) {}

  /// With our name.
  std::pair<std::string, Made> of(const std::string& name) const {
    for (const Name& known : kOutside) {
      if (name == known.theirs) {
        return {std::string(known.ours), made(name, known)};
      }
    }
    constexpr std::string_view kBlocks = "blk.";
    const std::size_t dot = name.starts_with(kBlocks) ? name.find('.', kBlocks.size()) : std::string::npos, last = name.rfind('.');
    if (dot != std::string::npos && last > dot) {
      const std::string_view part = std::string_view(name).substr(dot + 1, last - dot - 1), kind = std::string_view(name).substr(last);
      for (const Name& known : kOfBlock) {
        if (part == known.theirs && (kind == ".weight" || (kind == ".bias" && !known.norm))) {
          return {"layers." + name.substr(kBlocks.size(), dot + 1 - kBlocks.size()) + std::string(known.ours) + std::string(kind),
                  made(name, known)};
        }
      }
    }
    return {name, {name}};  // unknown: whoever reads it says so
  }

 private:
  Made made(const std::string& name, const Name& known) const {
    const std::int64_t heads = known.rows == Rows::queries ? heads_ : known.rows == Rows::keys ? kv_heads_ : 0;
    return {name, paired_ ? heads : 0, less_one_ && known.norm};
  }

  bool paired_, less_one_;
  std::int64_t heads_, kv_heads_;
};

/// Heads do not show in shapes: a model with others would compute something else without a word. Weights that their layer divides by heads
/// know how many numbers a head has; those of scripts, and of layers inside of their parts, do not.
void check_heads(const OpenFile& file, Model& model) {
  const auto check = [&](const Parameter& weight, std::int64_t there, const char* key) {
    if (weight.split != Split::colwise || weight.split_hint || there == 0) {
      return;
    }
    const std::int64_t here = weight.shape[0] / weight.split_unit;
    KF_CHECK(here == there, Code::checkpoint, "{}: the file's model has {} heads, and the job's has {} ({}): set model.{} = {}",
             file.path(), there, here, weight.name, key, there);
  };
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name.ends_with(".attention.q_proj.weight")) {
      check(*parameter, file.heads(), "n_heads");
    } else if (parameter->name.ends_with(".attention.k_proj.weight")) {
      check(*parameter, file.kv_heads(), "n_kv_heads");
    }
  }
}

}  // namespace

OpenFile::OpenFile(const fs::path& path) : contents_(std::make_shared<const Contents>(path)) {}

const fs::path& OpenFile::path() const { return contents_->file.path(); }
const Header& OpenFile::header() const { return contents_->header; }

std::int64_t OpenFile::heads() const { return whole_number(header(), header().architecture() + ".attention.head_count"); }

std::int64_t OpenFile::kv_heads() const {
  const std::string key = header().architecture() + ".attention.head_count_kv";
  return header().keys.find(key) != nullptr ? whole_number(header(), key) : heads();
}

NamedTensors OpenFile::tensors() const {
  NamedTensors out;
  for (const TensorPlace& place : header().tensors) {
    out.names.push_back(place.name);
  }
  const auto rows = [contents = contents_](const std::string& name, std::int64_t first, std::int64_t count) {
    return rows_of(contents->file.bytes().data(), *contents->places.at(name), first, count);
  };
  out.get = [contents = contents_, rows](const std::string& name) { return rows(name, 0, contents->places.at(name)->shape[0]).clone(); };
  out.ranged = {[contents = contents_](const std::string& name) {
                  const TensorPlace& place = *contents->places.at(name);
                  return TensorKind{place.shape, scalar_type(place.type)};
                },
                [contents = contents_, rows](const TensorPiece& into) {
                  const at::NoGradGuard no_grad;
                  const TensorPlace& place = *contents->places.at(into.name);
                  KF_CHECK(place.shape == into.shape, Code::checkpoint, "{}: '{}' has another shape than was asked for",
                           contents->file.path(), into.name);
                  Range inner = into.range;
                  inner.begin[0] = 0;
                  into.tensor.copy_(inner.of(rows(into.name, into.range.begin[0], into.range.size[0])));
                }};
  return out;
}

NamedTensors OpenFile::as_ours(const NamedTensors& theirs) const {
  KF_CHECK(is_known(header().architecture()), Code::checkpoint, "{}: general.architecture = '{}' is not understood; have: {}", path(),
           header().architecture(), join(known_architectures(), ", "));
  KF_CHECK(heads() > 0 && kv_heads() > 0, Code::checkpoint, "{}: {}.attention.head_count is missing, or no number above 0", path(),
           header().architecture());
  const Naming naming(header().architecture(), heads(), kv_heads());
  const auto all = std::make_shared<std::map<std::string, Made>>();
  NamedTensors out;
  for (const std::string& name : theirs.names) {
    if (name == kDivisors) {
      continue;
    }
    auto [ours, made] = naming.of(name);
    const Shape shape = theirs.ranged->kind(name).shape;
    KF_CHECK(made.paired_heads == 0 || shape[0] % (2 * made.paired_heads) == 0, Code::checkpoint,
             "{}: '{}' has {} rows, which are no {} heads of two halves", path(), name, shape[0], made.paired_heads);
    KF_CHECK(all->emplace(ours, made).second, Code::checkpoint, "{}: two tensors are '{}' by its table of names", path(), ours);
    out.names.push_back(ours);
  }
  out.get = [all, get = theirs.get](const std::string& name) {
    const Made& made = all->at(name);
    at::Tensor tensor = get(made.theirs);
    tensor = made.paired_heads > 0 ? by_halves(tensor, made.paired_heads) : tensor;
    return made.less_one ? tensor - 1 : tensor;
  };
  const auto kind = [all, kind = theirs.ranged->kind](const std::string& name) { return kind(all->at(name).theirs); };
  out.ranged = {kind, [all, get = out.get, read = theirs.ranged->read](const TensorPiece& into) {
                  const Made& made = all->at(into.name);
                  if (made.paired_heads == 0 && !made.less_one) {
                    return read({made.theirs, into.shape, into.range, into.tensor});
                  }
                  const at::NoGradGuard no_grad;
                  into.tensor.copy_(into.range.of(get(into.name)));
                }};
  return out;
}

void load_file(const fs::path& path, Model& model, const VocabRows& rows, const Placements& placements, const LoadRules& rules) {
  const OpenFile file(path);
  check_heads(file, model);
  LoadRules ours = rules;  // names are changed as they stand in the file
  ours.names = {};
  const NamedTensors tensors = file.as_ours(renamed(file.tensors(), rules.names, path));
  load_weights_from(tensors, path, model, rows, placements, ours);
  log::info("{}: weights of a {} model of llama.cpp, {} tensors; its tokenizer is not read", path, file.header().architecture(),
            tensors.names.size());
}

}  // namespace kf::gguf
