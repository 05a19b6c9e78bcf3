#include "checkpoint/left_out.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>

#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/weights.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

std::uint32_t crc_of(const at::Tensor& tensor, std::uint32_t crc) {
  const at::Tensor bytes = tensor.detach().cpu().contiguous();
  return extend_crc32(crc, bytes.const_data_ptr(), bytes.nbytes());
}

constexpr std::pair<std::string_view, at::ScalarType> kTypes[] = {{"fp32", at::kFloat}, {"bf16", at::kBFloat16}, {"fp16", at::kHalf}};

std::string name_of(at::ScalarType type) {
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) { return known.second == type; });
  KF_CHECK(found != std::end(kTypes), Code::other, "a frozen weight is {}", c10::toString(type));
  return std::string(found->first);
}

at::ScalarType type_named(const Node& node, const fs::path& path) {
  const auto* const text = std::get_if<std::string>(&node.value);
  const auto* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) { return text != nullptr && known.first == *text; });
  KF_CHECK(found != std::end(kTypes), Code::checkpoint, "{}: a type in 'left_out' is none of fp32, bf16, fp16", path);
  return found->second;
}

}  // namespace

bool LeftOut::contains(const std::string& name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

at::Tensor LeftOut::as_it_was(const std::string& name, const at::Tensor& tensor) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? tensor : tensor.to(types[static_cast<std::size_t>(found - names.begin())]);
}

void check_frozen_whole(Model& model, const Placements& placements) {
  for (const ParameterPtr& parameter : model.parameters()) {
    KF_CHECK(parameter->trainable || parameter->buffer || placements(*parameter).whole(), Code::checkpoint,
             "checkpoint.save_frozen = false needs frozen weights that lie whole on each rank, and {} does not; leave the key out",
             parameter->name);
  }
}

LeftOut frozen_weights(Model& model, const std::string& from) {
  LeftOut out;
  out.from = from;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (!parameter->is_frozen()) {
      continue;
    }
    for (const StoredView& view : parameter->stored()) {
      out.names.push_back(view.name);
      out.types.push_back(parameter->kept().scalar_type());
      out.crc32 = crc_of(view.of(parameter->kept()), out.crc32);
    }
  }
  return out;
}

Node to_node(const LeftOut& out) {
  if (out.names.empty()) {
    return {};
  }
  Table table;
  table["from"] = Node(out.from);
  table["crc32"] = Node(hex32(out.crc32));
  Array names, types;
  for (std::size_t i = 0; i < out.names.size(); ++i) {
    names.emplace_back(out.names[i]);
    types.emplace_back(name_of(out.types[i]));
  }
  table["names"] = Node(std::move(names));
  table["types"] = Node(std::move(types));
  return Node(std::move(table));
}

LeftOut left_out_from(const Node& node, const fs::path& path) {
  LeftOut out;
  if (node.is_null()) {
    return out;
  }
  const Table* const table = node.table();
  const Node* const from = table != nullptr ? table->find("from") : nullptr;
  const Node* const crc = table != nullptr ? table->find("crc32") : nullptr;
  const Node* const names = table != nullptr ? table->find("names") : nullptr;
  const auto* const source = from != nullptr ? std::get_if<std::string>(&from->value) : nullptr;
  const auto* const digits = crc != nullptr ? std::get_if<std::string>(&crc->value) : nullptr;
  KF_CHECK(source != nullptr && digits != nullptr && names != nullptr && names->array() != nullptr, Code::checkpoint,
           "{}: 'left_out' is not whole", path);
  out.from = *source;
  std::from_chars(digits->data(), digits->data() + digits->size(), out.crc32, 16);
  for (const Node& name : *names->array()) {
    const auto* const text = std::get_if<std::string>(&name.value);
    KF_CHECK(text != nullptr, Code::checkpoint, "{}: a name in 'left_out' is none", path);
    out.names.push_back(*text);
  }
  out.types.resize(out.names.size(), at::kFloat);  // as earlier versions have it, which do not say
  if (const Node* const types = table->find("types"); types != nullptr) {
    KF_CHECK(types->array() != nullptr && types->array()->size() == out.names.size(), Code::checkpoint, "{}: 'left_out' is not whole",
             path);
    std::transform(types->array()->begin(), types->array()->end(), out.types.begin(),
                   [&](const Node& type) { return type_named(type, path); });
  }
  return out;
}

void check_left_out(const LeftOut& out, Model& model, const fs::path& checkpoint) {
  std::map<std::string, at::Tensor> tensors;
  for (auto& [name, tensor] : weights_of(model)) {
    tensors[name] = std::move(tensor);
  }
  std::uint32_t crc = 0;
  bool tells = true;
  for (std::size_t i = 0; i < out.names.size(); ++i) {
    const std::string& name = out.names[i];
    KF_CHECK(tensors.contains(name), Code::checkpoint, "{} leaves out {}, which the model does not have", checkpoint, name);
    const at::ScalarType held = tensors[name].scalar_type();
    tells = tells && (held == at::kFloat || held == out.types[i]);
    crc = crc_of(tensors[name].to(out.types[i]), crc);
  }
  if (!tells) {
    log::warn("{} was saved beside frozen weights of another type: whether these are the same is not checked", checkpoint);
    return;
  }
  KF_CHECK(crc == out.crc32, Code::checkpoint,
           "{} leaves out the frozen weights (checkpoint.save_frozen = false), and those of {} are not the ones that it was trained beside",
           checkpoint, out.from);
}

}  // namespace kf
