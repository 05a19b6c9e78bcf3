#pragma once
// The other end of a run's socket: what `kf-host attach` and `kf-host reload` talk through.

#include <string>

#include "attach/frame.h"
#include "attach/server.h"
#include "core/descriptor.h"
#include "core/fs.h"

namespace kf::attach {

class Client {
 public:
  /// Connects to the run that trains in `folder`; where none does, waits so many seconds for one. Throws Code::communication where none
  /// comes, or none that lets this user in.
  explicit Client(const fs::path& folder, double patience = 0);

  /// Says something and waits for the answer, which comes between two steps. Throws Code::communication where the run ends before.
  Answer ask(Frame::Kind kind, const std::string& text);

 private:
  int connect();
  Frame receive();

  fs::path folder_;
  Descriptor socket_;
  FrameReader in_;
};

}  // namespace kf::attach
