#include "model/moe/capacity.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "model/moe/router.h"
#include "parallel/world.h"

namespace kf {
namespace {

std::int64_t room(std::int64_t assignments, std::int64_t n_experts, double factor) {
  const double even = static_cast<double>(assignments) / static_cast<double>(n_experts);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(even * factor)));
}

/// (k N): slot 0 of every token, then slot 1.
at::Tensor queue_of(const at::Tensor& experts) { return experts.t().flatten(); }

/// (k N): how many before it in the queue want the same expert.
at::Tensor places_in(const at::Tensor& queue, std::int64_t n_experts) {
  const auto [sorted, order] = at::sort(queue, /*stable=*/true, 0, /*descending=*/false);
  const at::Tensor counts = count_assignments(queue, n_experts);
  const at::Tensor first = counts.cumsum(0) - counts;  // (E): where each expert's part of the sorted queue starts
  const at::Tensor place = at::arange(queue.numel(), queue.options()) - first.index_select(0, sorted);
  return at::empty_like(queue).scatter_(0, order, place);
}

/// (k N) bool -> (N, k)
at::Tensor by_token(const at::Tensor& queue, const at::Tensor& experts) { return queue.view({experts.size(1), experts.size(0)}).t(); }

/// Sums of all entries before, along the dims but the last, which are in the order of the queue.
at::Tensor sums_before(const at::Tensor& counts) {
  const at::Tensor flat = counts.reshape({-1, counts.size(-1)});
  return (flat.cumsum(0) - flat).view(counts.sizes());
}

/// Pieces of a sequence that a rank has, neighbours in it: where each begins here, and in the sequence.
struct Pieces {
  std::vector<std::int64_t> here, there;
};

/// A sequence that cp divides gives each rank two pieces (the outer ones and the inner ones, zigzag) or one, which is then cut anywhere.
Pieces pieces_of(const TokenPlaces& places, std::int64_t count) {
  if (count == 1) {
    return {{0}, {0}};
  }
  const at::Tensor positions = places.positions.to(at::kCPU).contiguous();
  const auto* const at = positions.const_data_ptr<std::int64_t>();
  Pieces out{{0}, {at[0]}};
  for (std::int64_t i = 1; i < positions.numel(); ++i) {
    if (at[i] != at[i - 1] + 1) {
      out.here.push_back(i);
      out.there.push_back(at[i]);
    }
  }
  if (out.here.size() == 1) {  // an empty one before it
    out.here.insert(out.here.begin(), 0);
    out.there.insert(out.there.begin(), at[0]);
  }
  KF_CHECK(out.here.size() == 2, Code::config,
           "model.moe_capacity_factor: a rank along distributed.cp has {} pieces of a sequence, must have 1 or 2", out.here.size());
  return out;
}

/// Of every assignment of the queue, (k N): its slot, sequence and piece as one number.
at::Tensor buckets_of(const at::Tensor& experts, std::int64_t length, const Pieces& pieces) {
  const std::int64_t sequences = experts.size(0) / length, count = static_cast<std::int64_t>(pieces.here.size());
  const at::Tensor at = at::arange(length, experts.options());
  at::Tensor piece = at::zeros({length}, experts.options());
  for (std::size_t i = 1; i < pieces.here.size(); ++i) {
    piece += at.ge(pieces.here[i]);
  }
  const at::Tensor of_sequence = at::arange(sequences, experts.options()).unsqueeze(1) * count + piece;  // (B, T)
  const at::Tensor slot = at::arange(experts.size(1), experts.options()).unsqueeze(1) * (sequences * count);
  return (slot + of_sequence.view({1, -1})).flatten();
}

/// The pieces of all ranks by the reader that has their sequences, then as in the sequence: the order of (ranks x pieces), and where this
/// rank's are in it.
std::pair<at::Tensor, at::Tensor> order_of(const Pieces& pieces, const World& world, at::Device device) {
  const std::int64_t count = static_cast<std::int64_t>(pieces.there.size());
  at::Tensor key = at::empty({count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    key.mutable_data_ptr<std::int64_t>()[i] = (world.mesh().reader(world.rank()) << 40) + pieces.there[static_cast<std::size_t>(i)];
  }
  const at::Tensor keys = world.data().gathered(key.to(device), count * world.data().size());
  const at::Tensor order = std::get<1>(at::sort(keys, /*stable=*/true, 0, /*descending=*/false));
  const at::Tensor place = at::empty_like(order).scatter_(0, order, at::arange(order.numel(), order.options()));
  return {order, place.narrow(0, world.data().rank() * count, count)};
}

}  // namespace

at::Tensor within_capacity(const at::Tensor& experts, std::int64_t n_experts, double factor) {
  return by_token(places_in(queue_of(experts), n_experts).lt(room(experts.numel(), n_experts, factor)), experts);
}

at::Tensor within_capacity(const at::Tensor& experts, std::int64_t n_experts, double factor, const TokenPlaces& places,
                           const World& world) {
  Group& data = world.data();
  const Pieces pieces = pieces_of(places, world.mesh().degree(Axis::cp) > 1 ? 2 : 1);
  const at::Tensor queue = queue_of(experts), bucket = buckets_of(experts, places.length, pieces);
  const std::int64_t slots = experts.size(1), sequences = experts.size(0) / places.length;
  const std::int64_t count = static_cast<std::int64_t>(pieces.here.size());
  const at::Tensor own = count_assignments(bucket * n_experts + queue, slots * sequences * count * n_experts);
  const at::Tensor all = data.gathered(own, own.numel() * data.size());
  const auto [order, mine] = order_of(pieces, world, experts.device());
  const at::Tensor in_order = all.view({data.size(), slots, sequences, count, n_experts})
                                  .permute({1, 2, 0, 3, 4})
                                  .flatten(2, 3)  // (k, B, ranks x pieces, E)
                                  .index_select(2, order);
  const at::Tensor before = sums_before(in_order).index_select(2, mine);  // (k, B, pieces, E) of all ranks
  const at::Tensor before_here = sums_before(own.view({slots, sequences, count, n_experts}));
  const at::Tensor moved = (before - before_here).flatten().index_select(0, bucket * n_experts + queue);
  const at::Tensor place = places_in(queue, n_experts) + moved;
  return by_token(place.lt(room(experts.numel() * data.size(), n_experts, factor)), experts);
}

}  // namespace kf
