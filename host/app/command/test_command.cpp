// `kf-host test`: runs files of tests written in Lua.

#include <iostream>

#include "app/command/commands.h"
#include "app/line/arguments.h"
#include "app/script/script_runs.h"
#include "bindings/script/spec.h"
#include "builtins/builtins.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/scratch_folder.h"

namespace kf {
namespace {

struct TestArguments {
  std::vector<std::string> files;
  std::string filter;
  std::vector<std::string> script;
};

TestArguments parse(Arguments args) {
  TestArguments out;
  out.script = take_script_arguments(args);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--filter") {
      KF_CHECK(i + 1 < args.size(), Code::config, "--filter: a text must follow");
      out.filter = args[++i];
    } else {
      KF_CHECK(!args[i].starts_with('-'), Code::config, "test: no option '{}'; there are --filter TEXT and -- ARGS", args[i]);
      out.files.push_back(args[i]);
    }
  }
  KF_CHECK(!out.files.empty(), Code::config, "test: name a file of tests, as in `kf-host test model_spec.lua`");
  return out;
}

/// One file, in a runtime of its own. An error outside of its tests counts as a failure.
SpecReport run_file(const std::string& file, const TestArguments& arguments) {
  std::cout << file << std::endl;
  Registries registries = native_registries();
  const ScratchFolder scratch("kf-host-test", Code::other);  // for runs without a name: tests begin anew each time, and leave nothing
  ScriptRuns runs({file, {}, arguments.script, {}, false, scratch.path().string()}, registries);
  try {
    SpecReport report = run_spec(runs.script(), file, arguments.filter);
    if (report.passed + report.failed + report.skipped == 0 && arguments.filter.empty()) {
      std::cout << "  FAIL  the file has no test; write T.test(\"name\", function() ... end)\n";
      report.failed = 1;
    }
    return report;
  } catch (const Error& error) {
    std::cout << std::flush;
    std::cerr << "  FAIL  outside of the tests: " << error.what() << std::endl;
    return {0, 1, 0};
  }
}

}  // namespace

int test_command(const Arguments& args) {
  const TestArguments arguments = parse(args);
  SpecReport total;
  for (const std::string& file : arguments.files) {
    const SpecReport report = run_file(file, arguments);
    total.passed += report.passed;
    total.failed += report.failed;
    total.skipped += report.skipped;
  }
  std::cout << total.passed << " passed, " << total.failed << " failed";
  if (total.skipped > 0) {
    std::cout << ", " << total.skipped << " skipped";
  }
  std::cout << std::endl;
  return total.failed == 0 ? 0 : static_cast<int>(Code::script);
}

}  // namespace kf
