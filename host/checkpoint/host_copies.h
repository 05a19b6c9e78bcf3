#pragma once
// What goes to the disk behind the training is copied first: the weights move on meanwhile.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/writer.h"

namespace kf {

class HostCopies {
 public:
  /// `kept`: one set of buffers serves every save, as page-locked memory where tensors come from a GPU; else each save has new ones.
  explicit HostCopies(bool kept) : kept_(kept) {}

  /// Puts copies in the place of the live tensors. With kept buffers: those of the last save, which must have ended, are written over.
  void take(StagedSave& staged);

  /// Bytes on their way from one place of host memory to another.
  struct Move {
    const std::byte* from;
    std::byte* to;
    std::size_t bytes;
  };

 private:
  void take(StagedSave::File& file, const std::string& stem, std::vector<Move>& moves);

  bool kept_;
  std::map<std::string, at::Tensor> buffers_;  // by file and name
  std::vector<at::Tensor> live_;               // that are copied just now
};

}  // namespace kf
