#include "config/tree/gguf.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/plain_file.h"
#include "core/text.h"

namespace kf::gguf {
namespace {

using config::Node;

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kOldest = 2, kNewest = 3;
constexpr std::uint64_t kUsualAlignment = 32, kMostAlignment = 1 << 20;
constexpr std::uint64_t kMostKeys = 4096, kLongestName = 65535, kLongestList = 1024;
constexpr std::uint32_t kMostDims = 4;
constexpr int kDeepest = 4;  // lists in lists
constexpr std::int64_t kLargestDim = std::int64_t{1} << 40;

enum class Kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

/// The least that a value takes in the file.
std::uint64_t least_bytes(Kind kind) {
  switch (kind) {
    case Kind::u8:
    case Kind::i8:
    case Kind::boolean: return 1;
    case Kind::u16:
    case Kind::i16: return 2;
    case Kind::u32:
    case Kind::i32:
    case Kind::f32: return 4;
    case Kind::u64:
    case Kind::i64:
    case Kind::f64:
    case Kind::text: return 8;
    case Kind::list: return 12;
  }
  return 1;
}

/// Names of the format's types, for messages; "" for numbers that have none.
std::string_view word_for(std::uint32_t type) {
  constexpr std::string_view kWords[] = {"F32",    "F16",   "Q4_0",  "Q4_1",   "",      "",      "Q5_0",    "Q5_1",   "Q8_0",    "Q8_1",
                                         "Q2_K",   "Q3_K",  "Q4_K",  "Q5_K",   "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
                                         "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",    "I16",   "I32",     "I64",    "F64",     "IQ1_M",
                                         "BF16",   "",      "",      "",       "TQ1_0", "TQ2_0", "",        "",       "",        "MXFP4"};
  return type < std::size(kWords) ? kWords[type] : std::string_view();
}

std::optional<Type> type_of(std::uint32_t number) {
  for (const Type type : {Type::f32, Type::f16, Type::q8_0, Type::bf16}) {
    if (static_cast<std::uint32_t>(type) == number) {
      return type;
    }
  }
  return std::nullopt;
}

/// The number that people write for a float: 1e-05 for 9.99999975e-06.
double as_written(float value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  double out = 0;
  return std::from_chars(text, end.ptr, out).ec == std::errc() ? out : static_cast<double>(value);
}

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const fs::path& path) : bytes_(bytes), path_(path) {}

  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return bytes_.size() - at_; }

  template <class Number>
  Number number(const char* what) {
    need(sizeof(Number), what);
    Number out;
    std::memcpy(&out, bytes_.data() + at_, sizeof out);
    at_ += sizeof out;
    return out;
  }

  std::string text(const char* what, std::uint64_t most) {
    const auto size = number<std::uint64_t>(what);
    KF_CHECK(size <= most && size <= left(), Code::checkpoint, "{}: {} at byte {} is {} bytes long, of {} that follow{}", path_, what,
             at_ - sizeof size, size, left(), size <= left() ? format("; at most {} are read", most) : "");
    std::string out(reinterpret_cast<const char*>(bytes_.data() + at_), size);
    at_ += size;
    return out;
  }

  Node value(const std::string& key, Kind kind, int depth = 0) {
    switch (kind) {
      case Kind::u8: return whole(number<std::uint8_t>(kValue));
      case Kind::i8: return whole(number<std::int8_t>(kValue));
      case Kind::u16: return whole(number<std::uint16_t>(kValue));
      case Kind::i16: return whole(number<std::int16_t>(kValue));
      case Kind::u32: return whole(number<std::uint32_t>(kValue));
      case Kind::i32: return whole(number<std::int32_t>(kValue));
      case Kind::i64: return whole(number<std::int64_t>(kValue));
      case Kind::u64: {
        const auto found = number<std::uint64_t>(kValue);
        return found > INT64_MAX ? Node(static_cast<double>(found)) : whole(static_cast<std::int64_t>(found));
      }
      case Kind::f32: return Node(as_written(number<float>(kValue)));
      case Kind::f64: return Node(number<double>(kValue));
      case Kind::boolean: {
        const auto found = number<std::uint8_t>(kValue);
        KF_CHECK(found <= 1, Code::checkpoint, "{}: the value of '{}' is {}, where 0 or 1 says true or false", path_, key, found);
        return Node(found == 1);
      }
      case Kind::text: return Node(text("a text", UINT64_MAX));
      case Kind::list: return list(key, depth + 1);
    }
    return {};
  }

  Kind kind(const std::string& key) {
    const auto found = number<std::uint32_t>("the kind of a value");
    KF_CHECK(found <= static_cast<std::uint32_t>(Kind::f64), Code::checkpoint, "{}: the value of '{}' is of kind {}, which does not exist",
             path_, key, found);
    return static_cast<Kind>(found);
  }

 private:
  static constexpr const char* kValue = "a value";

  static Node whole(std::int64_t number) { return Node(number); }

  void need(std::uint64_t size, const char* what) const {
    KF_CHECK(size <= left(), Code::checkpoint, "{}: ends at byte {} within {}: the file is cut short or damaged", path_, bytes_.size(),
             what);
  }

  Node list(const std::string& key, int depth) {
    KF_CHECK(depth <= kDeepest, Code::checkpoint, "{}: the value of '{}' has lists in lists more than {} deep", path_, key, kDeepest);
    const Kind of = kind(key);
    const auto count = number<std::uint64_t>("the length of a list");
    KF_CHECK(count <= left() / least_bytes(of), Code::checkpoint,
             "{}: the list '{}' has {} values, and {} bytes follow: the file is cut "
             "short or damaged",
             path_, key, count, left());
    config::Array out;
    for (std::uint64_t i = 0; i < count; ++i) {
      Node one = value(key, of, depth);
      if (count <= kLongestList) {
        out.push_back(std::move(one));
      }
    }
    return count <= kLongestList ? Node(std::move(out)) : Node();
  }

  std::span<const std::byte> bytes_;
  const fs::path& path_;
  std::uint64_t at_ = 0;
};

