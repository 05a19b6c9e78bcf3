#pragma once
// A trace as Chrome, Perfetto and others read it: an array of JSON objects, one a line. The format allows the array to be open at its end,
// so the file of a process that was killed can be read, too.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fs.h"
#include "core/held_file.h"

namespace kf {

class TraceFile {
 public:
  /// Makes the file, and the folder for it. `process`: the rank, by which traces of several can be read as one. Throws Code::other.
  TraceFile(const fs::path& path, std::int64_t process);
  /// Without `close` the array stays open, and what waits is lost.
  ~TraceFile() = default;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const fs::path& path() const { return path_; }
  void name_process(std::string_view name);
  void name_thread(std::int64_t thread, std::string_view name);
  /// Times in nanoseconds since the beginning that all ranks agree on. `arguments` is JSON, an object's inside, or empty.
  void range(std::int64_t thread, std::string_view name, std::string_view category, std::int64_t begin, std::int64_t end,
             std::string_view arguments = {});
  using Numbers = std::vector<std::pair<std::string, std::int64_t>>;
  void counter(std::string_view name, std::int64_t time, const Numbers& values);
  /// Hands what was told so far to the system, whole lines. Throws Code::other where the disk does not take it.
  void flush();
  /// Ends the array; the last call. Throws likewise.
  void close();

 private:
  void write(std::string_view object);

  fs::path path_;
  HeldFile file_;
  std::int64_t process_;
  std::string waiting_;
  bool first_ = true;
};

}  // namespace kf
