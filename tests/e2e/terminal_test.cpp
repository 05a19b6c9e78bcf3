// What the program writes on a terminal: no line is wider than it.

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/text.h"
#include "core/wrap.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using kf::columns_of;
using kf::test::TempDir;

namespace {

/// Runs the program in `folder` on a terminal of so many columns; everything that it wrote to it.
std::string on_terminal(const fs::path& folder, const std::vector<std::string>& args, int columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("TERM", "xterm", 1);
    ::setenv("OMP_NUM_THREADS", "1", 0);
    std::vector<char*> argv{const_cast<char*>(KF_HOST)};
    for (const std::string& arg : args) {
      argv.push_back(const_cast<char*>(arg.c_str()));
    }
    argv.push_back(nullptr);
    if (::chdir(folder.c_str()) == 0) {
      ::execv(KF_HOST, argv.data());
    }
    ::_exit(127);
  }
  std::string out;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    out.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  INFO(out);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return out;
}

/// The widest line that ever stood there: between newlines and carriage returns, escape sequences left out.
std::string widest(const std::string& text) {
  std::string best;
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && (text[i] < '@' || text[i] > '~')) {
        ++i;
      }
    } else if (text[i] == '\r' || text[i] == '\n') {
      line.clear();
    } else {
      line += text[i];
      best = columns_of(line) > columns_of(best) ? line : best;
    }
  }
  return best;
}

/// A job of 30 steps whose evaluations and saves put notes behind the rows.
void write_job(const TempDir& folder) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += "a line of text, number " + std::to_string(i) + "\n";
  }
  folder.write("text.txt", text);
  folder.write("job.toml", R"([run]
name = "a-run-with-a-name-of-some-length"
[model]
dim = 32
n_layers = 2
n_heads = 2
vocab_size = 257
max_seq_len = 32
[train]
batch_size = 4
seq_len = 32
max_steps = 30
mixed_precision = "fp32"
[scheduler]
warmup_steps = 2
[data]
dataset_path = "text.txt"
holdout = 0.2
[eval]
enabled = true
interval = 10
steps = 2
dataset_path = "text.txt"
[checkpoint]
interval = 10
[metrics]
log_interval = 5
)");
}

}  // namespace

TEST_CASE("terminal: the lines of a run fit it, wide or narrow", "[terminal]") {
  for (const int columns : {80, 60}) {
    CAPTURE(columns);
    const TempDir folder;
    write_job(folder);
    const std::string text = on_terminal(folder.path(), {"job.toml", "--data.holdout=0"}, columns);
    CAPTURE(widest(text));
    CHECK(columns_of(widest(text)) <= static_cast<std::size_t>(columns));
    for (const char* word : {"bits/byte)", "saved step_30", "training complete", "memory"}) {
      CHECK(text.find(word) != std::string::npos);
    }
  }
}

TEST_CASE("terminal: tables and curves of runs fit it, in colours unless NO_COLOR is set", "[terminal]") {
  const TempDir folder;
  for (const std::string name : {"a-run-with-a-name-of-some-length", "b"}) {
    folder.write(
        "runs/" + name + "/run.json",
        R"({"starts": [{"time": "2026-11-28T21:47:03Z", "host": "a machine with a long name", "processor": ")" + name +
            R"(", "step": 0, "end": "2026-11-28T22:47:03Z", "status": "failed", "steps": 3, "error": "a reason of many words"}]})");
    folder.write("runs/" + name + "/job.toml", "[optimizer]\nlr = 0." + std::to_string(name.size()) + "\n[train]\nmax_steps = 100000\n");
    std::string rows;
    for (int step = 1; step <= 300; ++step) {
      rows += kf::format("{\"step\": {}, \"loss\": {}, \"tokens_per_sec\": 22400.5}\n", step, 10.0 / step);
    }
    folder.write("runs/" + name + "/metrics.jsonl", rows + "{\"step\": 300, \"eval\": {\"loss\": 2.5}}\n");
  }
  const std::string a = "a-run-with-a-name-of-some-length";
  for (const int columns : {40, 80, 200}) {
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{"runs"}, {"plot", a, "b"}, {"plot", "b", "--log-y"}, {"compare", a, "b"}}) {
      CAPTURE(args, columns);
      const std::string text = on_terminal(folder.path(), args, columns);
      CAPTURE(text);
      CHECK(columns_of(widest(text)) <= static_cast<std::size_t>(columns));
      CHECK(text.find("\x1b[") != std::string::npos);
    }
  }
  CHECK(on_terminal(folder.path(), {"runs"}, 200).find("a reason of many words") != std::string::npos);
  ::setenv("NO_COLOR", "1", 1);
  const std::string plain = on_terminal(folder.path(), {"runs"}, 80) + on_terminal(folder.path(), {"plot", a, "b"}, 80);
  ::unsetenv("NO_COLOR");
  CHECK(plain.find("\x1b[") == std::string::npos);
}

TEST_CASE("terminal: help fits 80 columns", "[terminal]") {
  const TempDir folder;
  for (const char* command : {"", "train", "generate", "eval", "config", "data", "tokenizer", "test", "lua", "sweep", "registry", "runs",
                              "plot", "compare", "tail", "reproduce", "bundle"}) {
    CAPTURE(command);
    std::vector<std::string> args{"--help"};
    if (*command != '\0') {
      args.insert(args.begin(), command);
    }
    const std::string text = on_terminal(folder.path(), args, 80);
    CAPTURE(widest(text));
    CHECK(columns_of(widest(text)) <= 80);
  }
  for (const std::vector<std::string>& list : {std::vector<std::string>{"config", "keys"}, {"registry"}, {"registry", "optimizer"}}) {
    const std::string line = widest(on_terminal(folder.path(), list, 80));
    CAPTURE(line);
    CHECK(columns_of(line) <= 80);
  }
}
