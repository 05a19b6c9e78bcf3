// Any bytes as a pickle, or as a file of torch.save: no crash, no hang, only our own errors, and what is read is a tree whose texts and
// numbers lie inside of the file. The first byte chooses.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "checkpoint/pickle/saved_file.h"
#include "core/error.h"
#include "fuzz/fuzz.h"

namespace {

using namespace kf;
using fuzz::require;
using namespace kf::pickle;

fs::path folder() {
  static const fs::path made = fuzz::new_folder();
  return made;
}

Limits small_limits() {
  Limits out;
  out.memory = 1 << 26;
  out.tree = 1 << 16;
  return out;
}

/// Looks at everything, as deep as it goes: `check_tree` promises that this ends.
std::size_t walk(const Value& value, std::size_t depth) {
  require(depth <= Limits().depth, "deeper than the limit");
  std::size_t sum = value.text().size();
  for (const char byte : value.text()) {
    sum += static_cast<unsigned char>(byte);
  }
  if (value.is(Kind::dict)) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      sum += walk(value.key(i), depth + 1) + walk(value.value(i), depth + 1);
    }
  } else if (value.is(Kind::reference)) {
    sum += walk(value.target(), depth + 1);
  } else {
    for (std::size_t i = 0; i < value.size(); ++i) {
      sum += walk(value.item(i), depth + 1);
    }
    if (const auto state = value.state()) {
      sum += walk(*state, depth + 1);
    }
  }
  return sum;
}

void read_tensors(const SavedFile& file, const Value& value, std::size_t depth) {
  if (depth > 3) {
    return;
  }
  if (const auto tensor = file.tensor(value)) {
    std::size_t sum = 0;
    for (const std::byte byte : file.storage(*tensor, true)) {
      sum += static_cast<std::size_t>(byte);
    }
    require(sum < std::size_t{1} << 60, "unlikely");
    return;
  }
  for (std::size_t i = 0; value.is(Kind::dict) && i < value.size(); ++i) {
    try {
      read_tensors(file, value.value(i), depth + 1);
    } catch (const Error&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const std::span<const std::byte> content(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  try {
    if (data[0] % 2 == 0) {
      const Unpickled read = unpickle(content, {"fuzz"}, small_limits());
      require(read.length <= content.size(), "longer than the file");
      walk(read.value(), 0);
      return 0;
    }
    const fs::path path = folder() / "f.pt";
    std::FILE* const out = std::fopen(path.c_str(), "wb");
    require(out != nullptr && std::fwrite(content.data(), 1, content.size(), out) == content.size() && std::fclose(out) == 0,
            "cannot write");
    const SavedFile file(path);
    read_tensors(file, file.root(), 0);
  } catch (const Error&) {
  }
  return 0;
}
