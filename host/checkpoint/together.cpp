#include "checkpoint/together.h"

#include <exception>

#include "core/error.h"

namespace kf {
namespace {

constexpr char kWell = '+', kFailed = '-';

}  // namespace

std::vector<std::string> together(Group& group, const std::function<std::string()>& body) {
  std::string mine;
  std::exception_ptr own;
  try {
    mine = kWell + body();
  } catch (const std::exception& e) {
    own = std::current_exception();
    mine = kFailed + std::string(e.what());
  }
  std::vector<std::string> told = group.tell(mine);
  if (own) {
    std::rethrow_exception(own);
  }
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    KF_CHECK(told[rank].front() == kWell, Code::checkpoint, "rank {}: {}", group.ranks()[rank], told[rank].substr(1));
    told[rank].erase(0, 1);
  }
  return told;
}

}  // namespace kf
