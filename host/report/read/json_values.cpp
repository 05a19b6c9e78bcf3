#include "report/read/json_values.h"

#include <charconv>
#include <ctime>
#include <utility>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf::report {
namespace {

using config::Array;
using config::Node;
using config::Table;

template <class T>
const T* value_at(const Table& table, const char* key) {
  const Node* const node = table.find(key);
  return node != nullptr ? std::get_if<T>(&node->value) : nullptr;
}

}  // namespace

std::string text_at(const Table& table, const char* key) {
  const auto* const text = value_at<std::string>(table, key);
  return text != nullptr ? *text : "";
}

std::optional<std::int64_t> integer_at(const Table& table, const char* key) {
  const auto* const number = value_at<std::int64_t>(table, key);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::vector<std::string> texts_at(const Table& table, const char* key) {
  std::vector<std::string> out;
  if (const Array* const list = list_at(table, key)) {
    for (const Node& item : *list) {
      const auto* const text = std::get_if<std::string>(&item.value);
      out.push_back(text != nullptr ? *text : "");
    }
  }
  return out;
}

const Array* list_at(const Table& table, const char* key) { return value_at<Array>(table, key); }

Table read_object(const fs::path& file) {
  try {
    Node root = config::parse_json(read_regular_file(file, kMostJson), file.string());
    KF_CHECK(root.table() != nullptr, Code::other, "{} is no JSON object", file);
    return std::move(*root.table());
  } catch (const Error& error) {
    throw Error(Code::other, error.what());  // the data of a job have nothing to do with it
  }
}

double seconds_of(const std::string& utc) {
  std::tm parts{};
  int* const fields[] = {&parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec};
  constexpr std::pair<std::size_t, std::size_t> kPlaces[] = {{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}};
  if (utc.size() != 20 || utc.back() != 'Z') {
    return 0;
  }
  for (std::size_t i = 0; i < std::size(kPlaces); ++i) {
    const char* const begin = utc.data() + kPlaces[i].first;
    const char* const end = begin + kPlaces[i].second;
    if (const auto [rest, fault] = std::from_chars(begin, end, *fields[i]); fault != std::errc() || rest != end) {
      return 0;
    }
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<double>(::timegm(&parts));
}

}  // namespace kf::report
