#include "run/invocation.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/text.h"

namespace kf {
namespace {

std::vector<std::string>& words_of_program() {
  static std::vector<std::string> words{"kf-host"};
  return words;
}

bool& stopped() {
  static bool value = false;
  return value;
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  std::string out = "'";
  for (const char c : word) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

}  // namespace

void set_invocation(std::vector<std::string> words) { words_of_program() = std::move(words); }

const std::vector<std::string>& invocation() { return words_of_program(); }

std::string shell_line(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  std::transform(words.begin(), words.end(), std::back_inserter(quoted), shell_word);
  return join(quoted, " ");
}

std::string command_again() {
  std::vector<std::string> words = invocation();
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const auto fresh = [](const std::string& word) { return word == "--run.fresh" || word.starts_with("--run.fresh="); };
  words.erase(std::remove_if(words.begin(), dashes, fresh), dashes);  // it would move aside what was saved
  return shell_line(words);
}

std::string watch_token() {
  const char* const token = std::getenv(kWatchVariable);
  return token != nullptr ? token : "";
}

void note_stopped_by_signal() { stopped() = true; }

int status_of_runs() { return stopped() ? kStoppedStatus : 0; }

}  // namespace kf
