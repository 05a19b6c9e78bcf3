#include "checkpoint/files/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>
#include <utility>

#include "core/error.h"

namespace kf {
namespace {

using json = nlohmann::json;

/// Follows the parser through {"name": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"k": "v"}}. Reading events
/// instead of a tree finds repeated keys, which a tree would hide, and needs no memory beyond the result.
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(const fs::path& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { return wrong("null"); }
  bool boolean(bool value) override { return wrong(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return wrong(std::to_string(value)); }  // only negative ones come here
  bool number_float(number_float_t, const string_t& text) override { return wrong(text); }
  bool binary(binary_t&) override { return wrong("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list_) {
      return wrong(std::to_string(value));
    }
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    check(value <= kMost, "'" + key_ + "' has the number " + std::to_string(value) + ", which no file can hold");
    if (key_ == "shape") {
      // Beyond what any tensor has; keeps a hostile header from costing more than its own size.
      check(row_.shape.size() < 64, "'shape' has more than 64 dims");
      row_.shape.push_back(static_cast<std::int64_t>(value));
    } else {
      check(offsets_.size() < 2, "'data_offsets' needs exactly two numbers");
      offsets_.push_back(value);
    }
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      header_.metadata.emplace(key_, value);
      return true;
    }
    if (depth_ == 2 && key_ == "dtype") {
      row_.dtype = value;
      return true;
    }
    return wrong("a string");
  }

  bool start_object(std::size_t) override {
    if (depth_ >= 2) {
      return wrong("an object");
    }
    ++depth_;
    if (depth_ == 2) {
      seen_.clear();
    }
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      check_file(names_.insert(name).second, "the header has two entries named '" + name + "'");
      in_metadata_ = name == kSafetensorsMetadata;
      row_ = SafetensorsRow{};
      row_.name = name;
      offsets_.clear();
      key_.clear();
      return true;
    }
    check(seen_.insert(name).second, "key '" + name + "' is given twice");
    check(in_metadata_ || name == "dtype" || name == "shape" || name == "data_offsets",
          "unknown key '" + name + "'; the format has dtype, shape, data_offsets");
    key_ = name;
    return true;
  }

  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) {
      for (const char* needed : {"dtype", "shape", "data_offsets"}) {
        check(seen_.count(needed) > 0, std::string("key '") + needed + "' is missing");
      }
      header_.rows.push_back(std::move(row_));
    }
    --depth_;
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_list_ || key_ == "dtype") {
      return wrong("a list");
    }
    in_list_ = true;
    return true;
  }

  bool end_array() override {
    in_list_ = false;
    if (key_ == "data_offsets") {
      check(offsets_.size() == 2, "'data_offsets' needs exactly two numbers");
      row_.begin = offsets_[0];
      row_.end = offsets_[1];
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(Code::checkpoint, "{}: the header is not valid JSON (at byte {} of it)", path_, position);
  }

 private:
  void check_file(bool good, const std::string& what) const { KF_CHECK(good, Code::checkpoint, "{}: {}", path_, what); }
  void check(bool good, const std::string& what) const {
    KF_CHECK(good, Code::checkpoint, "{}: {} '{}': {}", path_, in_metadata_ ? "entry" : "tensor", row_.name, what);
  }

  /// Something stands where the format has another type.
  [[noreturn]] bool wrong(const std::string& found) const {
    if (depth_ == 0) {
      fail(Code::checkpoint, "{}: the header is {}, not an object", path_, found);
    }
    const char* kind = in_metadata_ ? "entry" : "tensor";
    if (depth_ == 1) {
      fail(Code::checkpoint, "{}: {} '{}' is {}, not an object", path_, kind, row_.name, found);
    }
    const bool text = in_metadata_ || key_ == "dtype";
    fail(Code::checkpoint, "{}: {} '{}': '{}' has {} where {} belongs", path_, kind, row_.name, key_, found,
         text ? "a string" : "a list of non-negative integers");
  }

  const fs::path& path_;
  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
  std::set<std::string> seen_;  // keys of the object being read
  SafetensorsRow row_;
  std::vector<std::uint64_t> offsets_;
  std::string key_;
  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_list_ = false;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, const fs::path& path) {
  HeaderReader reader(path);
  json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

void check_layout(const SafetensorsHeader& header, std::uint64_t data_bytes, const fs::path& path) {
  std::vector<const SafetensorsRow*> rows;
  rows.reserve(header.rows.size());
  for (const SafetensorsRow& row : header.rows) {
    KF_CHECK(row.begin <= row.end, Code::checkpoint, "{}: tensor '{}' ends at byte {}, before it begins at {}", path, row.name, row.end,
             row.begin);
    KF_CHECK(row.end <= data_bytes, Code::checkpoint, "{}: tensor '{}' ends at byte {} of {}: the file is cut short or its header is wrong",
             path, row.name, row.end, data_bytes);
    rows.push_back(&row);
  }
  std::sort(rows.begin(), rows.end(),
            [](const SafetensorsRow* a, const SafetensorsRow* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  std::uint64_t filled = 0;
  for (const SafetensorsRow* row : rows) {
    KF_CHECK(row->begin >= filled, Code::checkpoint, "{}: tensor '{}' begins at byte {}, inside its neighbour, which ends at {}", path,
             row->name, row->begin, filled);
    KF_CHECK(row->begin == filled, Code::checkpoint, "{}: bytes {} to {} before tensor '{}' belong to no tensor", path, filled, row->begin,
             row->name);
    filled = row->end;
  }
  KF_CHECK(filled == data_bytes, Code::checkpoint, "{}: the last {} bytes belong to no tensor", path, data_bytes - filled);
}

}  // namespace kf
