// `kf-host lua`: the runtime of scripts as an interpreter.

#include <unistd.h>

#include <iostream>

#include "app/command/commands.h"
#include "app/line/arguments.h"
#include "app/line/line_editor.h"
#include "app/script/script_runs.h"
#include "bindings/script/prompt.h"
#include "bindings/script/spec.h"
#include "builtins/builtins.h"
#include "core/error.h"
#include "run/invocation.h"

namespace kf {
namespace {

struct LuaArguments {
  std::string file;
  std::vector<std::string> chunks;
  std::vector<std::string> script;
  bool prompt = false;
};

LuaArguments parse(Arguments args) {
  LuaArguments out;
  out.script = take_script_arguments(args);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "-i") {
      out.prompt = true;
    } else if (args[i] == "-e") {
      KF_CHECK(i + 1 < args.size(), Code::config, "-e: a chunk of Lua must follow");
      out.chunks.push_back(args[++i]);
    } else {
      KF_CHECK(!args[i].starts_with('-'), Code::config, "lua: no option '{}'; there are -e CHUNK, -i and -- ARGS", args[i]);
      KF_CHECK(out.file.empty(), Code::config, "lua: one file, got '{}' and '{}'", out.file, args[i]);
      out.file = args[i];
    }
  }
  out.prompt = out.prompt || (out.file.empty() && out.chunks.empty());
  return out;
}

/// Reads, runs and prints until the end of input.
void run_prompt(Script& script) {
  LineEditor editor(history_file("history"), [&](const std::string& line) { return complete_line(script, line); });
  if (isatty(STDIN_FILENO) == 1) {
    std::cout << "kf is loaded; Ctrl-D ends\n";
  }
  std::string pending;
  while (const auto line = editor.read(pending.empty() ? "> " : ">> ")) {
    pending += pending.empty() ? *line : "\n" + *line;
    const std::string verdict = evaluate_line(script, pending);
    if (verdict == "more") {
      continue;
    }
    pending.clear();
    if (verdict != "done") {
      std::cout << std::flush;
      std::cerr << verdict << std::endl;
    }
  }
}

}  // namespace

int lua_command(const Arguments& args) {
  const LuaArguments arguments = parse(args);
  Registries registries = native_registries();
  ScriptRuns runs({arguments.file.empty() ? "lua" : arguments.file, {}, arguments.script, {}, false}, registries);
  if (!arguments.file.empty()) {
    execute_file(runs.script(), arguments.file);
  }
  for (const std::string& chunk : arguments.chunks) {
    execute_text(runs.script(), chunk);
  }
  if (arguments.prompt) {
    run_prompt(runs.script());
  }
  return status_of_runs();
}

}  // namespace kf
