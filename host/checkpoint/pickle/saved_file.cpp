#include "checkpoint/pickle/saved_file.h"

#include <algorithm>

#include "checkpoint/pickle/cursor.h"
#include "core/error.h"

namespace kf::pickle {
namespace {

// The pickles in front of the older format: a number, a version, and sizes of C's types on the writer's machine.
constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr std::int64_t kOldVersion = 1001;

std::shared_ptr<const MappedFile> open_mapped(const fs::path& path) {
  try {
    return std::make_shared<const MappedFile>(path);
  } catch (const Error& error) {
    throw Error(Code::checkpoint, error.what());
  }
}

/// The folder that all entries of an archive lie in: the one with the pickle.
std::string folder_in(const std::map<std::string, ZipEntry>& entries, const Place& place) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::string out;
  for (const auto& [name, entry] : entries) {
    if (name.ends_with(kPickle) && name.find('/') == name.size() - kPickle.size()) {
      KF_CHECK(out.empty(), Code::checkpoint, "{}: holds two pickles, {} and {}", place.file, out + "data.pkl", name);
      out = name.substr(0, name.size() - kPickle.size() + 1);
    }
    KF_CHECK(!name.ends_with("/constants.pkl"), Code::checkpoint,
             "{}: is a program of TorchScript (torch.jit.save), not tensors alone; save its state_dict() with torch.save", place.file);
  }
  KF_CHECK(!out.empty(), Code::checkpoint, "{}: is a zip archive without FOLDER/data.pkl, so torch.save did not write it", place.file);
  return out;
}

/// How many bytes a number of each storage has, by the references of a pickle.
std::map<std::string, std::uint64_t> number_sizes(const Unpickled& saved, const Place& place) {
  std::map<std::string, std::uint64_t> out;
  for (Id id = 0; id < saved.nodes.size(); ++id) {
    if (saved.nodes[id].kind != Kind::reference) {
      continue;
    }
    const Value storage = Value(saved.nodes, id).target();
    KF_CHECK(storage.is(Kind::tuple) && storage.size() >= 3 && storage.item(1).is(Kind::global) && storage.item(2).is(Kind::text),
             Code::checkpoint, "{}: a storage is not described as torch.save does it", place.file);
    const NumberType* const type = number_type(storage.item(1).text());
    out[std::string(storage.item(2).text())] = type ? type->bytes : 1;
  }
  return out;
}

}  // namespace

bool is_saved_file(std::span<const std::byte> bytes) {
  return is_zip(bytes) || (bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] >= std::byte{2} && bytes[1] <= std::byte{5});
}

SavedFile::SavedFile(const fs::path& path) : file_(open_mapped(path)), bytes_(file_->bytes()), place_{path.string()} {
  is_zip(bytes_) ? open_zip() : open_old();
}

SavedFile::SavedFile(std::shared_ptr<const MappedFile> file, std::uint64_t begin, std::uint64_t size) : file_(std::move(file)) {
  place_ = {file_->path().string(), begin};
  KF_CHECK(begin <= file_->bytes().size() && size <= file_->bytes().size() - begin, Code::checkpoint,
           "{}: {} bytes from {} on are to be read, and it has {}: the file is cut short", place_.file, size, begin, file_->bytes().size());
  bytes_ = file_->bytes().subspan(begin, size);
  KF_CHECK(is_zip(bytes_), Code::checkpoint, "{}: no zip archive begins at byte {}", place_.file, begin);
  open_zip();
}

void SavedFile::open_zip() {
  const std::map<std::string, ZipEntry> entries = zip_entries(bytes_, place_);
  const std::string folder = folder_in(entries, place_);
  const auto content = [&](const ZipEntry& entry) {
    check_stored(entry, folder, place_);
    return bytes_.subspan(entry.begin, entry.size);
  };
  if (const auto order = entries.find(folder + "byteorder"); order != entries.end()) {
    const std::span<const std::byte> text = content(order->second);
    KF_CHECK(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()) == "little", Code::checkpoint,
             "{}: was written by a machine with the other order of bytes (big-endian); load and save it on one like this", place_.file);
  }
  const ZipEntry& pickle = entries.at(folder + "data.pkl");
  check_crc(content(pickle), pickle, "data.pkl", place_);
  saved_ = unpickle(content(pickle), {place_.file, place_.offset + pickle.begin});
  for (const auto& [name, entry] : entries) {
    if (const std::string data = folder + "data/"; name.starts_with(data)) {
      storages_[name.substr(data.size())] = entry;
    }
  }
}

