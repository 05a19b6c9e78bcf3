#include "model/recompute/twice_differentiable.h"

namespace kf {
namespace {

thread_local bool on = false;

}  // namespace

TwiceDifferentiable::TwiceDifferentiable() : before_(on) { on = true; }
TwiceDifferentiable::~TwiceDifferentiable() { on = before_; }
bool TwiceDifferentiable::wanted() { return on; }

}  // namespace kf
