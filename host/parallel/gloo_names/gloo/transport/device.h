#pragma once
// See gloo/context.h.

namespace gloo::transport {

class Device;
class UnboundBuffer;

}  // namespace gloo::transport
