#include "checkpoint/files/safetensors.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/safetensors_header.h"
#include "core/error.h"

namespace kf {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

struct Dtype {
  const char* name;
  at::ScalarType type;
};
constexpr Dtype kDtypes[] = {
    {"BOOL", at::kBool},
    {"U8", at::kByte},
    {"I8", at::kChar},
    {"I16", at::kShort},
    {"U16", at::kUInt16},
    {"I32", at::kInt},
    {"U32", at::kUInt32},
    {"I64", at::kLong},
    {"U64", at::kUInt64},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"F32", at::kFloat},
    {"F64", at::kDouble},
    {"C64", at::kComplexFloat},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
};

std::string dtype_names() {
  std::vector<std::string> names;
  for (const Dtype& dtype : kDtypes) {
    names.emplace_back(dtype.name);
  }
  return join(names, ", ");
}

at::ScalarType type_of(const SafetensorsRow& row, const fs::path& path) {
  for (const Dtype& dtype : kDtypes) {
    if (row.dtype == dtype.name) {
      return dtype.type;
    }
  }
  fail(Code::checkpoint, "{}: tensor '{}' has the unknown dtype '{}'; known: {}", path, row.name, row.dtype, dtype_names());
}

std::string name_of(const std::string& tensor, at::ScalarType type, const fs::path& path) {
  for (const Dtype& dtype : kDtypes) {
    if (type == dtype.type) {
      return dtype.name;
    }
  }
  fail(Code::checkpoint, "{}: tensor '{}' has a type that safetensors files cannot hold ({}); possible: {}", path, tensor,
       c10::toString(type), dtype_names());
}

/// Bytes of a tensor. LibTorch multiplies sizes without looking (even beside a 0), so whatever would not fit in int64 stops here.
std::uint64_t bytes_of(const SafetensorsRow& row, at::ScalarType type, const fs::path& path) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  auto strides = static_cast<std::int64_t>(c10::elementSize(type));
  bool empty = false;
  for (const std::int64_t dim : row.shape) {
    empty = empty || dim == 0;
    const std::int64_t factor = std::max<std::int64_t>(dim, 1);
    KF_CHECK(strides <= kMost / factor, Code::checkpoint, "{}: tensor '{}' would have more than 2^63 bytes", path, row.name);
    strides *= factor;
  }
  return empty ? 0 : static_cast<std::uint64_t>(strides);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t dim : shape) {
    parts.push_back(std::to_string(dim));
  }
  return "[" + join(parts, ", ") + "]";
}

/// The header as text.
std::string header_text(const PositionedFile& file) {
  const fs::path& path = file.path();
  KF_CHECK(file.size() >= 8, Code::checkpoint, "{}: {} bytes are too few for a safetensors file", path, file.size());
  std::uint64_t length = 0;
  file.read(0, &length, sizeof length);
  KF_CHECK(length <= kMaxSafetensorsHeader, Code::checkpoint,
           "{}: claims a header of {} bytes, the format allows {}; is this a safetensors file?", path, length, kMaxSafetensorsHeader);
  KF_CHECK(length <= file.size() - 8, Code::checkpoint, "{}: claims a header of {} bytes, but only {} follow: the file is cut short", path,
           length, file.size() - 8);
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(8, text.data(), text.size());
  KF_CHECK(!text.empty() && text.front() == '{', Code::checkpoint, "{}: the header does not begin with '{'", path);
  return text;
}

