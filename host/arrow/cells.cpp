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
  if (is_text(type)) {
    return "";
  }
  if (type.id() != arrow::Type::LIST && type.id() != arrow::Type::LARGE_LIST) {
    return "no list of messages";
  }
  return type.field(0)->type()->id() == arrow::Type::STRUCT ? "" : "a list of something else than structs with role and content";
}

namespace {

void append_quoted(std::string_view text, std::string& out) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += hex[byte >> 4];
      out += hex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_list(const Stretch& stretch, std::string& out) {
  out += '[';
  for (std::int64_t i = stretch.begin; i < stretch.end; ++i) {
    out += i == stretch.begin ? "" : ",";
    append_json(*stretch.values, i, out);
  }
  out += ']';
}

void append_struct(const arrow::StructArray& array, std::int64_t row, std::string& out) {
  out += '{';
  for (int i = 0; i < array.num_fields(); ++i) {
    out += i == 0 ? "" : ",";
    append_quoted(array.struct_type()->field(i)->name(), out);
    out += ':';
    append_json(*array.field(i), row, out);
  }
  out += '}';
}

}  // namespace

void append_json(const arrow::Array& array, std::int64_t row, std::string& out) {
  const arrow::DataType& type = *array.type();
  if (array.IsNull(row)) {
    out += "null";
  } else if (is_text(type)) {
    if (const auto text = text_at(array, row)) {
      append_quoted(*text, out);
    } else {
      out += "null";
    }
  } else if (type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST || type.id() == arrow::Type::MAP) {
    append_list(list_at(array, row), out);
  } else if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
    const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
    append_list({list.values(), list.value_offset(row), list.value_offset(row) + list.value_length()}, out);
  } else if (type.id() == arrow::Type::STRUCT) {
    append_struct(static_cast<const arrow::StructArray&>(array), row, out);
  } else {
    const std::string text = value_of(array.GetScalar(row))->ToString();
    const bool number = is_printable(type) && text.find_first_of("nN") == std::string::npos;  // neither nan nor inf
    if (number || type.id() == arrow::Type::BOOL) {
      out += text;
    } else {
      append_quoted(text, out);
    }
  }
}

}  // namespace kf::table
