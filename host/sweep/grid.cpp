#include "sweep/grid.h"

#include "core/error.h"

namespace kf::sweep {
namespace {

/// Repeats a walk along a path of choices: what lies behind the path's end takes the first value.
class PathSampler final : public Suggester {
 public:
  struct Turn {
    std::int64_t index;
    std::int64_t count;
  };

  double draw(const std::string& name, const Distribution& distribution) override {
    const std::optional<std::int64_t> count = distribution.count();
    KF_CHECK(count, Code::config,
             "a grid needs values to count: '{}' is {}; use kf.choice({ ... }), kf.quniform(low, high, step), or method = \"random\"", name,
             distribution.describe());
    if (at_ == path_.size()) {
      path_.push_back({0, *count});
    }
    path_[at_].count = *count;
    return distribution.at(path_[at_++].index);
  }

  void restart() { at_ = 0; }

  /// Moves on to the next point; false behind the last one.
  bool next() {
    path_.resize(at_);
    while (!path_.empty() && path_.back().index + 1 >= path_.back().count) {
      path_.pop_back();
    }
    if (path_.empty()) {
      return false;
    }
    ++path_.back().index;
    return true;
  }

 private:
  std::vector<Turn> path_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Draw> grid_points(const std::vector<Entry>& space) {
  std::vector<Draw> out;
  PathSampler sampler;
  do {
    KF_CHECK(out.size() < kMaxGrid, Code::config, "the grid has more than {} points; take fewer values, or method = \"random\"", kMaxGrid);
    sampler.restart();
    out.push_back(draw(space, sampler));
  } while (sampler.next());
  return out;
}

}  // namespace kf::sweep
