#pragma once
// Rotary position embedding (Su et al. 2021) with the stretches and variants of open models.

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kf {

namespace config {
struct ModelConfig;
}

struct RopeOptions {
  enum class Scaling { none, linear, llama3, yarn };
  std::int64_t head_dim = 0;     // D
  std::int64_t max_seq_len = 0;  // positions 0 .. max_seq_len - 1
  double theta = 10000;
  Scaling scaling = Scaling::none;
  double factor = 1;
  double low_freq = 1, high_freq = 4;    // llama3
  std::int64_t orig_len = 8192;          // llama3, yarn
  double beta_fast = 32, beta_slow = 1;  // yarn
  bool truncate = true;                  // yarn
  double gain = 1;                       // multiplies the rotated components: yarn's temperature on queries and keys
  double fraction = 1;                   // share of the components that rotate
  bool proportional = false;             // fraction: frequencies over the whole head instead of the rotated prefix
  bool interleaved = false;              // pairs are neighbours instead of i and i + half

  /// Components of the part that is cut out and rotated, even.
  std::int64_t rotated() const;
  auto operator<=>(const RopeOptions&) const = default;
};

/// rotated()/2 angles per position, fp32. The base is theta^(-2i/n); linear divides by factor; llama3 (Meta, Llama 3.1) and yarn (Peng et
/// al. 2023, with the borders of the reference implementation) stretch long wavelengths only.
at::Tensor rope_frequencies(const RopeOptions& options);

/// 0.1 mscale ln(factor) + 1, and 1 without a stretch (Peng et al. 2023, equation 22).
double yarn_temperature(double factor, double mscale);

class Rope {
 public:
  explicit Rope(const RopeOptions& options);

  /// x (B, H, T, D) at positions `first` .. `first` + T - 1 -> the same shape and type; the arithmetic is fp32.
  at::Tensor rotate(const at::Tensor& x, std::int64_t first) const;

 private:
  /// Makes the tables long enough, on the device of x.
  void extend(std::int64_t length, at::Device device) const;

  RopeOptions options_;
  at::Tensor frequencies_;        // (n/2)
  mutable at::Tensor cos_, sin_;  // (length, n/2) fp32; length doubles up to max_seq_len
};

/// The tables of a model: layers with equal options share one.
class RopeTables {
 public:
  std::shared_ptr<const Rope> get(const RopeOptions& options);

 private:
  std::map<RopeOptions, std::shared_ptr<const Rope>> tables_;
};

}  // namespace kf
