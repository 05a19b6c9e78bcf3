#include "data/template/value.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/tokenizer/unicode.h"

namespace kf::jinja {

Text Text::part(std::size_t begin, std::size_t end) const {
  Text out;
  begin = std::min(begin, size());
  end = std::clamp(end, begin, size());
  out.bytes = bytes.substr(begin, end - begin);
  out.from = from.substr(begin, end - begin);
  return out;
}

const Value* Arguments::find(std::size_t place, std::string_view name) const {
  if (place < values.size()) {
    return &values[place];
  }
  for (const auto& [key, value] : named) {
    if (key == name) {
      return &value;
    }
  }
  return nullptr;
}

Value::Value(Dict value) : value_(std::make_shared<Dict>(std::move(value))) {}

bool Value::truth() const {
  if (const bool* b = boolean()) {
    return *b;
  }
  if (is_number()) {
    return number() != 0;
  }
  if (const Text* t = text()) {
    return !t->empty();
  }
  if (const List* l = list()) {
    return !l->empty();
  }
  if (const Dict* d = dict()) {
    return !d->items.empty() || !d->fixed;
  }
  return function() != nullptr;
}

double Value::number() const {
  if (const bool* b = boolean()) {
    return *b ? 1 : 0;
  }
  return integer() != nullptr ? static_cast<double>(*integer()) : *real();
}

const std::int64_t* Value::whole(std::int64_t& room) const {
  if (const bool* b = boolean()) {
    room = *b ? 1 : 0;
    return &room;
  }
  return integer();
}

std::string Value::kind() const {
  constexpr const char* names[] = {"undefined", "none", "a boolean", "a number", "a number", "a string", "a list", "a dict", "a function"};
  return names[value_.index()];
}

const Value* Dict::find(std::string_view key) const {
  for (const Pair& item : items) {
    if (const Text* text = item.first.text(); text != nullptr && text->bytes == key) {
      return &item.second;
    }
  }
  return nullptr;
}

const Value* Dict::at(const Value& key) const {
  for (const Pair& item : items) {
    if (equal(item.first, key)) {
      return &item.second;
    }
  }
  return nullptr;
}

void Dict::set(const Value& key, Value value) {
  for (Pair& item : items) {
    if (equal(item.first, key)) {
      item.second = std::move(value);
      return;
    }
  }
  items.emplace_back(key, std::move(value));
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.integer() != nullptr && b.integer() != nullptr ? *a.integer() == *b.integer() : a.number() == b.number();
  }
  if (a.text() != nullptr && b.text() != nullptr) {
    return a.text()->bytes == b.text()->bytes;
  }
  if (a.list() != nullptr && b.list() != nullptr) {
    return std::equal(a.list()->begin(), a.list()->end(), b.list()->begin(), b.list()->end(), equal);
  }
  if (a.dict() != nullptr && b.dict() != nullptr) {
    const Dict& other = *b.dict();
    return a.dict()->items.size() == other.items.size() &&
           std::all_of(a.dict()->items.begin(), a.dict()->items.end(), [&](const Pair& item) {
             const Value* const found = other.at(item.first);
             return found != nullptr && equal(item.second, *found);
           });
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

int compare(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  }
  if (a.text() != nullptr && b.text() != nullptr) {
    const int order = a.text()->bytes.compare(b.text()->bytes);  // UTF-8 sorts as its characters do
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (a.list() != nullptr && b.list() != nullptr) {
    for (std::size_t i = 0; i < std::min(a.list()->size(), b.list()->size()); ++i) {
      if (const int order = compare((*a.list())[i], (*b.list())[i]); order != 0) {
        return order;
      }
    }
    return a.list()->size() < b.list()->size() ? -1 : a.list()->size() > b.list()->size() ? 1 : 0;
  }
  fail(Code::data, "{} and {} have no order", a.kind(), b.kind());
}

bool contains(const Value& container, const Value& item) {
  if (const Text* text = container.text()) {
    KF_CHECK(item.text() != nullptr, Code::data, "{} cannot be looked for in a string", item.kind());
    return text->bytes.find(item.text()->bytes) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    return dict->at(item) != nullptr;
  }
  const List list = items_of(container);
  return std::any_of(list.begin(), list.end(), [&](const Value& each) { return equal(each, item); });
}

List items_of(const Value& value) {
  if (const List* list = value.list()) {
    return *list;
  }
  List out;
  if (const Dict* dict = value.dict()) {
    for (const Pair& item : dict->items) {
      out.push_back(item.first);
    }
    return out;
  }
  if (const Text* text = value.text()) {
    const std::vector<std::size_t> borders = characters(text->bytes);
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
      out.emplace_back(text->part(borders[i], borders[i + 1]));
    }
    return out;
  }
  KF_CHECK(value.is_undefined(), Code::data, "{} has no items to go through", value.kind());
  return out;
}

std::vector<std::size_t> characters(std::string_view text) {
  std::vector<std::size_t> out;
  std::size_t at = 0;
  while (at < text.size()) {
    out.push_back(at);
    at += unicode::decode(text.data() + at, text.data() + text.size()).size;
  }
  out.push_back(text.size());
  return out;
}

}  // namespace kf::jinja
