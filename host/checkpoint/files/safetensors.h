#pragma once
// The safetensors file format (huggingface/safetensors, format 0.x): 8-byte little-endian header length, JSON header, raw tensors.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/positioned_file.h"
#include "core/fs.h"
#include "model/placement.h"

namespace kf {

/// A file open for reading. Every length and offset is checked against the file before use.
class SafetensorsFile {
 public:
  /// Throws Code::checkpoint naming the file and what is wrong with it.
  explicit SafetensorsFile(const fs::path& path);

  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return entries_.count(name) > 0; }
  /// A copy that owns its memory. Throws Code::checkpoint for an unknown name.
  at::Tensor tensor(const std::string& name) const;
  /// The same of a part alone; nothing else of the tensor is read. `range` lies inside of it.
  at::Tensor slice(const std::string& name, const Range& range) const;
  /// The part into a tensor of its size, which may be of another type and anywhere; beside it a few MB are held.
  void read(const std::string& name, const Range& range, const at::Tensor& into) const;
  std::vector<std::int64_t> shape(const std::string& name) const;
  at::ScalarType type(const std::string& name) const { return entry(name).type; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Entry {
    at::ScalarType type;
    std::vector<std::int64_t> shape;
    std::size_t begin = 0;  // in the file
    std::size_t end = 0;
  };
  const Entry& entry(const std::string& name) const;
  void read_box(const Entry& entry, const std::string& name, const Range& range, const at::Tensor& into) const;

  PositionedFile file_;
  std::vector<std::string> names_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Where a tensor's bytes lie in its file, and what they are.
struct StoredBytes {
  std::string type;          // as the format names it: "F32"
  std::uint64_t offset = 0;  // from the beginning of the file
  std::uint32_t crc32 = 0;   // of these bytes
};

/// A tensor that is there only while it is written.
struct LazyTensor {
  std::string name;
  at::ScalarType type = at::kFloat;
  Shape shape;
  std::function<at::Tensor()> make;

  std::uint64_t bytes() const;
};

/// As below, one after the other: of many large ones, memory holds one. Throws Code::checkpoint where one is made otherwise than announced.
FileDigest write_safetensors(const fs::path& path, const std::vector<LazyTensor>& tensors,
                             const std::map<std::string, std::string>& metadata = {}, std::vector<StoredBytes>* where = nullptr);
/// Writes tensors (any device, any strides) in the order given; fsyncs. Throws Code::checkpoint (disk full, ...), leaving no file behind
/// and an older one of that name as it was. `where` gets a line for each, in order.
FileDigest write_safetensors(const fs::path& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                             const std::map<std::string, std::string>& metadata = {}, std::vector<StoredBytes>* where = nullptr);

}  // namespace kf