/// Padded so that the data begins at a multiple of 8.
std::string make_header(const std::vector<LazyTensor>& tensors, const std::map<std::string, std::string>& metadata, const fs::path& path) {
  std::vector<std::string> entries;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) {
      KF_CHECK(is_utf8(key) && is_utf8(value), Code::checkpoint, "{}: metadata {} is not UTF-8", path, kf::quoted(key));
      pairs.push_back(kf::quoted(key) + ":" + kf::quoted(value));
    }
    entries.push_back(kf::quoted(kSafetensorsMetadata) + ":{" + join(pairs, ",") + "}");
  }
  std::set<std::string> seen;
  std::uint64_t offset = 0;
  for (const auto& [name, type, shape, make] : tensors) {
    KF_CHECK(is_utf8(name) && name != kSafetensorsMetadata, Code::checkpoint, "{}: {} cannot be the name of a tensor", path,
             kf::quoted(name));
    KF_CHECK(seen.insert(name).second, Code::checkpoint, "{}: two tensors are named '{}'", path, name);
    const std::uint64_t end = offset + bytes_of({name, {}, shape}, type, path);
    entries.push_back(format("{}:{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}", kf::quoted(name), name_of(name, type, path),
                             shape_text(shape), offset, end));
    offset = end;
  }
  std::string header = "{" + join(entries, ",") + "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  KF_CHECK(header.size() <= kMaxSafetensorsHeader, Code::checkpoint, "{}: {} tensors need a header of {} bytes, the format allows {}", path,
           tensors.size(), header.size(), kMaxSafetensorsHeader);
  return header;
}

constexpr std::size_t kPiece = std::size_t{8} << 20;    // bytes that are converted at a time
constexpr std::size_t kWindow = std::size_t{1} << 20;   // read at a time where short runs lie close together
constexpr std::size_t kClose = std::size_t{128} << 10;  // from the beginning of one run to the next

/// A box of a contiguous tensor as runs of bytes that are neighbours: dims behind the last cut one are a run, a cut of rows is one.
class Runs {
 public:
  Runs(const Shape& shape, const Range& range, std::size_t element)
      : shape_(shape), range_(range), element_(element), size_(element), dims_(shape.size()) {
    while (dims_ > 0) {
      --dims_;
      size_ *= static_cast<std::size_t>(range.size[dims_]);
      if (range.size[dims_] != shape[dims_]) {
        break;
      }
    }
    count_ =
        std::accumulate(range.size.begin(), range.size.begin() + static_cast<std::ptrdiff_t>(dims_), std::int64_t{1}, std::multiplies<>());
  }

  std::int64_t count() const { return count_; }
  std::size_t size() const { return size_; }
  /// Of a run, in bytes.
  std::size_t offset(std::int64_t number) const {
    std::int64_t offset = 0, stride = 1;
    for (std::size_t dim = shape_.size(); dim-- > 0;) {
      const std::int64_t step = dim < dims_ ? number % range_.size[dim] : 0;
      number = dim < dims_ ? number / range_.size[dim] : number;
      offset += (range_.begin[dim] + step) * stride;
      stride *= shape_[dim];
    }
    return static_cast<std::size_t>(offset) * element_;
  }

 private:
  const Shape& shape_;
  const Range& range_;
  std::size_t element_, size_, dims_;  // dims in front of a run
  std::int64_t count_ = 0;
};

}  // namespace

