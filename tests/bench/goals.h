#pragma once
// What was measured beside what is wanted: the last table of a bench.

#include <optional>
#include <string>
#include <vector>

namespace kf::bench {

class Goals {
 public:
  /// `measured` is to be `wanted` at most, or at least. Units are for people: "ns", "s", "x".
  void at_most(const std::string& what, double measured, double wanted, const std::string& unit);
  void at_least(const std::string& what, double measured, double wanted, const std::string& unit);
  /// Nothing is wanted of it.
  void seen(const std::string& what, double measured, const std::string& unit);
  /// A part has come to no end, for this reason.
  void failed(const std::string& part, const std::string& why);

  /// As a Markdown table; nothing where nothing was taken.
  void print() const;
  bool any_failed() const { return any_failed_; }

 private:
  struct Line {
    std::string what, measured, wanted, verdict;
  };
  std::vector<Line> lines_;
  bool any_failed_ = false;
};

}  // namespace kf::bench
