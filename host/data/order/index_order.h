#pragma once
// In which order an epoch visits the samples of a data set, by arithmetic: no list, no state, any place at once.

#include <cstdint>
#include <memory>
#include <string>

namespace kf {

/// One bijection of 0..size-1 an epoch.
class IndexOrder {
 public:
  virtual ~IndexOrder() = default;
  virtual std::int64_t size() const = 0;
  /// The sample at `place` of epoch `epoch`, 0 <= place < size(). Safe to call from several threads.
  virtual std::int64_t at(std::int64_t epoch, std::int64_t place) const = 0;
};

/// By data.shuffle:
/// - "none": as the data lie, in every epoch alike;
/// - "permutation": a Feistel permutation of all samples;
/// - "block": blocks of `window` neighbours in random order, and the samples of each in random order: reads stay near each other;
/// - "window": two such shuffles of half blocks, the second shifted by half a block, with the blocks left where they are: no sample moves
///   by `window` places or more.
/// Epoch e of seed s depends on (s, e) alone. Throws Code::data for another kind ("torch" needs a list: sampler.h).
std::unique_ptr<IndexOrder> make_index_order(const std::string& kind, std::int64_t size, std::int64_t seed, std::int64_t window);

}  // namespace kf
