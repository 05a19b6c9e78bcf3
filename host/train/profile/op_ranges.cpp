#include "train/profile/op_ranges.h"

#include <ATen/SequenceNumber.h>

#include <memory>
#include <string_view>

#include "core/trace.h"

namespace kf {
namespace {

/// What the engine puts around each node tells nothing more, and would come before it is known whose node it is.
bool is_around_node(const at::RecordFunction& op) {
  constexpr std::string_view kAround = "autograd::engine::evaluate_function";
  return std::string_view(op.name()).starts_with(kAround);
}

/// The engine gives a node's number with it: forward has noted where numbers were given. What only adds a gradient to a weight's has none
/// (it counts as negative) and follows the node that it belongs to.
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& op) {
  if (is_around_node(op)) {
    return nullptr;
  }
  if (op.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    TraceRecorder::enter_origin(op.seqNr());
  }
  TraceRecorder::begin_op(op.name());
  return nullptr;
}

void end(const at::RecordFunction& op, at::ObserverContext* /*none*/) {
  if (!is_around_node(op)) {
    TraceRecorder::end_op();
  }
}

}  // namespace

OpRanges::OpRanges()
    : handle_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {}

OpRanges::~OpRanges() { at::removeCallback(handle_); }

std::uint64_t OpRanges::nodes_made() { return at::sequence_number::peek(); }

}  // namespace kf
