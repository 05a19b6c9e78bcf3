#include "checkpoint/files/stored_tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // of an index: what is larger is none

PieceIndex read_index(const fs::path& path) {
  try {
    return piece_index_from(config::parse_json(read_regular_file(path, kMostBytes), path.string()), path);
  } catch (const Error& error) {
    throw Error(Code::checkpoint, error.what());
  }
}

/// A file by itself: every tensor in it is whole.
PieceIndex index_of(const SafetensorsFile& file, const std::string& name) {
  PieceIndex index;
  for (const std::string& tensor : file.names()) {
    const Shape shape = file.shape(tensor);
    index[tensor] = {shape, {{name, tensor, Range::whole(shape)}}};
  }
  return index;
}

/// Whether a rank and its file agree on what is in there.
void check_parts(const PieceIndex& index, const std::map<std::string, std::shared_ptr<const SafetensorsFile>>& files,
                 const fs::path& path) {
  for (const auto& [name, tensor] : index) {
    for (const StoredPiece& part : tensor.parts) {
      const SafetensorsFile& file = *files.at(part.file);
      KF_CHECK(file.contains(part.name) && file.shape(part.name) == part.range.size, Code::checkpoint,
               "{} holds no such part of '{}' as {} says", path.parent_path() / part.file, name, path);
      KF_CHECK(file.type(part.name) == files.at(tensor.parts.front().file)->type(tensor.parts.front().name), Code::checkpoint,
               "{}: the parts of tensor '{}' are of different types", path, name);
    }
  }
}

}  // namespace

StoredTensors::StoredTensors(const fs::path& path) : path_(path) {
  if (path.extension() != ".json") {
    const std::string name = path.filename().string();
    const auto file = std::make_shared<const SafetensorsFile>(path);
    index_ = index_of(*file, name);
    files_[name] = file;
    return;
  }
  index_ = read_index(path);
  for (const auto& [name, tensor] : index_) {
    for (const StoredPiece& part : tensor.parts) {
      std::shared_ptr<const SafetensorsFile>& file = files_[part.file];
      if (!file) {
        file = std::make_shared<const SafetensorsFile>(path.parent_path() / part.file);
      }
    }
  }
  check_parts(index_, files_, path);
  check_complete(index_, path);
}

std::vector<std::string> StoredTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : index_) {
    names.push_back(name);
  }
  return names;
}

const StoredTensor& StoredTensors::entry(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    const std::string near = nearest(name, names());
    fail(Code::checkpoint, "{}: no tensor '{}'{}", path_, name, near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  return found->second;
}

at::ScalarType StoredTensors::type(const std::string& name) const {
  const StoredPiece& part = entry(name).parts.front();
  return file(part).type(part.name);
}

void StoredTensors::read(const TensorPiece& into) const {
  const at::NoGradGuard no_grad;
  const StoredTensor& stored = entry(into.name);
  KF_CHECK(stored.shape == into.shape, Code::checkpoint, "{}: the tensor '{}' has another shape than the one that it is read into", path_,
           into.name);
  std::int64_t found = 0;
  for (const StoredPiece& part : stored.parts) {
    const std::optional<Range> both = part.range.overlap(into.range);
    if (!both) {
      continue;
    }
    file(part).read(part.name, both->within(part.range), both->within(into.range).of(into.tensor));
    found += both->numel();
  }
  KF_CHECK(found == into.range.numel(), Code::checkpoint, "{}: its parts of the tensor '{}' overlap or leave holes", path_, into.name);
}

at::Tensor StoredTensors::tensor(const std::string& name) const {
  const Shape& shape = entry(name).shape;
  at::Tensor out = at::empty(shape, at::TensorOptions().dtype(type(name)));
  read({name, shape, Range::whole(shape), out});
  return out;
}

}  // namespace kf
