#pragma once
// Where the next trial of a sweep comes from: samplers, grids, lists and functions behind one interface.

#include <memory>
#include <optional>
#include <vector>

#include "sweep/definition.h"

namespace kf::sweep {

class Proposer {
 public:
  virtual ~Proposer() = default;
  /// How many trials there are at all; nothing where there is no end.
  virtual std::optional<std::int64_t> count() const { return std::nullopt; }
  /// Trial `number`, given all trials so far; nothing when there are no more. Throws what the script's functions throw, and Code::config
  /// when adjust rejects kMaxRejected draws one after the other.
  virtual std::optional<Draw> next(const std::vector<Trial>& trials, std::int64_t number) = 0;

  static constexpr std::int64_t kMaxRejected = 1000;
};

/// `definition` must outlive it.
std::unique_ptr<Proposer> make_proposer(const Definition& definition);

}  // namespace kf::sweep
