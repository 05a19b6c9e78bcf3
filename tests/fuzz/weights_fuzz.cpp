// Any bytes as a file of weights: safetensors, an index of parts, a state dict, the index of a distributed checkpoint, llm.c's. No crash,
// no hang, only our own errors, and no tensor that is larger than what lies on the disk. The first byte chooses.

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "checkpoint/files/safetensors.h"
#include "checkpoint/files/stored_tensors.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/foreign/distributed.h"
#include "checkpoint/foreign/gpt2.h"
#include "checkpoint/foreign/llmc.h"
#include "checkpoint/foreign/state_dict.h"
#include "core/error.h"
#include "core/log.h"
#include "fuzz/fuzz.h"

namespace {

using namespace kf;
using fuzz::require;

/// With the files that an index may name.
fs::path folder() {
  static const fs::path made = [] {
    fs::path out = fuzz::new_folder();
    const at::Tensor numbers = at::arange(12, at::kFloat).reshape({3, 4});
    write_safetensors(out / "a.safetensors", {{"w", numbers}, {"v", numbers}});
    write_safetensors(out / "b.safetensors", {{"w", numbers}});
    const fs::path saved = fs::path(KF_SOURCE_DIR) / "tests/unit/checkpoint/saved/distributed/step_10";
    for (const char* shard : {"__0_0.distcp", "__1_0.distcp"}) {
      fs::copy_file(saved / shard, out / shard);
    }
    return out;
  }();
  return made;
}

std::size_t size_of_files() {
  static const std::size_t size = [] {
    std::size_t out = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
      out += entry.file_size();
    }
    return out;
  }();
  return size;
}

void read_all(const NamedTensors& tensors, std::size_t most) {
  for (const std::string& name : tensors.names) {
    try {
      const TensorKind kind = tensors.ranged->kind(name);
      const at::Tensor tensor = tensors.get(name);
      require(tensor.sizes() == at::IntArrayRef(kind.shape) && tensor.scalar_type() == kind.type, "another tensor than was said");
      require(tensor.nbytes() <= most, "a tensor of more bytes than the files have");
    } catch (const Error&) {
    }
  }
}

void read(std::uint8_t choice, const fs::path& path, std::size_t size) {
  switch (choice % 5) {
    case 0:
    case 1: {
      const StoredTensors stored(path);
      read_all(named(stored), size + size_of_files());
      return;
    }
    case 2: {
      const NamedTensors tensors = open_state_dict(path);
      read_all(tensors, size);
      read_all(gpt2_as_ours(tensors, path), size);
      return;
    }
    case 3: return read_all(open_distributed(folder()), 64 * size_of_files());  // parts may lie in the same bytes
    default: {
      const LlmcFile file = open_llmc(path, 16);
      read_all(gpt2_as_ours(file.tensors, path), size);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = [] { return log::show_errors_only(true), true; }();
  if (size < 1 || !quiet) {
    return 0;
  }
  constexpr const char* kNames[] = {"f.safetensors", "f.json", "f.pt", ".metadata", "f.bin"};
  size_of_files();
  const fs::path path = folder() / kNames[data[0] % 5];
  std::FILE* const out = std::fopen(path.c_str(), "wb");
  require(out != nullptr && std::fwrite(data + 1, 1, size - 1, out) == size - 1 && std::fclose(out) == 0, "cannot write");
  try {
    read(data[0], path, size);
  } catch (const Error&) {
  }
  return 0;
}
