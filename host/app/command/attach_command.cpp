// `kf-host attach` and `kf-host reload`: what is said to a run while it trains.

#include <unistd.h>

#include <cstdlib>
#include <iostream>
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
#include "core/error.h"

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

/// Reads, says and prints until the end of input, or of the run.
void run_prompt(Client& client, Script& script, const std::string& run) {
  const std::vector<std::string> context = context_names();
  LineEditor editor(history_file("attach_history"), [&](const std::string& line) { return complete_line(script, line, context); });
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
      show(client.ask(Frame::Kind::chunk, chunk));
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