void SavedFile::open_old() {
  std::uint64_t at = 0;
  const auto next = [&] {
    Unpickled out = unpickle(bytes_.subspan(at), {place_.file, at});
    at += out.length;
    return out;
  };
  const Unpickled magic = next();
  KF_CHECK(magic.value().is(Kind::large_integer) && magic.value().text() == kMagic, Code::checkpoint,
           "{}: is a pickle, but none of torch.save; save tensors with torch.save(model.state_dict(), FILE), or as safetensors",
           place_.file);
  const Unpickled version = next();
  KF_CHECK(version.value().is(Kind::integer) && version.value().integer() == kOldVersion, Code::checkpoint,
           "{}: is of an unknown version of torch.save's older format; load and save it with PyTorch 1.6 or later", place_.file);
  const Unpickled machine = next();
  const std::optional<Value> little = machine.value().find("little_endian");
  KF_CHECK(little && little->is(Kind::boolean) && little->boolean(), Code::checkpoint,
           "{}: was written by a machine with the other order of bytes (big-endian); load and save it on one like this", place_.file);
  saved_ = next();
  const Unpickled listed = next();
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < listed.value().size(); ++i) {
    KF_CHECK(listed.value().is(Kind::list) && listed.value().item(i).is(Kind::text), Code::checkpoint, "{}: its list of storages is none",
             place_.file);
    keys.emplace_back(listed.value().item(i).text());
  }
  find_storages(keys, at);
}

/// Of the older format: one behind the other, each with its count of numbers in front.
void SavedFile::find_storages(const std::vector<std::string>& keys, std::uint64_t begin) {
  const std::map<std::string, std::uint64_t> sizes = number_sizes(saved_, place_);
  const Place behind{place_.file, begin};
  Cursor in(bytes_.subspan(begin), behind);
  for (const std::string& key : keys) {
    const auto size = sizes.find(key);
    KF_CHECK(size != sizes.end(), Code::checkpoint, "{}: no tensor uses the storage '{}'", place_.file, key);
    const auto count = in.number<std::uint64_t>();
    KF_CHECK(count <= in.left() / size->second, Code::checkpoint,
             "{}: the storage '{}' has {} numbers, and {} bytes follow: it is cut short", place_.file, key, count, in.left());
    storages_[key] = {begin + in.position(), count * size->second, 0};
    in.take(count * size->second);
  }
}

const ZipEntry& SavedFile::entry(const std::string& key) const {
  const auto found = storages_.find(key);
  KF_CHECK(found != storages_.end(), Code::checkpoint, "{}: the storage '{}' of a tensor is missing", place_.file, key);
  check_stored(found->second, found->first, place_);
  return found->second;
}

std::span<const std::byte> SavedFile::storage(const SavedTensor& tensor, bool whole) const {
  const ZipEntry& found = entry(tensor.storage);
  const std::span<const std::byte> bytes = bytes_.subspan(found.begin, found.size);
  std::uint64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    last += static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.shape[i] - 1, 0)) * static_cast<std::uint64_t>(tensor.strides[i]);
  }
  const bool empty = std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
  KF_CHECK(empty || last < found.size / tensor.type->bytes, Code::checkpoint,
           "{}: the storage '{}' has {} bytes, which are too few for its tensor: the file is damaged", place_.file, tensor.storage,
           found.size);
  if (whole && !checked_[tensor.storage]) {
    check_crc(bytes, found, tensor.storage, place_);
    checked_[tensor.storage] = true;
  }
  return bytes;
}

}  // namespace kf::pickle
