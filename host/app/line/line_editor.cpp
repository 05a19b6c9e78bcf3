#include "app/line/line_editor.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <iostream>

#ifdef KF_WITH_LIBEDIT
#include <editline/readline.h>

#include "core/ascii.h"
#endif

namespace kf {

#ifdef KF_WITH_LIBEDIT
namespace {

// libedit calls back without an argument of ours: the editor that is reading is known here.
std::function<std::vector<std::string>(const std::string&)>* completer = nullptr;

/// readline's protocol: null, or an array of malloc'ed strings, the common beginning first.
char** matches(const char* word, int start, int /*end*/) {
  rl_attempted_completion_over = 1;  // no file names
  const std::string line(rl_line_buffer, static_cast<std::size_t>(start));
  std::vector<std::string> words = (*completer)(line + word);
  if (words.empty()) {
    return nullptr;
  }
  // What the library takes for the word may reach back over dots; what comes back replaces all of it.
  std::size_t name = std::strlen(word);
  while (name > 0 && (is_alnum(word[name - 1]) || word[name - 1] == '_')) {
    --name;
  }
  for (std::string& one : words) {
    one.insert(0, word, name);
  }
  std::string common = words[0];
  for (const std::string& other : words) {
    std::size_t same = 0;
    while (same < common.size() && same < other.size() && common[same] == other[same]) {
      ++same;
    }
    common.resize(same);
  }
  auto** list = static_cast<char**>(std::calloc(words.size() + 2, sizeof(char*)));
  list[0] = strdup(common.c_str());
  for (std::size_t i = 0; i < words.size(); ++i) {
    list[i + 1] = strdup(words[i].c_str());
  }
  return list;
}

char word_breaks[] = " \t\n\"\\'`@$><=;|&{}(),.:+-*/#[]~^%";

}  // namespace
#endif

fs::path history_file(const std::string& name) {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = state ? fs::path(state) : fs::path(home ? home : ".") / ".local" / "state";
  return base / "kf-host" / name;
}

LineEditor::LineEditor(fs::path history, std::function<std::vector<std::string>(const std::string&)> complete)
    : history_(std::move(history)), complete_(std::move(complete)), terminal_(isatty(STDIN_FILENO) == 1) {
#ifdef KF_WITH_LIBEDIT
  if (terminal_) {
    completer = &complete_;
    rl_initialize();
    rl_completer_word_break_characters = word_breaks;
    rl_basic_word_break_characters = word_breaks;  // libedit looks at these alone
    rl_attempted_completion_function = matches;
    read_history(history_.c_str());  // none the first time
  }
#endif
}

LineEditor::~LineEditor() {
#ifdef KF_WITH_LIBEDIT
  if (terminal_) {
    std::error_code ignored;  // a home that cannot be written has no history
    fs::create_directories(history_.parent_path(), ignored);
    write_history(history_.c_str());
    completer = nullptr;
  }
#endif
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
#ifdef KF_WITH_LIBEDIT
  if (terminal_) {
    char* typed = readline(prompt.c_str());
    if (typed == nullptr) {
      return std::nullopt;
    }
    std::string line = typed;
    std::free(typed);
    if (!line.empty()) {
      add_history(line.c_str());
    }
    return line;
  }
#endif
  if (terminal_) {
    std::cout << prompt << std::flush;
  }
  std::string line;
  return std::getline(std::cin, line) ? std::optional<std::string>(line) : std::nullopt;
}

}  // namespace kf
