#include "model/recompute/kept_results.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

// A key below autograd and above the backends that LibTorch itself leaves unused.
constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

thread_local KeptResults* current = nullptr;

/// What a named result comes from: what else lies in its way (views, casts) costs nothing to make again.
bool makes_results(const std::string& op) {
  static const std::set<std::string> products{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::_grouped_mm"};
  return products.count(op) > 0 || op.starts_with("aten::_scaled_dot_product_");
}

/// An operator under the name that users know it by: kernels/product reaches oneDNN's product by another one, and products and attention of
/// our own for CPUs stand in the place of LibTorch's.
const std::string& known_name(const c10::OperatorHandle& op) {
  static const std::string mm = "aten::mm", onednn = "mkldnn::_linear_pointwise", small = "kf::product";
  static const std::string flash = "aten::_scaled_dot_product_flash_attention_for_cpu", own = "kf::attention";
  const std::string& name = op.schema().name();
  return name == onednn || name == small ? mm : name == own ? flash : name;
}

void run_or_replay(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(kKey);
  KeptResults* const results = current;
  // Variants that write into a tensor of the caller are run again: what they return is not theirs to keep.
  if (results == nullptr || !results->concerns(known_name(op)) || op.schema().is_mutable()) {
    op.callBoxed(stack);
    return;
  }
  if (results->first()) {
    op.callBoxed(stack);
    const auto count = static_cast<std::ptrdiff_t>(op.schema().returns().size());
    results->keep({stack->end() - count, stack->end()});
    return;
  }
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (c10::IValue& value : results->next()) {
    stack->push_back(std::move(value));
  }
}

/// Once a process, at first use; it acts only inside a Scope.
void register_fallback() {
  static const auto* const registration = new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
      kKey, c10::KernelFunction::makeFromBoxedFunction<&run_or_replay>(), "kept results of kf-host"));
  (void)registration;
}

}  // namespace

bool KeptResults::active() { return current != nullptr; }

bool KeptResults::concerns(const std::string& op) const {
  const char* const name = ResultName::current();
  const bool named = name != nullptr && wanted_.count(std::string("#") + name) > 0;
  return (named && makes_results(op)) || wanted_.count(op) > 0;
}

KeptResults::Scope::Scope(KeptResults& results, bool first) : before_(current), active_(!results.wanted_.empty()) {
  if (!active_) {
    return;
  }
  register_fallback();
  results.first_ = first;
  results.next_ = 0;
  current = &results;
  c10::impl::tls_set_dispatch_key_included(kKey, true);
}

KeptResults::Scope::~Scope() {
  if (active_) {
    current = before_;
    c10::impl::tls_set_dispatch_key_included(kKey, before_ != nullptr);
  }
}

void KeptResults::keep(std::vector<c10::IValue> results) {
  Kept kept;
  for (const c10::IValue& value : results) {
    const bool versioned = value.isTensor() && value.toTensor().defined();
    kept.versions.push_back(versioned ? value.toTensor()._version() : 0);
  }
  kept.results = std::move(results);
  kept_.push_back(std::move(kept));
}

std::vector<c10::IValue> KeptResults::next() {
  KF_CHECK(next_ < kept_.size(), Code::other, "recomputation called more of the kept operators than the first run");
  Kept& kept = kept_[next_++];
  for (std::size_t i = 0; i < kept.results.size(); ++i) {
    const c10::IValue& value = kept.results[i];
    KF_CHECK(!value.isTensor() || !value.toTensor().defined() || value.toTensor()._version() == kept.versions[i], Code::other,
             "a result kept by train.remat_save was changed in place before backward; leave its operator out");
  }
  return std::move(kept.results);
}

const std::vector<std::string>& result_names() {
  static const std::vector<std::string> all{"q", "k", "v", "qkv", "q_a", "kv_a", "kv", "context", "out", "gate", "up", "down"};
  return all;
}

std::string operator_name(const std::string& text, const std::string& key) {
  const std::size_t colons = text.rfind("::");
  std::string name = "aten::" + (colons == std::string::npos ? text : text.substr(colons + 2));
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames()) {
    if (known.name == name) {
      return name;
    }
  }
  fail(Code::config, "{}: LibTorch has no operator '{}'; give attention, mlp, a result ({}), or an operator as at::mm", key, text,
       join(result_names(), ", "));
}

}  // namespace kf
