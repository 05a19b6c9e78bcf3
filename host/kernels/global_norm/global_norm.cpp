#include "kernels/global_norm/global_norm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/global_norm/square_sums.h"
#include "kernels/simd/lists.h"

namespace kf {
namespace {

bool fits(const at::Tensor& tensor) {
  return tensor.is_cpu() && (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16);
}

double sum_of_squares(const std::vector<at::Tensor>& tensors) {
  simd::BlockList blocks;
  std::vector<at::Tensor> own;
  for (const at::Tensor& tensor : tensors) {
    own.push_back(tensor.contiguous());
    blocks.add(tensor.numel(), kSquaresBlock);
  }
  std::vector<float> sums(static_cast<std::size_t>(blocks.count()));
  constexpr std::int64_t kGrain = 16;  // blocks: some 10 us
  const auto square_sums = KF_SIMD_PICK(square_sums);
  blocks.share(kGrain, [&](std::size_t i, std::int64_t first, std::int64_t end) {
    square_sums(own[i].const_data_ptr(), own[i].scalar_type() == at::kBFloat16, own[i].numel(), first, end,
                sums.data() + blocks.begin(i) + first);
  });
  double total = 0;
  for (const float sum : sums) {
    total += sum;
  }
  return total;
}

}  // namespace

at::Tensor global_norm(const std::vector<at::Tensor>& tensors) {
  if (std::all_of(tensors.begin(), tensors.end(), fits)) {
    return at::scalar_tensor(std::sqrt(sum_of_squares(tensors)), at::kFloat);
  }
  const bool fp32 = std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& one) { return one.scalar_type() == at::kFloat; });
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(tensors, 2, fp32 ? std::nullopt : std::optional(at::kFloat))), 2);
}

}  // namespace kf
