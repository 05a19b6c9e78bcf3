// Any bytes as a GGUF file: its header, its settings, and its tensors under both names. No crash, no hang, only our own errors, and no
// tensor that is larger than what lies on the disk (Q8_0 takes four times as much in memory).

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "checkpoint/foreign/gguf.h"
#include "config/huggingface/gguf.h"
#include "core/error.h"
#include "core/log.h"
#include "fuzz/fuzz.h"

namespace {

using namespace kf;
using fuzz::require;

void read_all(const NamedTensors& tensors, std::size_t most) {
  for (const std::string& name : tensors.names) {
    const TensorKind kind = tensors.ranged->kind(name);
    const at::Tensor tensor = tensors.get(name);
    require(tensor.sizes() == at::IntArrayRef(kind.shape) && tensor.scalar_type() == kind.type, "another tensor than was said");
    require(tensor.nbytes() <= most, "a tensor of more bytes than the file has");
    Range half = Range::whole(kind.shape);  // of the first dim
    half.begin[0] = half.size[0] / 2;
    half.size[0] -= half.begin[0];
    const at::Tensor part = at::empty(half.size, at::TensorOptions().dtype(kind.type));
    tensors.ranged->read({name, kind.shape, half, part});
    const at::Tensor same = half.of(tensor).contiguous();  // bits, as there may be NaN
    require(std::memcmp(part.const_data_ptr(), same.const_data_ptr(), part.nbytes()) == 0, "a range has other numbers than the whole");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = [] { return log::show_errors_only(true), true; }();
  static const fs::path folder = fuzz::new_folder();
  const fs::path path = folder / "f.gguf";
  std::FILE* const out = quiet ? std::fopen(path.c_str(), "wb") : nullptr;
  require(out != nullptr && std::fwrite(data, 1, size, out) == size && std::fclose(out) == 0, "cannot write");
  try {
    const gguf::OpenFile file(path);
    std::vector<std::string> problems;
    config::model_of_gguf(path, problems);
    read_all(file.tensors(), 4 * size);
    read_all(file.as_ours(file.tensors()), 4 * size);
  } catch (const Error&) {
  }
  return 0;
}
