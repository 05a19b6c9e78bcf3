#include "checkpoint/foreign/state_dict.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint/foreign/saved_values.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

using pickle::Kind;
using pickle::SavedFile;
using pickle::SavedTensor;
using pickle::Value;

constexpr std::string_view kHolders[] = {"state_dict", "model_state_dict", "model", "module"};
// torch.compile, FSDP, activation checkpointing; DistributedDataParallel's stands in front alone.
constexpr std::string_view kWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."};
constexpr std::string_view kParallel = "module.";

std::optional<SavedTensor> named_tensor(const SavedFile& file, const std::string& name, const Value& value) {
  try {
    return file.tensor(value);
  } catch (Error& error) {
    throw error.context(format("the tensor '{}'", name));
  }
}

bool has_tensors(const SavedFile& file, const Value& dict) {
  for (std::size_t i = 0; i < dict.size(); ++i) {
    if (dict.key(i).is(Kind::text) && named_tensor(file, std::string(dict.key(i).text()), dict.value(i))) {
      return true;
    }
  }
  return false;
}

std::string keys_of(const Value& dict) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < dict.size() && keys.size() < 10; ++i) {
    keys.push_back(dict.key(i).is(Kind::text) ? std::string(dict.key(i).text()) : std::string(pickle::words_for(dict.key(i).kind())));
  }
  return keys.empty() ? "nothing" : join(keys, ", ") + (dict.size() > keys.size() ? ", ..." : "");
}

/// The dict that holds the tensors of a model.
Value find_dict(const SavedFile& file) {
  const Value root = file.root();
  KF_CHECK(root.is(Kind::dict), Code::checkpoint, "{}: holds {}, where tensors by name are needed: torch.save(model.state_dict(), FILE)",
           file.path(), file.tensor(root) ? "one tensor" : pickle::words_for(root.kind()));
  for (const std::string_view holder : kHolders) {
    const std::optional<Value> inner = root.find(holder);
    if (inner && inner->is(Kind::dict) && has_tensors(file, *inner)) {
      log::info("{}: took the tensors under '{}' of: {}", file.path(), holder, keys_of(root));
      return *inner;
    }
  }
  KF_CHECK(has_tensors(file, root), Code::checkpoint,
           "{}: holds no tensors by name, neither itself nor under state_dict, model_state_dict, "
           "model or module; it has: {}",
           file.path(), keys_of(root));
  return root;
}

std::string without(std::string name, std::string_view part) {
  for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at)) {
    name.erase(at, part.size());
  }
  return name;
}

using Tensors = std::map<std::string, SavedTensor>;

/// Without a prefix that all names have.
Tensors without_prefix(Tensors tensors, std::string_view prefix) {
  if (!std::all_of(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.first.starts_with(prefix); })) {
    return tensors;
  }
  Tensors out;
  for (auto& [name, tensor] : tensors) {
    out[name.substr(prefix.size())] = std::move(tensor);
  }
  return out;
}

Tensors tensors_in(const SavedFile& file, const Value& dict) {
  Tensors out;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < dict.size(); ++i) {
    if (!dict.key(i).is(Kind::text)) {
      continue;
    }
    std::string name(dict.key(i).text());
    std::optional<SavedTensor> tensor = named_tensor(file, name, dict.value(i));
    if (!tensor) {
      others.push_back(name);
      continue;
    }
    for (const std::string_view wrapper : kWrappers) {
      name = without(std::move(name), wrapper);
    }
    KF_CHECK(out.emplace(name, std::move(*tensor)).second, Code::checkpoint, "{}: two tensors are named '{}'", file.path(), name);
  }
  if (!others.empty()) {
    log::info("{}: left out what is no tensor{}", file.path(), list_names("names", others));
  }
  out = without_prefix(std::move(out), kParallel);
  return file.root().find("pytorch-lightning_version") ? without_prefix(std::move(out), "model.") : out;
}

}  // namespace

NamedTensors open_state_dict(const fs::path& path) { return open_state_dict(std::make_shared<const SavedFile>(path)); }

NamedTensors open_state_dict(const std::shared_ptr<const SavedFile>& file) {
  const auto tensors = std::make_shared<const Tensors>(tensors_in(*file, find_dict(*file)));
  NamedTensors out;
  for (const auto& [name, tensor] : *tensors) {
    out.names.push_back(name);
  }
  out.get = [file, tensors](const std::string& name) { return read_saved(*file, tensors->at(name), name); };
  out.ranged = {
      [tensors](const std::string& name) {
        return TensorKind{tensors->at(name).shape, scalar_type(*tensors->at(name).type)};
      },
      [file, tensors](const TensorPiece& into) { read_saved(*file, tensors->at(into.name), into.name, into.range, into.tensor); }};
  return out;
}

}  // namespace kf
