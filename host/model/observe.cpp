#include "model/observe.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace kf {
namespace {

thread_local std::vector<Observation*> observations;  // few, in the order in which they were made
thread_local std::int64_t forwards = 0;

}  // namespace

Observation::Observation(const std::shared_ptr<Module>& module, Observer observer)
    : key_(module.get()), module_(module), observer_(std::move(observer)) {
  observations.push_back(this);
  ++observation_count;
}

Observation::~Observation() {
  observations.erase(std::remove(observations.begin(), observations.end(), this), observations.end());
  observation_count = observations.size();
}

at::Tensor observed_slowly(const Module& module, const at::Tensor& input, at::Tensor output) {
  ++forwards;
  const std::vector<Observation*> all = observations;  // an observer may remove itself or others
  for (Observation* observation : all) {
    const bool alive = std::find(observations.begin(), observations.end(), observation) != observations.end();
    if (alive && observation->key_ == &module && !observation->module_.expired()) {
      ++observation->calls_;
      const at::Tensor replaced = observation->observer_(input, output);
      output = replaced.defined() ? replaced : output;
    }
  }
  return output;
}

std::int64_t observed_forwards() { return forwards; }

}  // namespace kf
