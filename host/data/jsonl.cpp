#include "data/jsonl.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

using nlohmann::json;

/// Takes one string out of a line and builds nothing else.
class FieldReader final : public json::json_sax_t {
 public:
  explicit FieldReader(const std::string& field) : field_(field) {}

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a boolean"); }
  bool number_integer(json::number_integer_t) override { return other("a number"); }
  bool number_unsigned(json::number_unsigned_t) override { return other("a number"); }
  bool number_float(json::number_float_t, const std::string&) override { return other("a number"); }
  bool binary(json::binary_t&) override { return other("binary data"); }
  bool string(std::string& value) override {
    if (depth_ == 0) {
      return other("a string");
    }
    if (wanted()) {
      text_ = std::move(value);
      wrong_.clear();
    }
    return true;
  }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      here_ = name == field_;
      keys_.push_back(std::move(name));
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& /*error*/) override {
    problem_ = format("not valid JSON at byte {} of the line", position);
    return false;
  }

  const std::optional<std::string>& text() const { return text_; }

  /// What is wrong with the line; "" when text() holds.
  std::string problem() const {
    if (!problem_.empty()) {
      return problem_;
    }
    if (!object_) {
      return format("expected a JSON object with the text field {}, found {}", kf::quoted(field_), wrong_);
    }
    if (!wrong_.empty()) {
      return format("the text field {} is {}, not a string", kf::quoted(field_), wrong_);
    }
    return text_ ? "" : format("no text field {} (data.hf_dataset_text_field); the keys are {}", kf::quoted(field_), join(keys_, ", "));
  }

 private:
  bool wanted() const { return depth_ == 1 && here_ && object_; }
  bool other(const char* what) {
    if (depth_ == 0 || wanted()) {
      wrong_ = what;
      text_.reset();
    }
    return true;
  }
  bool open(bool object) {
    if (depth_ == 0) {
      object_ = object;
      wrong_ = object ? "" : "a list";
    } else if (wanted()) {
      wrong_ = object ? "an object" : "a list";
      text_.reset();
    }
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  const std::string& field_;
  std::optional<std::string> text_;
  std::string problem_;
  std::string wrong_;  // what stands where the object or the string should
  std::vector<std::string> keys_;
  int depth_ = 0;
  bool object_ = false;
  bool here_ = false;  // the value that follows belongs to the field
};

}  // namespace

void for_each_jsonl_text(std::string_view content, const std::string& field, const fs::path& path,
                         const std::function<void(std::string_view)>& f) {
  for (std::int64_t line = 1; !content.empty(); ++line) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    const std::string_view text = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (trim(text).empty()) {
      continue;
    }
    FieldReader reader(field);
    json::sax_parse(text.begin(), text.end(), &reader);
    const std::string problem = reader.problem();
    KF_CHECK(problem.empty(), Code::data, "{}:{}: {}", path, line, problem);
    f(*reader.text());
  }
}

}  // namespace kf
