#include "parallel/one_rank.h"

#include "core/error.h"
#include "parallel/call.h"
#include "parallel/reduce.h"

namespace kf {

OneRank::OneRank(std::string name, std::int64_t rank_of_world) : Group(std::move(name), {rank_of_world}, 0) {}

Pending OneRank::start(Call call) {
  if (call.from.defined()) {
    copy_unless_same(call.to, call.from);
  }
  return {};
}

// Group has refused these: there is no other rank.
Pending OneRank::start_send(const at::Tensor& /*t*/, std::int64_t /*to*/) { return {}; }
Pending OneRank::start_receive(const at::Tensor& /*t*/, std::int64_t /*from*/) { return {}; }
std::unique_ptr<Group> OneRank::make_part(const std::string& name, const std::string& /*key*/, std::vector<std::int64_t> ranks,
                                          std::int64_t /*rank*/) {
  return std::make_unique<OneRank>(name, ranks.front());
}

}  // namespace kf
