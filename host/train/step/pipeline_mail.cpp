#include "train/step/pipeline_mail.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace kf {
namespace {

using config::PipelineAction;
using config::PipelineWork;

bool is_backward(const PipelineAction& action) {
  return action.work == PipelineWork::backward || action.work == PipelineWork::input_gradient;
}

}  // namespace

PipelineMail::PipelineMail(Group& ranks, const config::PipelinePlan& plan, std::function<at::Tensor(std::int64_t micro)> room)
    : ranks_(ranks), plan_(plan), room_(std::move(room)), lanes_(static_cast<std::size_t>(plan.ranks)) {
  PipelineLetter letter;
  std::int64_t to = 0;
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    const std::vector<PipelineAction>& actions = plan.actions[static_cast<std::size_t>(rank)];
    for (std::size_t position = 0; position < actions.size(); ++position) {
      const PipelineAction& action = actions[position];
      if (letter_of(rank, action, letter, to) && to == ranks.rank()) {
        lanes_[static_cast<std::size_t>(rank)].expected.push_back({letter, position});
      }
      const std::int64_t piece = plan.piece(rank, action.chunk);
      if (action.work == PipelineWork::forward && piece > 0 && (piece - 1) % plan.ranks == ranks.rank()) {
        used_[{true, piece - 1, action.micro}] = position;
      } else if (is_backward(action) && piece + 1 < plan.pieces() && (piece + 1) % plan.ranks == ranks.rank()) {
        used_[{false, piece + 1, action.micro}] = position;
      }
    }
  }
}

bool PipelineMail::letter_of(std::int64_t rank, const PipelineAction& action, PipelineLetter& letter, std::int64_t& to) const {
  const std::int64_t piece = plan_.piece(rank, action.chunk);
  const bool forward = action.work == PipelineWork::forward;
  if (!forward && !is_backward(action)) {
    return false;
  }
  const std::int64_t other = piece + (forward ? 1 : -1);
  letter = {forward, piece, action.micro};
  to = other % plan_.ranks;
  return other >= 0 && other < plan_.pieces();
}

void PipelineMail::begin_next(std::int64_t from) {
  std::deque<Expected>& expected = lanes_[static_cast<std::size_t>(from)].expected;
  const Expected next = expected.front();
  expected.pop_front();
  Coming& coming = coming_[next.letter];
  coming.tensor = room_(next.letter.micro);
  coming.position = next.position;
  coming.pending = ranks_.begin_receive(coming.tensor, from);
}

/// What `rank` needed for its actions up to one that it has done is there.
void PipelineMail::forget_arrived(std::int64_t rank, std::size_t position) {
  std::erase_if(lanes_[static_cast<std::size_t>(rank)].sent, [position](Sent& sent) {
    if (sent.used > position) {
      return false;
    }
    sent.pending.wait();
    return true;
  });
}

void PipelineMail::send(const PipelineLetter& letter, const at::Tensor& tensor) {
  const std::int64_t to = (letter.piece + (letter.forward ? 1 : -1)) % plan_.ranks;
  const at::Tensor sent = tensor.detach().contiguous();
  const at::Tensor room = room_(letter.micro);
  KF_CHECK(sent.sizes() == room.sizes() && sent.scalar_type() == room.scalar_type(), Code::config,
           "a stage of the pipeline gives hidden states of another shape or type ({}) than the next one takes ({}): distributed.pp needs "
           "hidden states of the compute type between layers",
           c10::toString(sent.scalar_type()), c10::toString(room.scalar_type()));
  lanes_[static_cast<std::size_t>(to)].sent.push_back({sent, ranks_.begin_send(sent, to), used_.at(letter)});
}

at::Tensor PipelineMail::receive(const PipelineLetter& letter) {
  const std::int64_t from = letter.piece % plan_.ranks;
  while (!coming_.contains(letter)) {
    begin_next(from);
  }
  const auto found = coming_.find(letter);
  found->second.pending.wait();
  at::Tensor tensor = std::move(found->second.tensor);
  const std::size_t position = found->second.position;
  coming_.erase(found);
  forget_arrived(from, position);
  // The next one may come while this one is worked on.
  const bool waits = std::any_of(coming_.begin(), coming_.end(), [&](const auto& one) { return one.first.piece % plan_.ranks == from; });
  if (!waits && !lanes_[static_cast<std::size_t>(from)].expected.empty()) {
    begin_next(from);
  }
  return tensor;
}

void PipelineMail::finish() {
  for (Lane& lane : lanes_) {
    for (Sent& sent : lane.sent) {
      sent.pending.wait();
    }
    lane.sent.clear();
    KF_CHECK(lane.expected.empty(), Code::other, "the schedule of the pipeline left letters behind");
  }
}

}  // namespace kf
