#pragma once
// What torch's ProcessGroupGloo.hpp needs to know of Gloo: names. The wheel has all of Gloo inside of libtorch_cpu but none of its headers,
// and those of Debian's libgloo-dev are of another version. Nothing here is called, made or laid out by us: the group is made and used
// through c10d's own functions, so declarations are enough and cannot disagree with the library.

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
