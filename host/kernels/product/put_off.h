#pragma once
// Gradients of weights that are computed later than the rest of a backward.

#include <ATen/core/Tensor.h>

#include <vector>

namespace kf {

/// While a Scope of it exists, on its thread, backward through `kf::linear` computes the gradient of the input alone and leaves what that
/// of the weight is made of here. Only products with a weight that is a leaf; the gradients of all others come with those of the inputs.
class PutOffProducts {
 public:
  class Scope {
   public:
    /// Null: nothing is put off.
    explicit Scope(PutOffProducts* products);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PutOffProducts* before_;
  };

  /// Whether this thread puts off.
  static bool active();
  /// x W^T for x (.., in) and W (out, in), whose gradient is put off; undefined where nothing is, or not for these.
  static at::Tensor product(const at::Tensor& x, const at::Tensor& weight);
  /// Computes what was put off and adds it to the weights' gradients, in the order in which backward came by.
  void run();

 private:
  struct Node;
  struct One {
    at::Tensor weight, gradient, x;
  };
  std::vector<One> all_;
};

}  // namespace kf
