#include "core/input_file.h"

namespace kf {

std::string read_input(const fs::path& path, Code code) {
  try {
    return read_file(path);
  } catch (const Error& error) {
    throw Error(code, error.what());
  }
}

}  // namespace kf
