#include "support/temp_dir.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace kf::test {

namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "kf-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a temporary folder " + name);
  }
  path_ = fs::canonical(name);
}

TempDir::~TempDir() {
  std::error_code ignored;  // a left-over folder is no reason to fail a test that passed
  fs::remove_all(path_, ignored);
}

fs::path TempDir::write(const fs::path& name, std::string_view content) const {
  fs::path file = path_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::binary);
  stream << content;
  stream.close();
  if (!stream) {
    throw std::runtime_error("cannot write " + file.string());
  }
  return file;
}

}  // namespace kf::test
