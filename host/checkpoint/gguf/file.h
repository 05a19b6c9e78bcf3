#pragma once
// The file format of llama.cpp: keys with values, then tensors. (GGUF, version 3.)

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/files/durable_file.h"
#include "config/tree/gguf.h"
#include "core/fs.h"
#include "model/placement.h"

namespace kf::gguf {

/// "F32", "F16", "BF16", "Q8_0"; throws Code::config for another word.
Type type_named(std::string_view word);

/// The file that is written for this name: links are followed. Throws Code::config where its folder is missing, or where something else
/// than a GGUF file is there.
fs::path target_of(const fs::path& asked);

/// Bytes of a tensor of this type: blocks of 32 numbers along the last dim for q8_0.
std::uint64_t bytes_of(Type type, const Shape& shape);
/// A tensor's numbers in that type, as the file has them. Throws Code::checkpoint naming `name` where a number has no form in it.
std::string encoded(Type type, const at::Tensor& tensor, const std::string& name);

class File {
 public:
  void add(const std::string& key, std::uint32_t value);
  void add(const std::string& key, float value);
  void add(const std::string& key, bool value);
  void add(const std::string& key, const std::string& value);
  void add(const std::string& key, const char* value) { add(key, std::string(value)); }
  void add(const std::string& key, const std::vector<std::string>& values);
  void add(const std::string& key, const std::vector<std::int32_t>& values);
  void add(const std::string& key, const std::vector<float>& values);

  /// `make` is asked for the tensor, of this shape, while the file is written: one is held at a time.
  void add_tensor(const std::string& name, const Shape& shape, Type type, std::function<at::Tensor()> make);

  /// Whole and durable, or not at all. Throws Code::checkpoint.
  FileDigest write(const fs::path& path) const;

 private:
  void begin(const std::string& key, std::uint32_t type);

  struct Stored {
    std::string name;
    Shape shape;
    Type type;
    std::function<at::Tensor()> make;
  };
  std::string values_;
  std::uint64_t keys_ = 0;
  std::vector<Stored> tensors_;
};

}  // namespace kf::gguf
