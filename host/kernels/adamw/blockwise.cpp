#include "kernels/adamw/blockwise.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/adamw/byte_map.h"

namespace kf {
namespace {

constexpr std::int64_t kScaleBytes = sizeof(float);
constexpr float kSmallest = 0x1p-126F;  // the smallest scale that has an inverse

std::int64_t blocks_of(std::int64_t numbers) { return (numbers + kByteBlock - 1) / kByteBlock; }

/// Views into `stored`.
struct Pieces {
  at::Tensor scales;  // (blocks) fp32
  at::Tensor places;  // (numbers) uint8
};

Pieces pieces_of(const at::Tensor& stored, std::int64_t numbers) {
  const std::int64_t head = kScaleBytes * blocks_of(numbers);
  const at::Tensor bytes = stored.view(at::kByte);
  return {bytes.narrow(0, 0, head).view(at::kFloat), bytes.narrow(0, head, numbers)};
}

bool is_fp8(at::ScalarType type) { return type == at::kFloat8_e4m3fn || type == at::kFloat8_e5m2; }

bool has_sign(at::ScalarType type) { return type == at::kChar || type == at::kFloat8_e4m3fn; }

double top_of(at::ScalarType type) { return type == at::kFloat8_e4m3fn ? kTopE4m3 : kTopE5m2; }

at::Tensor on(const at::Tensor& like, const float* numbers, std::int64_t count) {
  const at::Tensor out = at::empty({count}, at::kFloat);
  std::copy_n(numbers, count, out.mutable_data_ptr<float>());
  return out.to(like.device());
}

/// Numbers from -1 to 1 as bytes.
at::Tensor placed(const at::Tensor& shares, at::ScalarType type) {
  if (!is_fp8(type)) {
    return at::bucketize(shares, on(shares, byte_map(has_sign(type)).middles, 255));
  }
  const at::Tensor bytes = (has_sign(type) ? shares : shares.clamp_min(0)).mul(top_of(type)).to(type).view(at::kByte);
  return bytes.masked_fill(bytes.eq(0x80), 0).to(at::kLong);  // there is one 0
}

}  // namespace

bool is_blockwise(at::ScalarType type) { return type == at::kChar || type == at::kByte || is_fp8(type); }

std::int64_t blockwise_bytes(std::int64_t numbers) { return kScaleBytes * blocks_of(numbers) + numbers; }

at::Tensor from_blockwise(const at::Tensor& stored, at::IntArrayRef sizes) {
  const std::int64_t n = c10::multiply_integers(sizes);
  const Pieces pieces = pieces_of(stored, n);
  const at::ScalarType type = stored.scalar_type();
  const at::Tensor scales = pieces.scales.repeat_interleave(kByteBlock).narrow(0, 0, n);
  if (is_fp8(type)) {
    return pieces.places.view(type).to(at::kFloat).mul_(1 / top_of(type)).mul_(scales).view(sizes);
  }
  const at::Tensor map = on(stored, byte_map(has_sign(type)).values, 256);
  return map.index_select(0, pieces.places.to(at::kInt)).mul_(scales).view(sizes);
}

void to_blockwise(const at::Tensor& numbers, const at::Tensor& stored) {
  const at::ScalarType type = stored.scalar_type();
  const std::int64_t n = numbers.numel(), blocks = blocks_of(n);
  const Pieces pieces = pieces_of(stored, n);
  const at::Tensor x = at::constant_pad_nd(numbers.to(at::kFloat).reshape({n}), {0, blocks * kByteBlock - n}).view({blocks, kByteBlock});
  const at::Tensor largest = x.gather(1, x.abs().argmax(1, /*keepdim=*/true));  // (blocks, 1)
  const at::Tensor scales = largest.masked_fill(largest.abs().lt(kSmallest), 0);
  const at::Tensor shares = (x * scales.reciprocal()).clamp(-1, 1).masked_fill(scales.eq(0), 0);
  at::Tensor places = placed(shares, type);
  if (!has_sign(type)) {
    places = at::where(x.gt(0).logical_and(scales.ne(0)), places.clamp_min(1), places);
  }
  pieces.scales.copy_(scales.view({blocks}));
  pieces.places.copy_(places.view({-1}).narrow(0, 0, n));
}

}  // namespace kf
