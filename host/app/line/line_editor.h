#pragma once
// Lines typed at a terminal: with history and completion where the build found libedit, plain otherwise.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"

namespace kf {

/// Where the user's lines are kept, by the name of a prompt: below XDG_STATE_HOME, else ~/.local/state.
fs::path history_file(const std::string& name);

class LineEditor {
 public:
  /// `complete` gives the words that may replace the last word of a line. History is read from `history` and written at the end.
  LineEditor(fs::path history, std::function<std::vector<std::string>(const std::string&)> complete);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// One line without its end; nothing at the end of input.
  std::optional<std::string> read(const std::string& prompt);

 private:
  fs::path history_;
  std::function<std::vector<std::string>(const std::string&)> complete_;
  bool terminal_ = false;
};

}  // namespace kf
