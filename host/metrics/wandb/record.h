#pragma once
// Records of a Weights & Biases run: messages `Record` (wandb/proto/wandb_internal.proto), without the number that each gets when it is
// written.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf::wandb {

/// Names with values in JSON.
using Items = std::vector<std::pair<std::string, std::string>>;

struct RunHead {
  std::string id;
  std::string project;
  std::string name;
  std::string host;
  std::vector<std::string> tags;
  double start = 0;  // in seconds since 1970
  Items config;
};

std::string run_record(const RunHead& run);
/// What is logged at a step.
std::string history_record(std::int64_t step, const Items& items);
/// The last value of everything.
std::string summary_record(const Items& items);
/// The end of the run, in two records: what readers wait for and that nothing follows.
std::string exit_record(double seconds);
std::string final_record();

/// `record` with its number.
std::string numbered(std::int64_t number, std::string_view record);

struct History {
  std::int64_t step = 0;
  Items items;
};
/// What is logged, where the record is that; nothing for others and for what is no message.
std::optional<History> history_of(std::string_view record);
/// When the run began, where the record says it.
std::optional<double> start_of(std::string_view record);
/// The record without its number.
std::string unnumbered(std::string_view record);

}  // namespace kf::wandb
