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

MappedFile open_mapped(const fs::path& path) {
  try {
    return MappedFile(path);
  } catch (const Error& e) {
    throw Error(Code::checkpoint, e.what());
  }
}

/// The header as text, and where the data begins.
std::string_view header_text(std::span<const std::byte> bytes, const fs::path& path) {
  KF_CHECK(bytes.size() >= 8, Code::checkpoint, "{}: {} bytes are too few for a safetensors file", path, bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  KF_CHECK(length <= kMaxSafetensorsHeader, Code::checkpoint,
           "{}: claims a header of {} bytes, the format allows {}; is this a safetensors file?", path, length, kMaxSafetensorsHeader);
  KF_CHECK(length <= bytes.size() - 8, Code::checkpoint, "{}: claims a header of {} bytes, but only {} follow: the file is cut short", path,
           length, bytes.size() - 8);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<std::size_t>(length));
  KF_CHECK(!text.empty() && text.front() == '{', Code::checkpoint, "{}: the header does not begin with '{'", path);
  return text;
}

/// Padded so that the data begins at a multiple of 8.
std::string make_header(const std::vector<std::pair<std::string, at::Tensor>>& tensors, const std::map<std::string, std::string>& metadata,
                        const fs::path& path) {
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
  for (const auto& [name, tensor] : tensors) {
    KF_CHECK(is_utf8(name) && name != kSafetensorsMetadata, Code::checkpoint, "{}: {} cannot be the name of a tensor", path,
             kf::quoted(name));
    KF_CHECK(seen.insert(name).second, Code::checkpoint, "{}: two tensors are named '{}'", path, name);
    KF_CHECK(tensor.defined(), Code::checkpoint, "{}: tensor '{}' has no storage", path, name);
    const std::uint64_t end = offset + tensor.nbytes();
    entries.push_back(format("{}:{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}", kf::quoted(name),
                             name_of(name, tensor.scalar_type(), path), shape_text(tensor.sizes().vec()), offset, end));
    offset = end;
  }
  std::string header = "{" + join(entries, ",") + "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  KF_CHECK(header.size() <= kMaxSafetensorsHeader, Code::checkpoint, "{}: {} tensors need a header of {} bytes, the format allows {}", path,
           tensors.size(), header.size(), kMaxSafetensorsHeader);
  return header;
}

/// Copies a box out of a contiguous tensor of this shape. Dims behind the last cut one are runs of neighbours: a cut of rows is one run.
void copy_box(const std::byte* from, std::byte* to, const Shape& shape, const Range& range, std::size_t element) {
  std::size_t run = element;
  std::size_t dims = shape.size();  // in front of the run
  while (dims > 0) {
    --dims;
    run *= static_cast<std::size_t>(range.size[dims]);
    if (range.size[dims] != shape[dims]) {
      break;
    }
  }
  const std::int64_t runs =
      std::accumulate(range.size.begin(), range.size.begin() + static_cast<std::ptrdiff_t>(dims), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t number = 0; number < runs; ++number) {
    std::int64_t offset = 0, stride = 1, rest = number;  // offset of the run's first element
    for (std::size_t dim = shape.size(); dim-- > 0;) {
      const std::int64_t step = dim < dims ? rest % range.size[dim] : 0;
      rest = dim < dims ? rest / range.size[dim] : rest;
      offset += (range.begin[dim] + step) * stride;
      stride *= shape[dim];
    }
    std::memcpy(to + static_cast<std::size_t>(number) * run, from + static_cast<std::size_t>(offset) * element, run);
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const fs::path& path) : file_(open_mapped(path)) {
  const std::string_view text = header_text(file_.bytes(), path);
  const std::size_t data_begin = 8 + text.size();
  SafetensorsHeader header = parse_safetensors_header(text, path);
  check_layout(header, file_.bytes().size() - data_begin, path);
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
  if (out.numel() == 0) {
    return out;
  }
  auto* const to = static_cast<std::byte*>(out.mutable_data_ptr());
  copy_box(file_.bytes().data() + found.begin, to, found.shape, range, c10::elementSize(found.type));
  if (found.type == at::kBool) {  // any other byte would be undefined behaviour as a C++ bool
    KF_CHECK(std::all_of(to, to + out.nbytes(), [](std::byte b) { return b <= std::byte{1}; }), Code::checkpoint,
             "{}: tensor '{}' is BOOL but holds bytes other than 0 and 1", file_.path(), name);
  }
  return out;
}

std::vector<std::int64_t> SafetensorsFile::shape(const std::string& name) const { return entry(name).shape; }

FileDigest write_safetensors(const fs::path& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  const std::string header = make_header(tensors, metadata, path);
  const std::uint64_t length = header.size();
  DurableFile file(path);
  file.write(&length, sizeof length);
  file.write(header);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous().resolve_conj();  // one at a time: a copy of one tensor is held
    file.write(flat.const_data_ptr(), flat.nbytes());
  }
  return file.commit();
}

}  // namespace kf
