#pragma once
// Results of chosen operators, kept on the way forward and handed out again when the same code runs a second time.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/product/result_name.h"

namespace kf {

class KeptResults {
 public:
  /// Operators, "aten::mm", and names, "#q".
  explicit KeptResults(std::vector<std::string> wanted) : wanted_(wanted.begin(), wanted.end()) {}

  /// While one exists, this thread's calls of the operators are kept (first = true), or answered from what was kept, in the same order.
  /// Autograd lies above: the second time builds the graph as always.
  class Scope {
   public:
    Scope(KeptResults& results, bool first);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    KeptResults* before_;
    bool active_;
  };

  /// Whether this thread keeps, or hands out what was kept.
  static bool active();
  /// Whether the results of an operator are kept, called under the name that this thread has now.
  bool concerns(const std::string& op) const;
  bool first() const { return first_; }
  void keep(std::vector<c10::IValue> results);
  /// Throws Code::other when the calls differ from those of the first time.
  std::vector<c10::IValue> next();

 private:
  struct Kept {
    std::vector<c10::IValue> results;
    std::vector<std::int64_t> versions;  // of the tensors: a later change in place is an error
  };

  std::set<std::string> wanted_;
  std::vector<Kept> kept_;
  std::size_t next_ = 0;
  bool first_ = true;
};

/// The names under which layers compute what can be kept.
const std::vector<std::string>& result_names();

/// "at::mm", "mm" or "aten::mm" -> "aten::mm". Throws Code::config with `key` where there is no such operator.
std::string operator_name(const std::string& text, const std::string& key);

}  // namespace kf
