#pragma once
// One call of a group of processes: notes that say what it is, and the tensors.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "parallel/call.h"
#include "parallel/gloo_link.h"
#include "parallel/group.h"

namespace kf {

/// Calls that do not match, in words.
struct Mismatch {
  std::string text;
};

/// A send or a receive, begun: its note and its tensor. The tensor's tag is made of its number and its shape, so one of another length
/// cannot be taken for it; the note then says what came instead.
struct Letter {
  std::shared_ptr<Message> note, tensor;
  at::Tensor said;  // the note's text, of a receive
};
Letter begin_letter(GlooLink& link, const at::Tensor& t, std::int64_t peer, std::int64_t number, bool sends);
/// Throws LinkFault, and Mismatch for a receive of something else.
void finish_letter(GlooLink& link, const Group& group, const Letter& letter, const at::Tensor& t, std::int64_t peer, bool sends,
                   GlooLink::Clock::time_point deadline);

/// Carries out call `number` of the group. Throws LinkFault and Mismatch.
void carry_out_round(GlooLink& link, const Group& group, const Call& call, std::int64_t number, GlooLink::Clock::time_point deadline);

}  // namespace kf
