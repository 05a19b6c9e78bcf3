// `kf-host attach` and `kf-host reload`: what is said to a run while it trains.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/command/commands.h"
#include "app/line/line_editor.h"
#include "attach/client.h"
#include "bindings/api/api.h"
#include "bindings/script/prompt.h"
#include "bindings/script/script.h"
#include "builtins/builtins.h"
#include "core/ascii.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf {
namespace {

using attach::Answer;
using attach::Client;
using attach::Frame;

/// What stands behind `ctx`.
std::vector<std::string> context_names() {
  std::vector<std::string> out;
  for (const lua::ApiRow& row : lua::api_rows()) {
    if (row.owner == "kf.HookContext") {
      out.emplace_back(row.name);
    }
  }
  return out;
}

/// Prints what came back; the exit status that it stands for.
int show(const Answer& answer) {
  std::cout << answer.output << std::flush;
  if (!answer.error.empty()) {
    std::cerr << answer.error << std::endl;
  }
  return answer.error.empty() ? 0 : answer.status;
}

/// One chunk, or why it cannot be one: that is seen here, without a step of the run.
int say(Client& client, Script& script, const std::string& chunk) {
  const std::string problem = chunk_problem(script, chunk);
  KF_CHECK(problem != "more", Code::script, "attach: the chunk is not finished: {}", chunk);
  KF_CHECK(problem.empty(), Code::script, "{}", problem);
  return show(client.ask(Frame::Kind::chunk, chunk));
}

/// What the words behind a '.' or ':' stand behind, and the word: "model.layers", "at" of "x = model.layers.at".
std::pair<std::string, std::string> path_and_word(const std::string& line) {
  const auto part_of_name = [](char c) { return is_alnum(c) || c == '_'; };
  std::size_t word = line.size();
  while (word > 0 && part_of_name(line[word - 1])) {
    --word;
  }
  std::size_t path = word;
  if (path > 0 && (line[path - 1] == '.' || line[path - 1] == ':')) {
    --path;
    while (path > 0 && (part_of_name(line[path - 1]) || line[path - 1] == '.')) {
      --path;
    }
    return {line.substr(path, word - 1 - path), line.substr(word)};
  }
  return {"", line.substr(word)};
}

/// The names that the run has at this moment. It answers between two steps: where the last answer took long, it is not asked.
class LiveNames {
 public:
  explicit LiveNames(Client& client) : client_(client) {}

  void add_to(std::vector<std::string>& words, const std::string& line) {
    constexpr std::chrono::seconds kMostWait(1);
    if (last_ > kMostWait) {
      return;
    }
    const auto [path, word] = path_and_word(line);
    std::istringstream names(ask(Frame::Kind::chunk, attach::kNamesOf + path).output);
    for (std::string name; names >> name;) {
      const bool hidden = name.front() == '_' && !word.starts_with('_');
      if (name.starts_with(word) && !hidden && std::find(words.begin(), words.end(), name) == words.end()) {
        words.push_back(name);
      }
    }
    std::sort(words.begin(), words.end());
  }
  Answer ask(Frame::Kind kind, const std::string& text) {
    const auto begin = std::chrono::steady_clock::now();
    Answer answer = client_.ask(kind, text);
    last_ = std::chrono::steady_clock::now() - begin;
    return answer;
  }

 private:
  Client& client_;
  std::chrono::steady_clock::duration last_{};
};

/// Reads, says and prints until the end of input, or of the run.
void run_prompt(Client& client, Script& script, const std::string& run) {
  const std::vector<std::string> context = context_names();
  LiveNames live(client);
  LineEditor editor(history_file("attach_history"), [&](const std::string& line) {
    std::vector<std::string> words = complete_line(script, line, context);
    live.add_to(words, line);
    return words;
  });
  if (isatty(STDIN_FILENO) == 1) {
    std::cout << "attached to " << run << "; chunks run behind its next step, Ctrl-D ends\n";
  }
  std::string pending;
  while (const auto line = editor.read(pending.empty() ? "> " : ">> ")) {
    pending += pending.empty() ? *line : "\n" + *line;
    const std::string problem = chunk_problem(script, pending);
    if (problem == "more") {
      continue;
    }
    const std::string chunk = std::exchange(pending, "");
    if (!problem.empty()) {
      std::cerr << problem << std::endl;
    } else if (!chunk.empty()) {
      show(live.ask(Frame::Kind::chunk, chunk));
    }
  }
}

struct AttachArguments {
  std::string run;
  std::vector<std::string> chunks;
  double patience = 0;  // seconds
};

double seconds_of(const std::string& word) {
  char* end = nullptr;
  const double seconds = std::strtod(word.c_str(), &end);
  KF_CHECK(!word.empty() && *end == '\0' && seconds >= 0, Code::config, "--wait: seconds from 0 on must follow, got '{}'", word);
  return seconds;
}

AttachArguments parse(const Arguments& args, const char* command, bool says) {
  AttachArguments out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (says && args[i] == "-e") {
      KF_CHECK(i + 1 < args.size(), Code::config, "-e: a chunk of Lua must follow");
      out.chunks.push_back(args[++i]);
    } else if (args[i] == "--wait") {
      out.patience = seconds_of(i + 1 < args.size() ? args[i + 1] : "");
      ++i;
    } else {
      KF_CHECK(!args[i].starts_with('-'), Code::config, "{}: no option '{}'; there {}", command, args[i],
               says ? "are -e CHUNK and --wait SECONDS" : "is --wait SECONDS");
      KF_CHECK(out.run.empty(), Code::config, "{}: one run, got '{}' and '{}'", command, out.run, args[i]);
      out.run = args[i];
    }
  }
  KF_CHECK(!out.run.empty(), Code::config, "{}: the folder of a run must follow; `kf-host {} --help` tells more", command, command);
  if (const fs::path below = fs::path("runs") / out.run; !path_exists(out.run) && path_exists(below)) {
    out.run = below.string();  // by its name, as other commands take it
  }
  return out;
}

}  // namespace

int attach_command(const Arguments& args) {
  const AttachArguments arguments = parse(args, "attach", true);
  Client client(arguments.run, arguments.patience);
  Registries registries = native_registries();
  Script script(registries, {}, {});
  if (arguments.chunks.empty()) {
    run_prompt(client, script, arguments.run);
  }
  for (const std::string& chunk : arguments.chunks) {
    if (const int status = say(client, script, chunk); status != 0) {
      return status;
    }
  }
  return 0;
}

int reload_command(const Arguments& args) {
  const AttachArguments arguments = parse(args, "reload", false);
  Client client(arguments.run, arguments.patience);
  return show(client.ask(Frame::Kind::reload, ""));
}

}  // namespace kf
