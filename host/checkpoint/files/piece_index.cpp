#include "checkpoint/files/piece_index.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "checkpoint/files/durable_file.h"
#include "core/error.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

Node to_node(const Shape& numbers) {
  Array out;
  for (const std::int64_t number : numbers) {
    out.emplace_back(number);
  }
  return Node(std::move(out));
}

/// Reads one tensor's entry; every fault names file and tensor.
class Entry {
 public:
  Entry(const fs::path& path, const std::string& name) : path_(path), name_(name) {}

  StoredTensor read(const Node& node) const {
    StoredTensor out;
    out.shape = numbers(node, "shape");
    check_size(out.shape);
    for (const Node& part : get<Array>(node, "parts")) {
      const Node* const as = part.table() != nullptr ? part.table()->find("as") : nullptr;
      out.parts.push_back({get<std::string>(part, "file"),
                           as != nullptr ? get<std::string>(part, "as") : name_,
                           {numbers(part, "begin"), numbers(part, "size")},
                           bytes(part)});
      check(out.parts.back(), out.shape);
    }
    KF_CHECK(!out.parts.empty(), Code::checkpoint, "{}: tensor '{}' lies nowhere", path_, name_);
    return out;
  }

 private:
  template <class T>
  const T& get(const Node& node, const char* key) const {
    const Node* const found = node.table() != nullptr ? node.table()->find(key) : nullptr;
    const T* const value = found != nullptr ? std::get_if<T>(&found->value) : nullptr;
    KF_CHECK(value != nullptr, Code::checkpoint, "{}: tensor '{}' lacks '{}', or it has the wrong type", path_, name_, key);
    return *value;
  }
  std::optional<StoredBytes> bytes(const Node& part) const {
    if (part.table()->find("offset") == nullptr) {
      return std::nullopt;
    }
    const auto offset = get<std::int64_t>(part, "offset");
    KF_CHECK(offset >= 0, Code::checkpoint, "{}: tensor '{}' has an 'offset' below 0", path_, name_);
    return StoredBytes{get<std::string>(part, "type"), static_cast<std::uint64_t>(offset),
                       crc32_from(get<std::string>(part, "crc32"), path_)};
  }
  Shape numbers(const Node& node, const char* key) const {
    Shape out;
    for (const Node& entry : get<Array>(node, key)) {
      const auto* const number = std::get_if<std::int64_t>(&entry.value);
      KF_CHECK(number != nullptr && *number >= 0, Code::checkpoint, "{}: tensor '{}' has a '{}' with what is no size", path_, name_, key);
      out.push_back(*number);
    }
    return out;
  }
  /// LibTorch multiplies sizes without looking.
  void check_size(const Shape& shape) const {
    std::int64_t left = std::numeric_limits<std::int64_t>::max() / 16;  // bytes of the widest type
    for (const std::int64_t dim : shape) {
      left /= std::max<std::int64_t>(dim, 1);
    }
    KF_CHECK(left > 0 && shape.size() <= 64, Code::checkpoint, "{}: tensor '{}' has a shape that no tensor can have", path_, name_);
  }
  void check(const StoredPiece& part, const Shape& shape) const {
    KF_CHECK(fs::path(part.file).filename() == part.file, Code::checkpoint, "{}: tensor '{}' lies in '{}', which is no file beside it",
             path_, name_, part.file);
    bool inside = part.range.begin.size() == shape.size() && part.range.size.size() == shape.size();
    for (std::size_t dim = 0; inside && dim < shape.size(); ++dim) {
      inside = part.range.size[dim] <= shape[dim] && part.range.begin[dim] <= shape[dim] - part.range.size[dim];
    }
    KF_CHECK(inside, Code::checkpoint, "{}: a part of tensor '{}' in {} lies outside of it", path_, name_, part.file);
  }

  const fs::path& path_;
  const std::string& name_;
};

}  // namespace

void add(PieceIndex& index, const PieceIndex& more) {
  for (const auto& [name, tensor] : more) {
    StoredTensor& own = index[name];
    KF_CHECK(own.parts.empty() || own.shape == tensor.shape, Code::checkpoint, "ranks have different shapes for the tensor '{}'", name);
    own.shape = tensor.shape;
    own.parts.insert(own.parts.end(), tensor.parts.begin(), tensor.parts.end());
  }
}

namespace {

/// Two parts that hold the same numbers, or nothing. Only parts that meet in the first dim are compared: there are few.
std::optional<std::pair<Range, Range>> overlapping(const StoredTensor& tensor) {
  std::vector<Range> ranges;
  for (const StoredPiece& part : tensor.parts) {
    ranges.push_back(part.range);
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    for (std::size_t next = i + 1; next < ranges.size(); ++next) {
      if (!tensor.shape.empty() && ranges[next].begin[0] >= ranges[i].begin[0] + ranges[i].size[0]) {
        break;
      }
      if (ranges[i].overlap(ranges[next])) {
        return std::pair(ranges[i], ranges[next]);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void check_complete(const PieceIndex& index, const fs::path& path) {
  for (const auto& [name, tensor] : index) {
    const std::int64_t whole = Range::whole(tensor.shape).numel();
    const std::int64_t found = std::accumulate(tensor.parts.begin(), tensor.parts.end(), std::int64_t{0},
                                               [](std::int64_t sum, const StoredPiece& part) { return sum + part.range.numel(); });
    KF_CHECK(found == whole, Code::checkpoint, "{}: the parts of tensor '{}' have {} of its {} numbers: {}", path, name, found, whole,
             found < whole ? "one is missing" : "one is there twice");
    KF_CHECK(!overlapping(tensor), Code::checkpoint, "{}: two parts of tensor '{}' hold the same numbers, and others are missing", path,
             name);
  }
}

Node to_node(const PieceIndex& index) {
  Table where, tensors;
  for (const auto& [name, tensor] : index) {
    Array parts;
    for (const StoredPiece& part : tensor.parts) {
      Table entry;
      entry["file"] = Node(part.file);
      if (part.name != name) {
        entry["as"] = Node(part.name);
      }
      entry["begin"] = to_node(part.range.begin);
      entry["size"] = to_node(part.range.size);
      if (part.bytes) {
        entry["type"] = Node(part.bytes->type);
        entry["offset"] = Node(static_cast<std::int64_t>(part.bytes->offset));
        entry["crc32"] = Node(hex32(part.bytes->crc32));
      }
      parts.emplace_back(std::move(entry));
    }
    if (tensor.parts.size() == 1) {
      where[name] = Node(tensor.parts.front().file);
    }
    Table entry;
    entry["shape"] = to_node(tensor.shape);
    entry["parts"] = Node(std::move(parts));
    tensors[name] = Node(std::move(entry));
  }
  Table out;
  out["weight_map"] = Node(std::move(where));
  out["tensors"] = Node(std::move(tensors));
  return Node(std::move(out));
}

PieceIndex piece_index_from(const Node& node, const fs::path& path) {
  const Node* const tensors = node.table() != nullptr ? node.table()->find("tensors") : nullptr;
  KF_CHECK(tensors != nullptr && tensors->table() != nullptr, Code::checkpoint, "{} lacks the table 'tensors'", path);
  PieceIndex index;
  for (const auto& [name, entry] : *tensors->table()) {
    index[name] = Entry(path, name).read(entry);
  }
  return index;
}

}  // namespace kf