SafetensorsFile::SafetensorsFile(const fs::path& path) : file_(path) {
  const std::string text = header_text(file_);
  const std::size_t data_begin = 8 + text.size();
  SafetensorsHeader header = parse_safetensors_header(text, path);
  check_layout(header, file_.size() - data_begin, path);
  for (SafetensorsRow& row : header.rows) {
    const at::ScalarType type = type_of(row, path);
    const std::uint64_t bytes = bytes_of(row, type, path);
    KF_CHECK(row.end - row.begin == bytes, Code::checkpoint, "{}: tensor '{}' of {} {} needs {} bytes, its data_offsets give {}", path,
             row.name, shape_text(row.shape), row.dtype, bytes, row.end - row.begin);
    names_.push_back(row.name);
    entries_.emplace(row.name, Entry{type, std::move(row.shape), data_begin + row.begin, data_begin + row.end});
  }
  metadata_ = std::move(header.metadata);
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    const std::string near = nearest(name, names_);
    fail(Code::checkpoint, "{}: no tensor '{}'{}", file_.path(), name, near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  return found->second;
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const { return slice(name, Range::whole(entry(name).shape)); }

at::Tensor SafetensorsFile::slice(const std::string& name, const Range& range) const {
  const Entry& found = entry(name);
  at::Tensor out = at::empty(range.size, at::TensorOptions().dtype(found.type));
  read_box(found, name, range, out);
  return out;
}

void SafetensorsFile::read(const std::string& name, const Range& range, const at::Tensor& into) const {
  const Entry& found = entry(name);
  if (into.scalar_type() == found.type && into.device().is_cpu() && into.is_contiguous()) {
    read_box(found, name, range, into);
    return;
  }
  if (range.size.empty()) {
    into.copy_(slice(name, range));
    return;
  }
  const std::int64_t rows = range.size[0], row = std::max<std::int64_t>(range.numel() / std::max<std::int64_t>(rows, 1), 1);
  const std::int64_t step = std::max<std::int64_t>(static_cast<std::int64_t>(kPiece / c10::elementSize(found.type)) / row, 1);
  for (std::int64_t begin = 0; begin < rows; begin += step) {
    Range part = range;
    part.begin[0] += begin;
    part.size[0] = std::min(step, rows - begin);
    into.narrow(0, begin, part.size[0]).copy_(slice(name, part));
  }
}

void SafetensorsFile::read_box(const Entry& found, const std::string& name, const Range& range, const at::Tensor& into) const {
  if (into.numel() == 0) {
    return;
  }
  auto* const to = static_cast<std::byte*>(into.mutable_data_ptr());
  const Runs runs(found.shape, range, c10::elementSize(found.type));
  const bool close = runs.count() > 1 && runs.offset(1) - runs.offset(0) <= kClose;
  std::vector<std::byte> window;
  std::size_t begin = 0;  // of the window, in the tensor
  for (std::int64_t number = 0; number < runs.count(); ++number) {
    const std::size_t offset = runs.offset(number);
    std::byte* const at = to + static_cast<std::size_t>(number) * runs.size();
    if (!close) {
      file_.read(found.begin + offset, at, runs.size());
      continue;
    }
    if (window.empty() || offset < begin || offset + runs.size() > begin + window.size()) {
      begin = offset;
      window.resize(std::min(std::max(kWindow, runs.size()), found.end - found.begin - offset));
      file_.read(found.begin + begin, window.data(), window.size());
    }
    std::memcpy(at, window.data() + (offset - begin), runs.size());
  }
  if (found.type == at::kBool) {  // any other byte would be undefined behaviour as a C++ bool
    KF_CHECK(std::all_of(to, to + into.nbytes(), [](std::byte b) { return b <= std::byte{1}; }), Code::checkpoint,
             "{}: tensor '{}' is BOOL but holds bytes other than 0 and 1", file_.path(), name);
  }
}

std::vector<std::int64_t> SafetensorsFile::shape(const std::string& name) const { return entry(name).shape; }

std::uint64_t LazyTensor::bytes() const {
  std::uint64_t out = c10::elementSize(type);
  for (const std::int64_t dim : shape) {
    out *= static_cast<std::uint64_t>(dim);
  }
  return out;
}

FileDigest write_safetensors(const fs::path& path, const std::vector<LazyTensor>& tensors,
                             const std::map<std::string, std::string>& metadata, std::vector<StoredBytes>* where) {
  const std::string header = make_header(tensors, metadata, path);
  const std::uint64_t length = header.size();
  DurableFile file(path);
  file.write(&length, sizeof length);
  file.write(header);
  std::uint64_t offset = sizeof length + length;
  for (const LazyTensor& announced : tensors) {
    const at::Tensor tensor = announced.make().detach();
    KF_CHECK(tensor.scalar_type() == announced.type && tensor.sizes() == announced.shape, Code::checkpoint,
             "{}: tensor '{}' is not as it was announced", path, announced.name);
    const at::Tensor flat = tensor.to(at::kCPU).contiguous().resolve_conj();
    const std::uint32_t crc = file.write(flat.const_data_ptr(), flat.nbytes());
    if (where != nullptr) {
      where->push_back({name_of(announced.name, announced.type, path), offset, crc});
    }
    offset += flat.nbytes();
  }
  return file.commit();
}

FileDigest write_safetensors(const fs::path& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                             const std::map<std::string, std::string>& metadata, std::vector<StoredBytes>* where) {
  std::vector<LazyTensor> all;
  for (const auto& [name, tensor] : tensors) {
    KF_CHECK(tensor.defined(), Code::checkpoint, "{}: tensor '{}' has no storage", path, name);
    all.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), [&tensor = tensor] { return tensor; }});
  }
  return write_safetensors(path, all, metadata, where);
}

}  // namespace kf
