#pragma once
// What goes between the ranks of a pipeline in an update: hidden states one way, their gradients the other.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "config/plan/pipeline.h"
#include "parallel/group.h"

namespace kf {

/// Of a piece and a micro-batch: the hidden states that it gives, or the gradient of those that it got.
struct PipelineLetter {
  bool forward = true;
  std::int64_t piece = 0;  // that sends it
  std::int64_t micro = 0;
  auto operator<=>(const PipelineLetter&) const = default;  // NOLINT(modernize-use-nullptr): sees a pointer in it
};

/// All letters of an update. They travel between two ranks in the order in which the sender's list makes them, which every rank knows; a
/// receive that comes up early is begun early, so no order of two lists can block. Nobody waits for a send before it is sure to have
/// arrived.
class PipelineMail {
 public:
  /// `room`: where the letters of a micro-batch come in.
  PipelineMail(Group& ranks, const config::PipelinePlan& plan, std::function<at::Tensor(std::int64_t micro)> room);

  void send(const PipelineLetter& letter, const at::Tensor& tensor);
  at::Tensor receive(const PipelineLetter& letter);
  /// After the last action.
  void finish();

 private:
  /// A letter that this rank is sent, and where in the sender's list.
  struct Expected {
    PipelineLetter letter;
    std::size_t position = 0;
  };
  struct Coming {
    at::Tensor tensor;
    Pending pending;
    std::size_t position = 0;
  };
  struct Sent {
    at::Tensor tensor;
    Pending pending;
    std::size_t used = 0;  // position of the receiver's action that needs it
  };
  struct Lane {
    std::deque<Expected> expected;
    std::vector<Sent> sent;
  };

  /// The letter that an action leaves, and for whom; nothing at the ends of the model.
  bool letter_of(std::int64_t rank, const config::PipelineAction& action, PipelineLetter& letter, std::int64_t& to) const;
  void begin_next(std::int64_t from);
  void forget_arrived(std::int64_t rank, std::size_t position);

  Group& ranks_;
  const config::PipelinePlan& plan_;
  std::function<at::Tensor(std::int64_t)> room_;
  std::vector<Lane> lanes_;  // by the other rank
  std::map<PipelineLetter, Coming> coming_;
  std::map<PipelineLetter, std::size_t> used_;  // letters of this rank: see Sent
};

}  // namespace kf
