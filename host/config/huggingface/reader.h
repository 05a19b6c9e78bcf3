#pragma once
// A config.json of Hugging Face, read key by key: what nobody asked for is an error in the end, so that nothing is guessed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/tree/node.h"

namespace kf::config::huggingface {

class Reader {
 public:
  explicit Reader(const Table& json) : json_(json) {}

  /// Each of these marks the key as understood. A value of another type is a problem, and the fallback is returned; without a fallback an
  /// absent key is a problem, too. null counts as absent.
  std::int64_t integer(std::string_view key, std::optional<std::int64_t> fallback = {});
  std::optional<std::int64_t> maybe_integer(std::string_view key);
  double real(std::string_view key, std::optional<double> fallback = {});
  std::optional<double> maybe_real(std::string_view key);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, const std::string& fallback);
  /// Whatever it holds; null where absent.
  const Node* node(std::string_view key) { return take(key); }
  const Table* table(std::string_view key);
  const Array* list(std::string_view key);

  bool has(std::string_view key) const;                                          // present and not null; not marked
  bool given(std::string_view key) const { return json_.find(key) != nullptr; }  // present, maybe null; not marked
  /// Keys without effect on the numbers.
  void ignore(std::initializer_list<std::string_view> keys);
  /// Only this value (or none) is understood.
  void only(std::string_view key, const Node& value);
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  void note(std::string text) { notes_.push_back(std::move(text)); }

  /// A key of [model].
  void set(std::string_view key, Node::Value value) { model_[key] = Node(std::move(value)); }
  void unset(std::string_view key) { model_.erase(key); }
  const Table& model() const { return model_; }

  /// Keys that nobody asked for are problems, too,
  std::vector<std::string> problems() const;
  /// or notes (notes.h), by their names.
  std::vector<std::string> notes() const;

 private:
  const Node* take(std::string_view key);
  bool asked_for(const std::string& key) const;
  void wrong_type(std::string_view key, const Node& node, std::string_view wanted);

  const Table& json_;
  Table model_;
  std::vector<std::string> taken_;
  std::vector<std::string> problems_;
  std::vector<std::string> notes_;
};

}  // namespace kf::config::huggingface
