#pragma once
// What a script prints is in the run's log file, too.

#include <lua.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace kf::lua {

/// While one exists, what Lua writes to standard output is collected here instead. One at a time.
class TakenOutput {
 public:
  /// Keeps `most` bytes; what comes behind them is left out, and a last line says so.
  explicit TakenOutput(std::size_t most);
  ~TakenOutput();
  TakenOutput(const TakenOutput&) = delete;
  TakenOutput& operator=(const TakenOutput&) = delete;

  void add(std::string_view text);
  /// All that came.
  std::string text() const;

 private:
  std::size_t most_;
  std::string text_;
  std::size_t left_out_ = 0;
};

/// print, io.write and io.stdout:write as they are, but what they write to standard output is also kept for log.txt (core/log_keep.h).
void keep_output(lua_State* L);

}  // namespace kf::lua