std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> bytes, const fs::path& path) : path_(path), size_(bytes.size()), cursor_(bytes, path) {}

  Header read() {
    cursor_.number<std::uint32_t>("its first word");
    read_version();
    const auto tensors = cursor_.number<std::uint64_t>("the number of tensors");
    const auto keys = cursor_.number<std::uint64_t>("the number of keys");
    KF_CHECK(keys <= kMostKeys, Code::checkpoint, "{}: its header has {} keys; at most {} are read", path_, keys, kMostKeys);
    for (std::uint64_t i = 0; i < keys; ++i) {
      read_key();
    }
    const Node* const parts = out_.keys.find("split.count");
    KF_CHECK(parts == nullptr || *parts == Node(std::int64_t{1}) || *parts == Node(std::int64_t{0}), Code::checkpoint,
             "{}: is one of several files of a model (split.count = {}); put them together first (llama-gguf-split --merge)", path_,
             parts != nullptr ? config::brief(*parts) : "");
    constexpr std::uint64_t kLeastTensor = 8 + 4 + 8 + 4 + 8;
    KF_CHECK(tensors <= cursor_.left() / kLeastTensor, Code::checkpoint,
             "{}: its header has {} tensors, and {} bytes follow: the file is cut short or damaged", path_, tensors, cursor_.left());
    for (std::uint64_t i = 0; i < tensors; ++i) {
      read_tensor();
    }
    place_all();
    return std::move(out_);
  }

 private:
  void read_version() {
    out_.version = cursor_.number<std::uint32_t>("its version");
    const std::uint32_t swapped = __builtin_bswap32(out_.version);
    KF_CHECK(swapped < kOldest || swapped > kNewest, Code::checkpoint, "{}: is big-endian; little-endian GGUF files are read", path_);
    KF_CHECK(out_.version >= kOldest && out_.version <= kNewest, Code::checkpoint,
             "{}: is GGUF of version {}; versions {} and {} are read{}", path_, out_.version, kOldest, kNewest,
             out_.version > kNewest ? ", and a newer kf-host may read it" : "");
  }

  void read_key() {
    const std::string key = cursor_.text("the name of a key", kLongestName);
    KF_CHECK(out_.keys.find(key) == nullptr, Code::checkpoint, "{}: the key '{}' stands in it twice", path_, key);
    Node value = cursor_.value(key, cursor_.kind(key));
    out_.keys[key] = std::move(value);
  }

  void read_tensor() {
    TensorPlace place;
    place.name = cursor_.text("the name of a tensor", kLongestName);
    KF_CHECK(names_.insert(place.name).second, Code::checkpoint, "{}: two tensors are named '{}'", path_, place.name);
    const auto dims = cursor_.number<std::uint32_t>("the dims of a tensor");
    KF_CHECK(dims >= 1 && dims <= kMostDims, Code::checkpoint, "{}: the tensor '{}' has {} dims; 1 to {} are read", path_, place.name, dims,
             kMostDims);
    std::int64_t count = 1;
    for (std::uint32_t i = 0; i < dims; ++i) {
      const auto dim = cursor_.number<std::uint64_t>("the shape of a tensor");
      const bool fits = dim >= 1 && dim <= static_cast<std::uint64_t>(kLargestDim) &&
                        !__builtin_mul_overflow(count, static_cast<std::int64_t>(dim), &count) && count <= INT64_MAX / 8;
      KF_CHECK(fits, Code::checkpoint, "{}: the tensor '{}' has a dim of {}, which no file holds", path_, place.name, dim);
      place.shape.push_back(static_cast<std::int64_t>(dim));
    }
    std::reverse(place.shape.begin(), place.shape.end());  // there, the fastest one comes first
    place.type = read_type(place.name);
    KF_CHECK(place.type != Type::q8_0 || place.shape.back() % kBlock == 0, Code::checkpoint,
             "{}: the tensor '{}' is Q8_0 and has rows of {} numbers, which are no blocks of {}", path_, place.name, place.shape.back(),
             kBlock);
    const auto numbers = static_cast<std::uint64_t>(count);
    place.bytes = place.type == Type::f32 ? numbers * 4 : place.type == Type::q8_0 ? numbers / kBlock * (2 + kBlock) : numbers * 2;
    place.begin = cursor_.number<std::uint64_t>("the place of a tensor");  // from where the tensors begin
    out_.tensors.push_back(std::move(place));
  }

  Type read_type(const std::string& tensor) {
    const auto number = cursor_.number<std::uint32_t>("the type of a tensor");
    const std::optional<Type> type = type_of(number);
    const std::string_view word = word_for(number);
    KF_CHECK(type.has_value(), Code::checkpoint, "{}: the tensor '{}' is of type {}, which is not read; F32, F16, BF16 and Q8_0 are", path_,
             tensor, word.empty() ? std::to_string(number) : std::string(word));
    return *type;
  }

  std::uint64_t alignment() const {
    const Node* const given = out_.keys.find("general.alignment");
    const auto* const number = given != nullptr ? std::get_if<std::int64_t>(&given->value) : nullptr;
    KF_CHECK(given == nullptr || (number != nullptr && *number >= 1 && std::has_single_bit(static_cast<std::uint64_t>(*number)) &&
                                  *number <= static_cast<std::int64_t>(kMostAlignment)),
             Code::checkpoint, "{}: general.alignment = {} is no power of two up to {}", path_,
             given != nullptr ? config::brief(*given) : "", kMostAlignment);
    return number != nullptr ? static_cast<std::uint64_t>(*number) : kUsualAlignment;
  }

  /// Places become those of the file. Each tensor must lie in it by itself, and nothing behind the last one.
  void place_all() {
    const std::uint64_t step = alignment(), begin = padded(cursor_.at(), step);
    const std::uint64_t room = size_ > begin ? size_ - begin : 0;
    std::vector<const TensorPlace*> order;
    for (TensorPlace& place : out_.tensors) {
      KF_CHECK(place.begin % step == 0, Code::checkpoint, "{}: the tensor '{}' is said to lie at {}, which is no multiple of {}", path_,
               place.name, place.begin, step);
      KF_CHECK(place.bytes <= room && place.begin <= room - place.bytes, Code::checkpoint,
               "{}: the tensor '{}' is said to have {} bytes at {}, and the file has {} for all of them: it is cut short or damaged", path_,
               place.name, place.bytes, place.begin, room);
      place.begin += begin;
      order.push_back(&place);
    }
    std::sort(order.begin(), order.end(), [](const TensorPlace* a, const TensorPlace* b) { return a->begin < b->begin; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      KF_CHECK(order[i - 1]->begin + order[i - 1]->bytes <= order[i]->begin, Code::checkpoint, "{}: the tensors '{}' and '{}' overlap",
               path_, order[i - 1]->name, order[i]->name);
    }
    const std::uint64_t end = order.empty() ? cursor_.at() : order.back()->begin + order.back()->bytes;
    KF_CHECK(size_ <= padded(end, step), Code::checkpoint, "{}: has {} bytes, and its header tells of {}: it is damaged", path_, size_,
             end);
  }

  const fs::path& path_;
  std::uint64_t size_;
  Cursor cursor_;
  std::set<std::string> names_;
  Header out_;
};

}  // namespace

std::string_view name_of(Type type) { return word_for(static_cast<std::uint32_t>(type)); }

const TensorPlace* Header::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorPlace& place) { return place.name == name; });
  return found != tensors.end() ? &*found : nullptr;
}

std::string Header::architecture() const {
  const config::Node* const node = keys.find("general.architecture");
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : "";
}

const std::vector<std::string>& known_architectures() {
  static const std::vector<std::string> known{"gemma", "llama", "qwen2", "qwen3"};
  return known;
}

bool is_known(const std::string& architecture) {
  const std::vector<std::string>& known = known_architectures();
  return std::find(known.begin(), known.end(), architecture) != known.end();
}

bool is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

bool is_gguf_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    return false;
  }
  std::ifstream in(path, std::ios::binary);
  std::string begin(kMagic.size(), '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return in && begin == kMagic;
}

Header read_header(std::span<const std::byte> bytes, const fs::path& path) {
  KF_CHECK(is_gguf(bytes), Code::checkpoint, "{}: is no GGUF file", path);
  return HeaderReader(bytes, path).read();
}

}  // namespace kf::gguf
