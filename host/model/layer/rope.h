#pragma once
// Rotary position embedding (Su et al. 2021) with the stretches and variants of open models.

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace kf {

namespace config {
struct ModelConfig;
}

struct RopeOptions {
  enum class Scaling { none, linear, dynamic, llama3, yarn, longrope };
  std::int64_t head_dim = 0;     // D
  std::int64_t max_seq_len = 0;  // positions 0 .. max_seq_len - 1
  double theta = 10000;
  Scaling scaling = Scaling::none;
  double factor = 1;
  double low_freq = 1, high_freq = 4;               // llama3
  std::int64_t orig_len = 8192;                     // all but linear
  double beta_fast = 32, beta_slow = 1;             // yarn
  bool truncate = true;                             // yarn
  std::vector<double> short_factors, long_factors;  // longrope
  double gain = 1;            // multiplies the rotated components: the temperature of yarn and longrope on queries and keys
  double fraction = 1;        // share of the components that rotate
  bool proportional = false;  // fraction: frequencies over the whole head instead of the rotated prefix
  bool interleaved = false;   // pairs are neighbours instead of i and i + half
  const Kernels* kernels = &fused_kernels();

  /// Components of the part that is cut out and rotated, even.
  std::int64_t rotated() const;
  auto operator<=>(const RopeOptions&) const = default;  // NOLINT(modernize-use-nullptr): sees a pointer in it
};

/// rotated()/2 angles per position, fp32. The base is theta^(-2i/n); linear divides by factor; llama3 (Meta, Llama 3.1) and yarn (Peng et
/// al. 2023, with the borders of the reference implementation) stretch long wavelengths only. A forward of more than orig_len positions
/// stretches dynamic (NTK-aware: theta grows by (factor length / orig_len - factor + 1)^(n / (n - 2))) and takes longrope's long factors
/// (Ding et al. 2024) instead of its short ones. The length is that of the text, not of the batch that it lies in.
at::Tensor rope_frequencies(const RopeOptions& options, std::int64_t length = 0);
/// Whether a text of `longer` positions turns its first `length` ones as a text of `length` does. What a cache holds of them is right only
/// then: not the keys alone depend on the angles, but every layer's input above the first, too.
bool same_angles(const RopeOptions& options, std::int64_t length, std::int64_t longer);

/// 0.1 mscale ln(factor) + 1, and 1 without a stretch (Peng et al. 2023, equation 22).
double yarn_temperature(double factor, double mscale);
/// sqrt(1 + ln(factor) / ln(orig_len)), and 1 without a stretch (Ding et al. 2024).
double longrope_temperature(double factor, std::int64_t orig_len);

class Rope {
 public:
  explicit Rope(const RopeOptions& options);

  /// x (B, H, T, D) at positions `first` .. `first` + T - 1 -> the same shape and type; the arithmetic is fp32. `positions` (B or 1, T)
  /// int64, all below `first` + T, take their place where they are defined. The text is `first` + T positions long.
  at::Tensor rotate(const at::Tensor& x, std::int64_t first, const at::Tensor& positions = {}) const;
  /// The same for texts of any lengths in one batch: `positions` (B or 1, T) inside of them and the `lengths` (B or 1, T or 1) of the texts
  /// that they belong to, both int64. For scalings that depend on the length.
  at::Tensor rotate_texts(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& lengths) const;

  struct Table {
    at::Tensor cos, sin;  // (length, n/2) fp32
  };
  /// Of positions 0 .. length - 1 of a text as long, for kernels that turn by themselves.
  Table angles(std::int64_t length, at::Device device) const;

  bool depends_on_length() const;
  const RopeOptions& options() const { return options_; }

 private:
  /// The table of forwards of `length` positions, long enough, on `device`; its length doubles up to max_seq_len.
  const Table& table(std::int64_t length, at::Device device) const;
  /// (B or 1, 1, T, n/2): the angles of texts of several lengths.
  Table angles_of(const at::Tensor& positions, const at::Tensor& lengths) const;
  at::Tensor turned(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) const;

  RopeOptions options_;
  mutable Table usual_;              // of forwards up to orig_len, or of all
  mutable Table stretched_;          // of longer ones
  mutable std::int64_t length_ = 0;  // dynamic: the length that stretched_ is for
  mutable Table texts_;              // of the last batch of texts of several lengths: all layers ask for the same
  mutable at::Tensor texts_positions_, texts_lengths_;
};

/// The tables of a model: layers with equal options share one.
class RopeTables {
 public:
  std::shared_ptr<const Rope> get(const RopeOptions& options);

 private:
  std::map<RopeOptions, std::shared_ptr<const Rope>> tables_;
};

}  // namespace kf
