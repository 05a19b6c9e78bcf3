#include "checkpoint/left_out.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/weights.h"
#include "core/error.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

std::uint32_t crc_of(const at::Tensor& tensor, std::uint32_t crc) {
  const at::Tensor bytes = tensor.detach().cpu().contiguous();
  return extend_crc32(crc, bytes.const_data_ptr(), bytes.nbytes());
}

}  // namespace

bool LeftOut::contains(const std::string& name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

LeftOut frozen_weights(Model& model, const std::string& from) {
  LeftOut out;
  out.from = from;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->trainable || parameter->buffer) {
      continue;
    }
    for (const StoredView& view : parameter->stored()) {
      out.names.push_back(view.name);
      out.crc32 = crc_of(view.of(parameter->master), out.crc32);
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
  Array names;
  for (const std::string& name : out.names) {
    names.emplace_back(name);
  }
  table["names"] = Node(std::move(names));
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
  return out;
}

void check_left_out(const LeftOut& out, Model& model, const fs::path& checkpoint) {
  std::map<std::string, at::Tensor> tensors;
  for (auto& [name, tensor] : weights_of(model)) {
    tensors[name] = std::move(tensor);
  }
  std::uint32_t crc = 0;
  for (const std::string& name : out.names) {
    KF_CHECK(tensors.contains(name), Code::checkpoint, "{} leaves out {}, which the model does not have", checkpoint, name);
    crc = crc_of(tensors[name], crc);
  }
  KF_CHECK(crc == out.crc32, Code::checkpoint,
           "{} leaves out the frozen weights (checkpoint.save_frozen = false), and those of {} are not the ones that it was trained beside",
           checkpoint, out.from);
}

}  // namespace kf
