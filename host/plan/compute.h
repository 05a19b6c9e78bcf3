#pragma once
// How long a rank computes, by the sizes of its matrices: no communication.

#include <cstdint>

#include "config/plan/weights.h"
#include "config/schema/config.h"
#include "plan/gpu.h"

namespace kf::plan {

/// Seconds of one micro-batch in a piece of the model.
struct Seconds {
  double forward = 0;
  double inputs = 0;   // backward: the gradients of what came in
  double weights = 0;  // backward: the gradients of weights
  double again = 0;    // backward: what recomputation does again
  double backward() const { return inputs + weights + again; }
  double total() const { return forward + backward(); }
  Seconds& operator+=(const Seconds& other);
};

/// A product (m, k) x (k, n). Its result is made in tiles of 128 x 128, one a multiprocessor at a time, so the last round may be partly
/// idle (NVIDIA, "Matrix multiplication background": tile and wave quantization); never faster than its matrices pass through memory.
/// `peak` is that of its type.
double product_seconds(const Gpu& gpu, double peak, double m, double n, double k, double bytes_a_number);

/// Operations a second of the type in which a job computes its products.
double peak_of(const Gpu& gpu, const config::TrainConfig& train);

/// Parts of a micro-batch of a rank.
class Compute {
 public:
  /// All live longer than this.
  Compute(const config::Config& config, const Gpu& gpu, const Layout& layout);

  /// A layer: products, attention, and what passes through memory.
  Seconds layer(std::int64_t index) const;
  /// Logits and loss, with what looks ahead.
  Seconds head() const;
  /// Attention's part of a layer's forward: a ring hides its messages behind it.
  double attention_forward(std::int64_t index) const;
  /// The update of `numbers` weights of which the optimizer has `state` bytes.
  double update(double numbers, double state) const;

  double tokens() const { return tokens_; }  // of a micro-batch on this rank
  double width() const { return width_; }    // bytes of a number of the computation

 private:
  Seconds product(double m, double n, double k, const char* result, std::int64_t layer) const;
  Seconds attention(std::int64_t layer) const;
  Seconds projections(std::int64_t layer) const;
  Seconds feed_forward(std::int64_t layer) const;
  Seconds passes(double bytes, bool again) const;
  bool kept(const char* result, std::int64_t layer) const;

  const config::Config& config_;
  const Gpu& gpu_;
  double tp_, cp_, ep_, peak_, width_, tokens_, stream_;
};

}  // namespace kf::plan
