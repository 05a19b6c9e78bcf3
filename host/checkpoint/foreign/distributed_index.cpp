#include "checkpoint/foreign/distributed_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "checkpoint/files/piece_index.h"
#include "checkpoint/foreign/saved_values.h"
#include "checkpoint/pickle/unpickle.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr std::string_view kModel = "model";

/// Where a shard lies: by its tensor's name and its first element.
using ShardKey = std::pair<std::string, Shape>;

class IndexReader {
 public:
  explicit IndexReader(const fs::path& path) : path_(path) {}

  std::map<std::string, DistributedTensor> read(const Value& root) {
    check(root.is(Kind::object, "torch.distributed.checkpoint.metadata.Metadata"), "it is no Metadata of torch.distributed.checkpoint");
    const Value tensors = field(root, "state_dict_metadata"), storage = field(root, "storage_data");
    check(tensors.is(Kind::dict) && storage.is(Kind::dict), "it has no dicts of tensors and of where they lie");
    for (std::size_t i = 0; i < storage.size(); ++i) {
      add_place(storage.key(i), storage.value(i));
    }
    const std::map<std::string, std::string> names = model_names(root, tensors);
    std::map<std::string, DistributedTensor> out;
    PieceIndex pieces;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string name(text(tensors.key(i)));
      const auto own = names.find(name);
      if (own == names.end() || !tensors.value(i).is(Kind::object, "torch.distributed.checkpoint.metadata.TensorStorageMetadata")) {
        continue;
      }
      DistributedTensor tensor = tensor_of(name, tensors.value(i));
      for (const DistributedShard& shard : tensor.shards) {
        pieces[own->second].shape = tensor.shape;
        pieces[own->second].parts.push_back({shard.file, name, shard.range});
      }
      out[own->second] = std::move(tensor);
    }
    check_complete(pieces, path_);
    check(!out.empty(), "it lists no tensors");
    return out;
  }

 private:
  void check(bool holds, std::string_view what) const { KF_CHECK(holds, Code::checkpoint, "{}: {}", path_, what); }

  /// An attribute of an object; None where it has none of the name.
  std::optional<Value> maybe_field(const Value& object, std::string_view name) const {
    const std::optional<Value> state = object.state();
    return state ? state->find(name) : std::nullopt;
  }
  Value field(const Value& object, std::string_view name) const {
    const std::optional<Value> out = maybe_field(object, name);
    KF_CHECK(out, Code::checkpoint, "{}: {} has no '{}'", path_, object.is(Kind::object) ? object.text() : pickle::words_for(object.kind()),
             name);
    return *out;
  }
  std::string_view text(const Value& value) const {
    check(value.is(Kind::text), "a name or path is no text");
    return value.text();
  }
  std::uint64_t number(const Value& value) const {
    check(value.is(Kind::integer) && value.integer() >= 0, "a size or offset is none");
    return static_cast<std::uint64_t>(value.integer());
  }
  Shape shape(const Value& value) const {
    const bool wrapped = value.is(Kind::object, "torch.Size");
    check(!wrapped || value.size() == 1, "a torch.Size holds nothing");
    const Value list = wrapped ? value.item(0) : value;
    check((list.is(Kind::tuple) || list.is(Kind::list)) && list.size() <= 64, "a shape is none");
    Shape out;
    std::uint64_t bytes = 16;  // of the widest type; LibTorch multiplies sizes without looking
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::uint64_t dim = number(list.item(i));
      check(bytes <= (std::uint64_t{1} << 62) / std::max<std::uint64_t>(dim, 1), "a tensor would have more than 2^62 bytes");
      bytes *= std::max<std::uint64_t>(dim, 1);
      out.push_back(static_cast<std::int64_t>(dim));
    }
    return out;
  }

  void add_place(const Value& key, const Value& place) {
    const std::optional<Value> offset = maybe_field(key, "offset");
    DistributedShard shard;
    shard.file = text(field(place, "relative_path"));
    check(!shard.file.empty() && shard.file.find('/') == std::string::npos && shard.file != "..", "a shard lies outside of the folder");
    shard.begin = number(field(place, "offset"));
    shard.size = number(field(place, "length"));
    const std::optional<Value> transforms = maybe_field(place, "transform_descriptors");
    check(!transforms || transforms->is(Kind::none) || transforms->size() == 0,
          "its shards are transformed (compressed); save without such extensions");
    places_[{std::string(text(field(key, "fqn"))), offset && !offset->is(Kind::none) ? shape(*offset) : Shape{}}] = shard;
  }

  DistributedTensor tensor_of(const std::string& name, const Value& stored) const {
    DistributedTensor out;
    out.name = name;
    out.shape = shape(field(stored, "size"));
    out.type = type_of(name, field(stored, "properties"));
    const Value chunks = field(stored, "chunks");
    check(chunks.is(Kind::list) || chunks.is(Kind::tuple), "the parts of a tensor are no list");
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      Range range;
      range.begin = shape(field(chunks.item(i), "offsets"));
      range.size = shape(field(chunks.item(i), "sizes"));
      check_inside(range, out.shape, name);
      if (range.numel() == 0 && !out.shape.empty() && chunks.size() > 1) {
        continue;  // a rank that got no rows
      }
      auto place = places_.find({name, range.begin});
      place = place == places_.end() ? places_.find({name, Shape{}}) : place;
      KF_CHECK(place != places_.end(), Code::checkpoint, "{}: it does not say where part {} of '{}' lies", path_, i, name);
      const std::uint64_t bytes = static_cast<std::uint64_t>(range.numel()) * c10::elementSize(out.type);
      KF_CHECK(bytes <= place->second.size, Code::checkpoint, "{}: a part of '{}' has {} bytes and lies in {}", path_, name, bytes,
               place->second.size);
      out.shards.push_back(place->second);
      out.shards.back().range = range;
    }
    return out;
  }

  void check_inside(const Range& range, const Shape& whole, const std::string& name) const {
    bool inside = range.begin.size() == whole.size() && range.size.size() == whole.size();
    for (std::size_t dim = 0; inside && dim < whole.size(); ++dim) {
      inside = range.begin[dim] <= whole[dim] && range.size[dim] <= whole[dim] - range.begin[dim];
    }
    KF_CHECK(inside, Code::checkpoint, "{}: a part of '{}' lies outside of it", path_, name);
  }

  at::ScalarType type_of(const std::string& name, const Value& properties) const {
    const std::optional<Value> state = properties.state();
    const std::optional<Value> dtype = !state                                        ? std::nullopt
                                       : state->is(Kind::tuple) && state->size() > 0 ? std::optional(state->item(0))
                                                                                     : state->find("dtype");
    const pickle::NumberType* const type = dtype && dtype->is(Kind::global) ? pickle::number_type(dtype->text()) : nullptr;
    KF_CHECK(type, Code::checkpoint, "{}: the tensor '{}' has a type that is not read", path_, name);
    return scalar_type(*type);
  }

  /// Names in the index of what belongs to the model, and the model's own. The index says which dict each name comes from ("planner_data").
  std::map<std::string, std::string> model_names(const Value& root, const Value& tensors) const {
    std::map<std::string, std::string> all, model;
    const std::optional<Value> paths = maybe_field(root, "planner_data");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string name(text(tensors.key(i)));
      all[name] = name;
      const std::optional<Value> path = paths ? paths->find(name) : std::nullopt;
      const std::size_t depth = path && path->is(Kind::tuple) ? path->size() : 0;  // ("app", "model", "norm.weight"): the last dict counts
      if (depth >= 2 && path->item(depth - 2).is(Kind::text) && path->item(depth - 1).is(Kind::text)) {
        if (path->item(depth - 2).text() == kModel) {
          model[name] = path->item(depth - 1).text();
        }
      } else if (!path && name.starts_with("model.")) {
        model[name] = name.substr(kModel.size() + 1);
      }
    }
    if (!model.empty() && model.size() < all.size()) {
      log::info("{}: took the {} tensors and values under '{}', left {} others", path_, model.size(), kModel, all.size() - model.size());
    }
    return model.empty() ? all : model;
  }

  const fs::path& path_;
  std::map<ShardKey, DistributedShard> places_;
};

}  // namespace

std::map<std::string, DistributedTensor> read_distributed_index(const fs::path& path) {
  const std::string content = read_regular_file(path, pickle::Limits().bytes);
  const pickle::Unpickled read = pickle::unpickle({reinterpret_cast<const std::byte*>(content.data()), content.size()}, {path.string()});
  return IndexReader(path).read(read.value());
}

}  // namespace kf
