#pragma once
// Where the keys of a script's tables stand in its text, so that a problem with a recipe's value names its line as one in a TOML file does.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::lua {

/// A scan of one script: the keys of its table constructors (`{ optimizer = { lr = 1 } }`) and its assignments (`job.optimizer.lr = 1`).
/// It reads the text and runs nothing: a table that the script computes has no place here.
class SourceMap {
 public:
  struct Place {
    int line = 0;
    int column = 0;
  };
  struct Entry {
    std::vector<std::string> path;  // {"optimizer", "lr"}; list items are "1", "2", ...
    Place key;
    Place value;
    int root_line = 0;  // where the outermost table, or the assignment, starts
  };

  explicit SourceMap(std::string_view text);

  /// The key `path` of the table constructor (or assignment) nearest to `line`.
  const Entry* find(const std::vector<std::string>& path, int line) const;
  /// The line of the last `return` outside of functions, 0 if there is none.
  int return_line() const { return return_line_; }
  /// The text of line `number`, from 1; "" past the end.
  std::string line(int number) const;

 private:
  std::vector<std::string> lines_;
  std::vector<Entry> entries_;
  int return_line_ = 0;
};

/// What of a script's text has a meaning: its tokens, without comments and blanks. What functions do is kept apart from what stands outside
/// of them, where settings are, which are compared key by key anyway.
struct CodeText {
  std::string functions;
  std::string rest;
};
CodeText code_text(std::string_view text);

}  // namespace kf::lua
