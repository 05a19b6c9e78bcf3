#include "checkpoint/foreign/distributed.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "checkpoint/foreign/distributed_index.h"
#include "checkpoint/foreign/saved_values.h"
#include "checkpoint/pickle/saved_file.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

constexpr const char* kIndexName = ".metadata";

bool is_distributed(const fs::path& folder) { return path_exists(folder / kIndexName) || path_exists(folder / "pp0" / kIndexName); }

/// N of step_N; -1 for any other name.
std::int64_t step_of(const std::string& name) {
  std::int64_t out = -1;
  if (name.starts_with("step_")) {
    const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), out);
    return error == std::errc() && end == name.data() + name.size() ? out : -1;
  }
  return out;
}

/// The folder itself, or those of its pipeline stages.
std::vector<fs::path> stages_of(const fs::path& folder) {
  if (path_exists(folder / kIndexName)) {
    return {folder};
  }
  std::vector<fs::path> out;
  while (path_exists(folder / format("pp{}", out.size()) / kIndexName)) {
    out.push_back(folder / format("pp{}", out.size()));
  }
  KF_CHECK(!out.empty(), Code::checkpoint, "{} holds neither {} nor pp0/{}", folder, kIndexName, kIndexName);
  return out;
}

/// The tensors of all stages, and their files as far as they were opened.
class Shards {
 public:
  explicit Shards(const fs::path& folder) {
    for (const fs::path& stage : stages_of(folder)) {
      for (auto& [name, tensor] : read_distributed_index(stage / kIndexName)) {
        check_files(stage, tensor);
        KF_CHECK(tensors_.emplace(name, Stored{stage, std::move(tensor)}).second, Code::checkpoint,
                 "{}: the tensor '{}' is in an earlier stage, too", stage, name);
      }
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, stored] : tensors_) {
      out.push_back(name);
    }
    return out;
  }
  TensorKind kind(const std::string& name) const { return {tensors_.at(name).tensor.shape, tensors_.at(name).tensor.type}; }

  void read(const TensorPiece& into) {
    const at::NoGradGuard no_grad;
    const Stored& stored = tensors_.at(into.name);
    std::int64_t found = 0;
    for (const DistributedShard& shard : stored.tensor.shards) {
      if (const std::optional<Range> both = shard.range.overlap(into.range)) {
        read_shard(stored, shard, both->within(shard.range), both->within(into.range).of(into.tensor));
        found += both->numel();
      }
    }
    KF_CHECK(found == into.range.numel(), Code::checkpoint, "{}: the parts of the tensor '{}' overlap or leave holes", stored.folder,
             into.name);
  }

  at::Tensor whole(const std::string& name) {
    const TensorKind of = kind(name);
    at::Tensor out = at::empty(of.shape, at::TensorOptions().dtype(of.type));
    read({name, of.shape, Range::whole(of.shape), out});
    return out;
  }

 private:
  struct Stored {
    fs::path folder;
    DistributedTensor tensor;
  };

  /// Whether the files are there, and as long as the index says.
  void check_files(const fs::path& stage, const DistributedTensor& tensor) {
    for (const DistributedShard& shard : tensor.shards) {
      const fs::path file = stage / shard.file;
      const std::string unlike = sizes_.contains(file) ? "" : unlike_a_file(file);
      KF_CHECK(unlike.empty(), Code::checkpoint, "{}: {}; {} names it", file, unlike, kIndexName);
      const std::uint64_t size = sizes_.try_emplace(file, sizes_.contains(file) ? 0 : fs::file_size(file)).first->second;
      KF_CHECK(shard.begin <= size && shard.size <= size - shard.begin, Code::checkpoint,
               "{}: has {} bytes; by {} a part of '{}' ends behind them: the file is cut short", file, size, kIndexName, tensor.name);
    }
  }

  void read_shard(const Stored& stored, const DistributedShard& shard, const Range& range, const at::Tensor& into) {
    std::shared_ptr<const MappedFile>& file = files_[stored.folder / shard.file];
    if (!file) {
      file = std::make_shared<const MappedFile>(stored.folder / shard.file);
    }
    const pickle::SavedFile saved(file, shard.begin, shard.size);
    const std::optional<pickle::SavedTensor> tensor = saved.tensor(saved.root());
    KF_CHECK(tensor && tensor->shape == shard.range.size, Code::checkpoint, "{}: at byte {} lies no such part of '{}' as {} says",
             file->path(), shard.begin, stored.tensor.name, kIndexName);
    read_saved(saved, *tensor, stored.tensor.name, range, into);
  }

  std::map<std::string, Stored> tensors_;  // by the model's name
  std::map<fs::path, std::shared_ptr<const MappedFile>> files_;
  std::map<fs::path, std::uint64_t> sizes_;
};

}  // namespace

std::optional<fs::path> find_distributed(const fs::path& source) {
  for (const fs::path& folder : {source, source / "latest"}) {
    if (is_distributed(folder)) {
      return folder;
    }
  }
  std::optional<fs::path> out;
  std::int64_t highest = -1;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(source, ignored)) {
    if (const std::int64_t step = step_of(entry.path().filename().string()); step > highest && is_distributed(entry.path())) {
      highest = step;
      out = entry.path();
    }
  }
  return out;
}

NamedTensors open_distributed(const fs::path& folder) {
  const auto shards = std::make_shared<Shards>(folder);
  return {shards->names(), [shards](const std::string& name) { return shards->whole(name); },
          NamedTensors::Ranged{[shards](const std::string& name) { return shards->kind(name); },
                               [shards](const TensorPiece& into) { shards->read(into); }}};
}

}  // namespace kf
