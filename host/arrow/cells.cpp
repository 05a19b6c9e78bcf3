#include "arrow/cells.h"

#include <arrow/scalar.h>
#include <arrow/type.h>

#include "arrow/batches.h"
#include "core/text.h"

namespace kf::table {
namespace {

bool is_plain_text(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING || type.id() == arrow::Type::STRING_VIEW;
}

/// Stretch of a list's values that belongs to a row.
struct Stretch {
  std::shared_ptr<arrow::Array> values;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Stretch list_at(const arrow::Array& array, std::int64_t row) {
  if (array.type_id() == arrow::Type::LARGE_LIST) {
    const auto& list = static_cast<const arrow::LargeListArray&>(array);
    return {list.values(), list.value_offset(row), list.value_offset(row + 1)};
  }
  const auto& list = static_cast<const arrow::ListArray&>(array);
  return {list.values(), list.value_offset(row), list.value_offset(row + 1)};
}

}  // namespace

bool is_text(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY) {
    return is_plain_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
  }
  return is_plain_text(type);
}

bool is_printable(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) || type.id() == arrow::Type::BOOL;
}

std::optional<std::string_view> text_at(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) {
    return std::nullopt;
  }
  switch (array.type_id()) {
    case arrow::Type::STRING: return static_cast<const arrow::StringArray&>(array).GetView(row);
    case arrow::Type::LARGE_STRING: return static_cast<const arrow::LargeStringArray&>(array).GetView(row);
    case arrow::Type::STRING_VIEW: return static_cast<const arrow::StringViewArray&>(array).GetView(row);
    default: break;
  }
  const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
  const std::int64_t index = coded.GetValueIndex(row);
  const arrow::Array& words = *coded.dictionary();
  if (index < 0 || index >= words.length()) {
    throw Problem(format("index {} into a dictionary of {} values", index, words.length()));
  }
  return text_at(words, index);
}

std::optional<std::string> printed_at(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) {
    return std::nullopt;
  }
  return value_of(array.GetScalar(row))->ToString();
}

std::string problem_of_chat(const arrow::DataType& type) {
  if (type.id() != arrow::Type::LIST && type.id() != arrow::Type::LARGE_LIST) {
    return "no list of messages";
  }
  const arrow::DataType& item = *type.field(0)->type();
  if (item.id() != arrow::Type::STRUCT) {
    return "a list of something else than structs with role and content";
  }
  for (const char* name : {"role", "content"}) {
    const auto field = static_cast<const arrow::StructType&>(item).GetFieldByName(name);
    if (field == nullptr || !is_text(*field->type())) {
      return field == nullptr ? format("a list of structs without {}", name) : format("a list of structs whose {} is no text", name);
    }
  }
  return "";
}

std::string chat_at(const arrow::Array& array, std::int64_t row, std::vector<Message>& out) {
  if (array.IsNull(row)) {
    return "null";
  }
  const Stretch stretch = list_at(array, row);
  const auto& items = static_cast<const arrow::StructArray&>(*stretch.values);
  const auto roles = items.GetFieldByName("role");
  const auto contents = items.GetFieldByName("content");
  for (std::int64_t i = stretch.begin; i < stretch.end; ++i) {
    const auto role = items.IsNull(i) ? std::nullopt : text_at(*roles, i);
    const auto content = items.IsNull(i) ? std::nullopt : text_at(*contents, i);
    if (!role || !content) {
      return format("message {}: {} is null", i - stretch.begin, role ? "content" : "role");
    }
    out.push_back({*role, *content});
  }
  return out.empty() ? "an empty list" : "";
}

}  // namespace kf::table
