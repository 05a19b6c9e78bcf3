// Runs the fuzz entry over every file of the folders given: the corpus as an ordinary test, without a fuzzer.

#include <cstdint>
#include <cstdio>

#include "core/fs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const kf::fs::path& file : kf::glob(argv[i], "**/*")) {
      const std::string text = kf::read_file(file);
      std::fprintf(stderr, "%s\n", file.c_str());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      ++count;
    }
  }
  std::printf("%zu inputs replayed\n", count);
  return count == 0 ? 1 : 0;
}
