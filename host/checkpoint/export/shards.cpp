#include "checkpoint/export/shards.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "checkpoint/files/durable_file.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kWriter = "writer";
constexpr const char* kName = "kf-host export";

std::string file_name(std::size_t number, std::size_t all) {
  const auto digits = [](std::size_t value) {
    const std::string text = std::to_string(value);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return all == 1 ? "model.safetensors" : "model-" + digits(number) + "-of-" + digits(all) + ".safetensors";
}

std::vector<std::vector<LazyTensor>> divided(const std::vector<LazyTensor>& tensors, std::uint64_t most) {
  std::vector<std::vector<LazyTensor>> out;
  std::uint64_t held = 0;
  for (const LazyTensor& tensor : tensors) {
    if (out.empty() || held + tensor.bytes() > most) {
      out.emplace_back();
      held = 0;
    }
    held += tensor.bytes();
    out.back().push_back(tensor);
  }
  return out;
}

/// Of a file that has such a name and that `write_shards` wrote.
std::optional<std::map<std::string, std::string>> metadata_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with("model") || !name.ends_with(".safetensors") || !unlike_a_file(file).empty()) {
    return std::nullopt;
  }
  try {
    std::map<std::string, std::string> metadata = SafetensorsFile(file).metadata();
    const auto found = metadata.find(kWriter);
    return found != metadata.end() && found->second == kName ? std::optional(std::move(metadata)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Shards write_shards(const fs::path& folder, const std::vector<LazyTensor>& tensors, std::uint64_t most,
                    const std::map<std::string, std::string>& metadata) {
  std::map<std::string, std::string> said{{"format", "pt"}, {kWriter, kName}};
  said.insert(metadata.begin(), metadata.end());
  const std::vector<std::vector<LazyTensor>> files = divided(tensors, most);
  Shards out{files.size(), 0};
  config::Table places;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = file_name(i + 1, files.size());
    write_safetensors(folder / name, files[i], said);
    for (const LazyTensor& tensor : files[i]) {
      places[tensor.name] = config::Node(name);
      out.bytes += tensor.bytes();
    }
  }
  if (files.size() > 1) {
    config::Table total, index;
    total["total_size"] = config::Node(static_cast<std::int64_t>(out.bytes));
    index["metadata"] = config::Node(std::move(total));
    index["weight_map"] = config::Node(std::move(places));
    DurableFile file(folder / kIndex);
    file.write(config::to_json(config::Node(std::move(index)), config::JsonStyle::plain, 2) + "\n");
    file.commit();
  }
  return out;
}

bool is_shard(const fs::path& file) { return file.filename() == kIndex || metadata_of(file); }

std::optional<std::map<std::string, std::string>> shard_metadata(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (auto metadata = metadata_of(it->path())) {
      return metadata;
    }
  }
  return std::nullopt;
}

}  // namespace kf
