#include "train/profile/op_ranges.h"

#include <ATen/SequenceNumber.h>

#include <memory>

#include "core/trace.h"

namespace kf {
namespace {

/// The engine gives a node's number with it: forward has noted where numbers were given. What only adds a gradient to a weight's has none
/// (it counts as negative) and follows the node that it belongs to.
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& op) {
  if (op.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    TraceRecorder::enter_origin(op.seqNr());
  }
  TraceRecorder::begin_op(op.name());
  return nullptr;
}

void end(const at::RecordFunction& /*op*/, at::ObserverContext* /*none*/) { TraceRecorder::end_op(); }

}  // namespace

OpRanges::OpRanges()
    : handle_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {}

OpRanges::~OpRanges() { at::removeCallback(handle_); }

std::uint64_t OpRanges::nodes_made() { return at::sequence_number::peek(); }

}  // namespace kf
