#pragma once
// Named tensors on disk, whole in one safetensors file or in parts over several: any range of them can be read.

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/files/piece_index.h"
#include "checkpoint/files/pieces.h"
#include "checkpoint/files/safetensors.h"

namespace kf {

class StoredTensors {
 public:
  /// A .safetensors file, or an index of parts (.json) with the files that it names. Throws Code::checkpoint naming the file and what is
  /// wrong with it.
  explicit StoredTensors(const fs::path& path);

  const fs::path& path() const { return path_; }
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return index_.count(name) > 0; }
  /// Of the whole. Throws Code::checkpoint for an unknown name, as all below.
  const Shape& shape(const std::string& name) const { return entry(name).shape; }
  at::ScalarType type(const std::string& name) const;
  /// Copies exactly the piece's range into its tensor, which may be of another type and anywhere, from however many files it lies in: this
  /// is how a checkpoint of some ranks is read by others. Throws where the stored tensor has another shape than the piece's whole.
  void read(const TensorPiece& into) const;
  /// All of it, as a copy that owns its memory.
  at::Tensor tensor(const std::string& name) const;

 private:
  const StoredTensor& entry(const std::string& name) const;
  const SafetensorsFile& file(const StoredPiece& part) const { return *files_.at(part.file); }

  fs::path path_;
  PieceIndex index_;
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files_;
};

}  // namespace kf
