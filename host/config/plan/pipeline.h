#pragma once
// The order of a pipeline's work: lists of actions, one a rank, and what follows from them. No torch and no communication.

#include <cstdint>
#include <string>
#include <vector>

#include "config/plan/stages.h"
#include "config/schema/config.h"

namespace kf::config {

/// What a rank does with a micro-batch. A schedule has either `backward`, or its two halves: the gradient of what came in, which the piece
/// before waits for, and later the gradients of the weights.
enum class PipelineWork : std::int8_t { forward, backward, input_gradient, weight_gradients };

struct PipelineAction {
  PipelineWork work = PipelineWork::forward;
  std::int64_t chunk = 0;  // which of the rank's pieces
  std::int64_t micro = 0;
  bool operator==(const PipelineAction&) const = default;
};

/// Piece s = chunk * ranks + rank of the model lies on that rank (Narayanan et al. 2021, section 2.2). A forward of piece s waits for that
/// of piece s - 1, a backward for that of piece s + 1 and for its own forward.
struct PipelinePlan {
  std::string schedule;
  std::int64_t ranks = 1;
  std::int64_t chunks = 1;  // pieces of the model on a rank
  std::int64_t micros = 1;
  std::vector<std::vector<PipelineAction>> actions;  // of each rank, in order

  std::int64_t pieces() const { return ranks * chunks; }
  std::int64_t piece(std::int64_t rank, std::int64_t chunk) const { return chunk * ranks + rank; }
};

/// `schedule` as distributed.pp_schedule. In any of them a rank goes through the backwards of a piece in the order of the micro-batches, as
/// one rank does, and whoever sends need not wait until it is received.
/// - gpipe (Huang et al. 2019): all forwards, then all backwards; every rank holds what `micros` forwards keep.
/// - 1f1b (Narayanan et al. 2019): rank r holds at most ranks - r of them.
/// - interleaved_1f1b (Narayanan et al. 2021, section 2.2), any number of micro-batches: as if there were as many more as make a multiple
///   of the ranks. Holds at most 2 (ranks - r - 1) + (chunks - 1) ranks + 1.
/// - zero_bubble (Qi et al. 2023, ZB-H1): the gradients of weights come r micro-batches behind the rest, and fill what 1f1b waits. Holds at
///   most `ranks`, like the first rank of 1f1b.
PipelinePlan plan_pipeline(const std::string& schedule, std::int64_t ranks, std::int64_t chunks, std::int64_t micros);

/// When each action begins, in the time of one forward (a backward takes two, half of one takes one), where a message takes none.
struct PipelineTimes {
  std::vector<std::vector<std::int64_t>> begins;  // as PipelinePlan::actions
  std::int64_t end = 0;
};
/// Throws Code::other for lists that wait for each other.
PipelineTimes times_of(const PipelinePlan& plan);
/// How long an action takes.
std::int64_t duration(PipelineWork work);
/// The share of the ranks' time in which they wait, in [0, 1).
double bubble_of(const PipelinePlan& plan);
/// A line a rank, a column a forward's time: "F3" forward, "B3" backward, and in its halves "I3" and "W3"; of several pieces a rank the
/// letter says which ("F3b"). As wide as `columns` characters at most.
std::string picture(const PipelinePlan& plan, std::size_t columns = 120);

/// Pieces of the model on each rank.
std::int64_t pipeline_chunks(const DistributedConfig& distributed);
/// Where the model is cut, all pieces in order: by distributed.pp_layers, or by cost. One piece without a pipeline.
std::vector<Stage> pipeline_stages(const Config& config);

}  // namespace kf::config
