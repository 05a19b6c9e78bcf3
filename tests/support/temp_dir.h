#pragma once
// A fresh folder for one test, removed with everything in it at the end.

#include <filesystem>
#include <string_view>

namespace kf::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  /// Writes a file below the folder, making the folders in between; returns its path.
  std::filesystem::path write(const std::filesystem::path& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace kf::test
