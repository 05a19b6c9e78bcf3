// parity FOLDER...: runs the cases of golden folders and prints one line a case.

#include <ATen/Parallel.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "core/error.h"
#include "parity/areas.h"
#include "parity/job.h"

namespace kf::parity {
namespace {

struct Totals {
  int passed = 0, failed = 0, skipped = 0;
};

void run_area(const Case& test, Comparison& out, const Settings& settings) {
  if (test.area == "model") {
    run_model(test, out);
  } else if (test.area == "hf") {
    run_huggingface(test, out);
  } else if (test.area == "peft") {
    run_peft(test, out);
  } else if (test.area == "moe") {
    run_moe(test, out);
  } else if (test.area == "init") {
    run_init(test, out);
  } else if (test.area == "optimizers") {
    run_optimizers(test, out);
  } else if (test.area == "schedulers") {
    run_schedulers(test, out);
  } else if (test.area == "data") {
    run_data(test, out);
  } else if (test.area == "metrics") {
    run_metrics(test, out, settings);
  } else if (test.area == "config") {
    run_config(test, out, settings);
  } else if (test.area == "training") {
    run_training(test, out, settings);
  } else {
    fail(Code::other, "the runner knows no area '{}'", test.area);
  }
}

std::string one_line(std::string message) {
  for (std::size_t at; (at = message.find('\n')) != std::string::npos;) {
    message.replace(at, 1, " | ");
  }
  return message;
}

void report(const Case& test, std::string_view verdict, const std::string& detail) {
  std::cout << test.area << '/' << test.name << "  " << verdict << "  " << one_line(detail) << std::endl;
}

void run_case(const Case& test, const Settings& settings, Totals& totals) {
  if (const auto reason = test.skipped()) {
    ++totals.skipped;
    report(test, "skipped", *reason);
    return;
  }
  Comparison out(test);
  std::string thrown;
  try {
    run_area(test, out, settings);
  } catch (const std::exception& e) {
    thrown = e.what();
  }
  const bool ok = thrown.empty() && out.ok();
  ++(ok ? totals.passed : totals.failed);
  report(test, ok ? "ok" : "FAIL", thrown.empty() ? out.summary() : thrown);
}

void run_folder(const fs::path& folder, const Settings& settings, Totals& totals) {
  std::vector<Case> cases;
  try {
    cases = load_cases(folder);
  } catch (const std::exception& e) {  // a folder that cannot be read is a failure, the others still run
    ++totals.failed;
    std::cout << folder.string() << "  FAIL  " << one_line(e.what()) << std::endl;
    return;
  }
  for (const Case& test : cases) {
    run_case(test, settings, totals);
  }
}

int run(int argc, char** argv) {
  const bool plain = argc > 1 && std::string(argv[1]) == "--plain";
  if (plain) {
    use_plain_twins();
    --argc;
    ++argv;
  }
  if (argc < 2) {
    std::cerr << "usage: parity [--plain] FOLDER...   (--plain: without fused pieces; folders with a cases.json, and folders of Hugging "
                 "Face models; KF_HOST names the program that "
                 "training cases run)\n";
    return 2;
  }
  at::set_num_threads(1);  // the models are tiny
  const char* host = std::getenv("KF_HOST");
  const Settings settings{host ? fs::path(host) : fs::canonical("/proc/self/exe").parent_path().parent_path() / "kf-host",
                          fs::path(KF_SOURCE_DIR) / "configs"};
  Totals totals;
  for (int i = 1; i < argc; ++i) {
    run_folder(argv[i], settings, totals);
  }
  std::cout << totals.passed << " passed, " << totals.failed << " failed, " << totals.skipped << " skipped" << std::endl;
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kf::parity

int main(int argc, char** argv) {
  try {
    return kf::parity::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "parity: " << e.what() << '\n';
    return 1;
  }
}
