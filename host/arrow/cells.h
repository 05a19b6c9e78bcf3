#pragma once
// Columns as text, whatever type of string they have; and as chats.

#include <arrow/array.h>

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::table {

/// Whether values of the type are text: string, large_string, string_view, and dictionaries of these.
bool is_text(const arrow::DataType& type);
/// Whether they can be printed: numbers and booleans.
bool is_printable(const arrow::DataType& type);

/// Which of an array's values is the text of row `row`; nothing where it is null.
std::optional<std::string_view> text_at(const arrow::Array& array, std::int64_t row);
/// The same for a number or boolean, printed.
std::optional<std::string> printed_at(const arrow::Array& array, std::int64_t row);

/// "" when the type can be a chat: a list of structs, or text that holds such a list; else what is wrong.
std::string problem_of_chat(const arrow::DataType& type);
/// The value of a row as JSON, whatever its type: lists, structs (null members too), maps as lists of keys and values.
void append_json(const arrow::Array& array, std::int64_t row, std::string& out);

}  // namespace kf::table
