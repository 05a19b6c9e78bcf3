#pragma once
// What torch.save wrote: a pickle, and the storages that it refers to. Storages are read from the mapped file when they are asked for.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/pickle/globals.h"
#include "checkpoint/pickle/unpickle.h"
#include "checkpoint/pickle/zip.h"
#include "core/fs.h"

namespace kf::pickle {

/// A tensor as the pickle describes it: element (i, j, ..) is number offset + i * strides[0] + j * strides[1] + .. of the storage. All of
/// them lie inside of the storage.
struct SavedTensor {
  const NumberType* type = nullptr;
  std::string storage;
  std::uint64_t offset = 0;
  std::vector<std::int64_t> shape, strides;
};

class SavedFile {
 public:
  /// A file: a zip archive (PyTorch 1.6 and later), or what came before that. Throws Code::checkpoint naming the file and what is wrong
  /// with it.
  explicit SavedFile(const fs::path& path);
  /// A zip archive that is a part of a file.
  SavedFile(std::shared_ptr<const MappedFile> file, std::uint64_t begin, std::uint64_t size);

  const fs::path& path() const { return file_->path(); }
  Value root() const { return saved_.value(); }
  /// The tensor that a value stands for, a parameter's or a subclass's, too; nothing for a value of another kind. Throws for one that is
  /// not understood, or that would reach outside of its storage.
  std::optional<SavedTensor> tensor(const Value& value) const;
  /// All of a tensor's storage. `whole`: compared with its checksum, once.
  std::span<const std::byte> storage(const SavedTensor& tensor, bool whole) const;

 private:
  void open_zip();
  void open_old();
  void find_storages(const std::vector<std::string>& keys, std::uint64_t begin);
  const ZipEntry& entry(const std::string& key) const;

  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;  // of it
  Place place_;
  Unpickled saved_;
  std::map<std::string, ZipEntry> storages_;  // by key
  mutable std::map<std::string, bool> checked_;
};

/// Whether a file begins as one of torch.save does.
bool is_saved_file(std::span<const std::byte> bytes);

}  // namespace kf::pickle
