#include "checkpoint/gguf/file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "checkpoint/files/narrowed.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kAlignment = 32;  // of tensors: general.alignment is not written, this is its default
constexpr std::uint32_t kUint32 = 4, kInt32 = 5, kFloat32 = 6, kBool = 7, kString = 8, kArray = 9;

template <class Number>
void put(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

void put_text(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out.append(text);
}

std::uint64_t padded(std::uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

/// Blocks of a scale (fp16) and 32 integers: x = scale * q, the largest magnitude at 127.
std::string quantized(std::span<const float> numbers) {
  std::string out;
  out.reserve(numbers.size() / kBlock * (sizeof(std::uint16_t) + kBlock));
  for (std::size_t first = 0; first < numbers.size(); first += kBlock) {
    const std::span<const float> block = numbers.subspan(first, kBlock);
    float largest = 0;
    for (const float x : block) {
      largest = std::max(largest, std::abs(x));
    }
    const float scale = largest / 127, inverse = scale > 0 ? 1 / scale : 0;
    put(out, at::Half(scale).x);
    for (const float x : block) {
      put(out, static_cast<std::int8_t>(std::round(x * inverse)));
    }
  }
  return out;
}

}  // namespace

Type type_named(std::string_view word) {
  for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8_0}) {
    if (name_of(type) == word) {
      return type;
    }
  }
  fail(Code::config, "'{}' is no type of numbers that GGUF files are written in; possible: F32, F16, BF16, Q8_0", word);
}

std::uint64_t bytes_of(Type type, const Shape& shape) {
  const auto count = static_cast<std::uint64_t>(Range::whole(shape).numel());
  switch (type) {
    case Type::f32: return count * sizeof(float);
    case Type::f16:
    case Type::bf16: return count * sizeof(std::uint16_t);
    case Type::q8_0: return count / kBlock * (sizeof(std::uint16_t) + kBlock);
  }
  return 0;
}

std::string encoded(Type type, const at::Tensor& tensor, const std::string& name) {
  const at::ScalarType as = type == Type::f16 ? at::kHalf : type == Type::bf16 ? at::kBFloat16 : at::kFloat;
  const at::Tensor flat = narrowed(tensor.detach().to(at::kCPU), as, name).contiguous();
  if (type == Type::q8_0) {
    KF_CHECK(flat.isfinite().all().item<bool>(), Code::checkpoint,
             "'{}' holds numbers that are not finite, which Q8_0 has no form for: use BF16 (or F32)", name);
    if (constexpr double most = 127 * 65504.0; flat.numel() > 0 && flat.abs().max().item<double>() > most) {  // of the scale, in fp16
      fail_too_large(name, flat, "Q8_0", most);
    }
    return quantized({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  }
  return {static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()};
}

void File::begin(const std::string& key, std::uint32_t type) {
  ++keys_;
  put_text(values_, key);
  put(values_, type);
}

void File::add(const std::string& key, std::uint32_t value) { begin(key, kUint32), put(values_, value); }
void File::add(const std::string& key, float value) { begin(key, kFloat32), put(values_, value); }
void File::add(const std::string& key, bool value) { begin(key, kBool), put<std::uint8_t>(values_, value ? 1 : 0); }
void File::add(const std::string& key, const std::string& value) { begin(key, kString), put_text(values_, value); }

void File::add(const std::string& key, const std::vector<std::string>& values) {
  begin(key, kArray);
  put(values_, kString);
  put<std::uint64_t>(values_, values.size());
  for (const std::string& value : values) {
    put_text(values_, value);
  }
}

void File::add(const std::string& key, const std::vector<std::int32_t>& values) {
  begin(key, kArray);
  put(values_, kInt32);
  put<std::uint64_t>(values_, values.size());
  for (const std::int32_t value : values) {
    put(values_, value);
  }
}

void File::add(const std::string& key, const std::vector<float>& values) {
  begin(key, kArray);
  put(values_, kFloat32);
  put<std::uint64_t>(values_, values.size());
  for (const float value : values) {
    put(values_, value);
  }
}

void File::add_tensor(const std::string& name, const Shape& shape, Type type, std::function<at::Tensor()> make) {
  tensors_.push_back({name, shape, type, std::move(make)});
}

fs::path target_of(const fs::path& asked) {
  std::error_code ignored, error;
  const fs::path linked = fs::is_symlink(fs::symlink_status(asked, ignored)) ? fs::canonical(asked, error) : asked;
  KF_CHECK(!error, Code::config, "{} is a link that leads nowhere; remove it, or name another file", asked);
  fs::path file = fs::absolute(linked);
  KF_CHECK(fs::is_directory(file.parent_path(), ignored), Code::config, "{} is no folder to write into", file.parent_path());
  if (path_exists(file)) {
    const bool plain = unlike_a_file(file).empty();
    KF_CHECK(plain && (fs::file_size(file) == 0 || is_gguf_file(file)), Code::config,
             "{} is there and is no GGUF file; name another one, or remove it", file);
  }
  return file;
}

FileDigest File::write(const fs::path& path) const {
  std::string header(kMagic);
  put(header, kVersion);
  put<std::uint64_t>(header, tensors_.size());
  put(header, keys_);
  header += values_;
  std::uint64_t offset = 0;  // from where the tensors begin
  for (const Stored& tensor : tensors_) {
    put_text(header, tensor.name);
    put(header, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) {  // the fastest one first
      put(header, static_cast<std::uint64_t>(*dim));
    }
    put(header, static_cast<std::uint32_t>(tensor.type));
    put(header, offset);
    offset += padded(bytes_of(tensor.type, tensor.shape));
  }
  header.resize(padded(header.size()));
  remove_temporaries(path.parent_path(), {path.filename().string()});
  DurableFile file(path);
  file.write(header);
  for (const Stored& tensor : tensors_) {
    std::string bytes = encoded(tensor.type, tensor.make(), tensor.name);
    KF_CHECK(bytes.size() == bytes_of(tensor.type, tensor.shape), Code::checkpoint, "{}: the tensor '{}' has another shape than was said",
             path, tensor.name);
    bytes.resize(padded(bytes.size()));
    file.write(bytes);
  }
  return file.commit();
}

}  // namespace kf::gguf
