#include "app/launch.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace kf {
namespace {

std::optional<std::int64_t> read_count(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') {
    return std::nullopt;
  }
  const std::string_view view(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  KF_CHECK(error == std::errc() && end == view.data() + view.size() && value >= 1, Code::communication, "{}='{}' is not a number of ranks",
           name, view);
  return value;
}

}  // namespace

std::int64_t launched_world() {
  std::optional<std::int64_t> world = read_count("WORLD_SIZE");
  // SLURM_NTASKS alone also stands in the batch script itself; SLURM_STEP_ID tells that srun started us.
  if (!world && std::getenv("SLURM_STEP_ID") != nullptr) {
    world = read_count("SLURM_NTASKS");
  }
  KF_CHECK(world.value_or(1) == 1, Code::communication, "{} ranks were started, but parallel runs are not built yet; start one process",
           *world);
  return world.value_or(1);
}

}  // namespace kf
