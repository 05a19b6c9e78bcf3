#pragma once
// softmax(scale q k^T) v, with what models do to the scores.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace kf {

/// Of the keys each query sees one range: query t sees first[t] .. t + ahead, as far as there are keys, and nothing where that is nothing.
/// Windows, chunks and documents are that, also of keys that are a part of all.
class KeyRanges {
 public:
  /// first (B or 1, T) int64, of `keys` = S keys.
  KeyRanges(at::Tensor first, std::int64_t keys, std::int64_t ahead) : first_(std::move(first)), keys_(keys), ahead_(ahead) {}
  /// Of keys that end with the queries: ahead = S - T.
  KeyRanges(const at::Tensor& first, std::int64_t keys) : KeyRanges(first, keys, keys - first.size(1)) {}

  const at::Tensor& first() const { return first_; }
  std::int64_t ahead() const { return ahead_; }
  /// The same as (B or 1, 1, T, S) bool, made at the first call: kernels that take it need far more memory.
  const at::Tensor& mask() const;

 private:
  at::Tensor first_;
  std::int64_t keys_, ahead_;
  mutable at::Tensor mask_;
};

struct AttentionInput {
  at::Tensor q, k, v;   // (B, H, T, D), (B, Hkv, S, D), (B, Hkv, S, Dv): query head h reads kv head h / (H / Hkv)
  at::Tensor mask;      // (B or 1, 1 or H, T, S) bool: who is seen; undefined where `ranges`, `causal`, or nothing at all, says it
  bool causal = false;  // where there is neither mask nor ranges: query t sees keys 0 .. t
  at::Tensor bias;      // (B or 1, H, T, S) added to the scores, -inf where nothing is seen; undefined for none
  at::Tensor sinks;     // (H): scores that take part in each softmax and bring no value (gpt-oss); undefined for none
  std::function<at::Tensor(const at::Tensor& weights)> drop;  // dropout of the softmax's result; null for none
  std::shared_ptr<const KeyRanges> ranges;                    // null for none; where there is a mask, too, it has the word

  /// Who is seen, as a mask; undefined where `causal` or nothing at all says it.
  at::Tensor seen() const { return mask.defined() || ranges == nullptr ? mask : ranges->mask(); }
};

/// Repeats every kv head for the query heads that share it: (B, Hkv, S, D) -> (B, heads, S, D).
at::Tensor repeat_heads(const at::Tensor& x, std::int64_t heads);

struct AttentionRules {
  /// Which kernel of LibTorch's: by what is there, or one alone. No other is then taken in its place: Code::config where it cannot.
  enum class Backend { any, flash, efficient, cudnn };
  double scale = 1;
  double softcap = 0;  // c > 0: scores become c tanh(scores / c)
  bool fp32_scores = false;
  bool fp32_softmax = true;
  Backend backend = Backend::any;
};

/// (B, H, T, Dv) by a kernel that never holds the scores: our own on a CPU in fp32 and bf16 (by_rows.h), or LibTorch's, which can be
/// differentiated once. Where those are not enough, for dropout, and for caps and sinks elsewhere, it takes the formula. The arithmetic of
/// scores and softmax is the kernel's own.
at::Tensor fused_attention(const AttentionInput& in, const AttentionRules& rules);
/// The same by the formula, which holds all scores.
at::Tensor plain_attention(const AttentionInput& in, const AttentionRules& rules);

}  // namespace kf
