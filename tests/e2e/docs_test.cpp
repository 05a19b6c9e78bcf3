// Every command that the user pages show is run here, page by page and in order, with the real program.

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/fs.h"
#include "e2e/toy.h"

namespace fs = std::filesystem;
using kf::test::Finished;

namespace {

/// The ```lua blocks of a page.
std::vector<std::string> scripts_of(const fs::path& page) {
  std::ifstream in(page);
  REQUIRE(in);
  std::vector<std::string> scripts;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = line == "```lua";
      if (inside) {
        scripts.emplace_back();
      }
    } else if (inside) {
      scripts.back() += line + '\n';
    }
  }
  return scripts;
}

/// A folder that looks like the project's, where runs may be left.
class Project {
 public:
  Project() {
    for (const char* part : {"docs", "examples", "configs", "lua", "README.md"}) {
      fs::create_symlink(fs::path(KF_SOURCE_DIR) / part, dir_ / part);
    }
  }
  Finished shell(const std::string& command) const {
    kf::test::Options options;
    options.cwd = dir_.path();
    const std::string program = "kf-host() { '" + std::string(KF_HOST) + "' \"$@\"; }; ";
    return kf::test::run({"bash", "-c", program + command}, options);
  }

  const fs::path& path() const { return dir_.path(); }

 private:
  kf::test::TempDir dir_;
};

}  // namespace

TEST_CASE("docs: every block of Lua is a script that runs", "[docs]") {
  const Project project;
  fs::create_directories(project.path() / "blocks");  // beside toy, as the folders of examples are
  fs::create_symlink(fs::path(KF_SOURCE_DIR) / "examples/toy", project.path() / "toy");
  std::vector<fs::path> pages;
  for (const char* folder : {".", "docs"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(KF_SOURCE_DIR) / folder)) {
      if (entry.path().extension() == ".md") {
        pages.push_back(entry.path());
      }
    }
  }
  int number = 0;
  for (const fs::path& page : pages) {
    for (const std::string& block : scripts_of(page)) {
      const std::string file = "blocks/b" + std::to_string(++number) + ".lua";
      const bool own = block.find("require(\"kf\")") != std::string::npos;
      std::ofstream(project.path() / file) << (own ? "" : "local kf = require(\"kf\"); ") << block;
      const bool sweep = block.find("return kf.sweep") != std::string::npos;
      const bool job = block.find("\nreturn ") != std::string::npos;
      CAPTURE(page, block);
      const Finished done = project.shell(sweep ? "kf-host config check " + file
                                          : job ? "kf-host " + file + " --train.max_steps=2"
                                                : "kf-host lua " + file);
      INFO(done.out << done.err);
      CHECK(done.status == 0);
    }
  }
  CHECK(number >= 8);
}

namespace {

/// In the order of reading.
const std::vector<std::string> kPages{"README.md",          "docs/running.md",   "docs/looking.md",     "docs/steering.md",
                                      "docs/trackers.md",   "docs/profiling.md", "docs/parallelism.md", "docs/data.md",
                                      "docs/evaluation.md", "docs/scripting.md", "docs/sweeps.md",      "docs/adapters.md",
                                      "docs/checkpoints.md"};

/// The commands of a page that are kf-host's; the others need a shell's settings.
std::vector<std::string> commands_of_page(const std::string& page) {
  std::vector<std::string> commands = kf::test::commands_of(fs::path(KF_SOURCE_DIR) / page);
  std::erase_if(commands, [](const std::string& line) { return !line.starts_with("kf-host "); });
  CHECK(!commands.empty());
  return commands;
}

void run_command(const Project& project, const std::string& page, const std::string& command) {
  CAPTURE(page, command);
  const Finished done = project.shell(command);
  INFO(done.out << done.err);
  CHECK(done.status == 0);
}

/// What commands have made: files and folders, and the runs by their names.
std::set<std::string> made_in(const Project& project) {
  std::set<std::string> out;
  for (const char* folder : {".", "runs"}) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(project.path() / folder, none)) {
      if (!entry.is_symlink(none) && entry.path().filename() != "runs") {
        out.insert((fs::path(folder) / entry.path().filename()).lexically_normal().string());
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("docs: every command of a user page works where nothing else was run, and behind those of other pages that make the same",
          "[docs]") {
  struct Made {
    std::string page, command;
    std::set<std::string> names;
  };
  std::vector<Made> all;
  std::map<std::string, std::set<std::string>> pages_by_name;
  for (const std::string& page : kPages) {
    const Project alone;
    std::set<std::string> before;
    for (const std::string& command : commands_of_page(page)) {
      run_command(alone, page, command);
      std::set<std::string> now = made_in(alone), made;
      std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::inserter(made, made.end()));
      for (const std::string& name : made) {
        pages_by_name[name].insert(page);
      }
      all.push_back({page, command, std::move(made)});
      before = std::move(now);
    }
  }
  std::set<std::string> shared;
  for (const auto& [name, pages] : pages_by_name) {
    if (pages.size() > 1) {
      shared.insert(name);
    }
  }
  const Project project;
  for (const Made& one : all) {  // those that make what another page makes, or go on with it
    const bool meets = std::any_of(shared.begin(), shared.end(), [&](const std::string& name) {
      return one.names.contains(name) || one.command.find(name) != std::string::npos;
    });
    if (meets) {
      run_command(project, one.page, one.command);
    }
  }
  CHECK(shared.contains("runs/toy"));  // of README.md, which docs/evaluation.md goes on with
}

TEST_CASE("docs: every page that README links to is there, and every link of the pages", "[docs]") {
  const fs::path root = KF_SOURCE_DIR;
  std::vector<fs::path> pages{root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "docs")) {
    pages.push_back(entry.path());
  }
  for (const fs::path& page : pages) {
    std::ifstream in(page);
    REQUIRE(in);
    std::stringstream text;
    text << in.rdbuf();
    const std::string all = text.str();
    const std::regex link(R"(\]\(([^)#: ]+\.md)[^)]*\))");
    for (auto at = std::sregex_iterator(all.begin(), all.end(), link); at != std::sregex_iterator(); ++at) {
      CAPTURE(page, at->str(1));
      CHECK(fs::exists(page.parent_path() / at->str(1)));
    }
  }
  std::ifstream in(root / "README.md");
  std::stringstream readme;
  readme << in.rdbuf();
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "docs")) {
    CAPTURE(entry.path());
    CHECK(readme.str().find("(docs/" + entry.path().filename().string() + ")") != std::string::npos);
  }
}

TEST_CASE("docs: the page of licences names every library that the program and its modules are linked to", "[docs]") {
  std::ifstream in(fs::path(KF_SOURCE_DIR) / "docs/licences.md");
  std::stringstream text;
  text << in.rdbuf();
  const std::string page = text.str();
  const fs::path build = fs::path(KF_HOST).parent_path();
  std::size_t seen = 0;
  for (const char* file : {"kf-host", "libkf-host.so", "libkf-arrow.so", "libkf-cuda.so"}) {
    if (!fs::exists(build / file)) {
      continue;
    }
    const Finished read =
        kf::test::run({"bash", "-c", "readelf -d '" + (build / file).string() + "' | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p'"});
    std::istringstream names(read.out);
    for (std::string name; names >> name;) {
      CAPTURE(file, name);
      CHECK(page.find("`" + name + "`") != std::string::npos);
      ++seen;
    }
  }
  CHECK(seen > 10);
  // Headers of which code is compiled in, as CMake looks for them.
  std::ifstream deps(fs::path(KF_SOURCE_DIR) / "cmake/deps.cmake");
  for (std::string line; std::getline(deps, line);) {
    for (const char* header : {"spdlog/spdlog.h", "toml++/toml.h", "nlohmann/json.hpp", "catch2/catch.hpp", "xxhash.h"}) {
      if (line.find(header) != std::string::npos) {
        CHECK(page.find(header) != std::string::npos);
      }
    }
  }
}

namespace {

/// "--nproc 2 " where an example says at its top that it is started so.
std::string processes_of(const fs::path& example) {
  std::ifstream file(example);
  for (std::string line; std::getline(file, line) && (line.starts_with("#") || line.starts_with("--"));) {
    if (const std::size_t at = line.find("kf-host --nproc "); at != std::string::npos) {
      return "--nproc " + std::to_string(std::stoi(line.substr(at + std::string("kf-host --nproc ").size()))) + " ";
    }
  }
  return "";
}

}  // namespace

TEST_CASE("examples: every script runs as it stands, and every job for some steps", "[examples]") {
  const Project project;
  std::set<std::string> run;  // by the test of pages, as they stand
  for (const std::string& page : kPages) {
    for (const std::string& command : commands_of_page(page)) {
      run.insert(command);
    }
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(KF_SOURCE_DIR) / "examples")) {
    const std::string extension = entry.path().extension().string();
    const std::string name = fs::relative(entry.path(), KF_SOURCE_DIR).string();
    // The first is `make demo`; the second needs a server, and data_test.cpp runs it with one.
    const bool elsewhere = name.find("first-run") != std::string::npos || name.find("hub-stand-in") != std::string::npos;
    if ((extension == ".lua" || extension == ".toml") && !elsewhere) {
      CAPTURE(name);
      const bool planned = name.starts_with("examples/plan/");  // jobs for many machines
      const bool divided = planned && kf::read_file(entry.path()).find("dp_shard = 1\n") == std::string::npos;
      const std::string command =
          planned ? "kf-host plan " + name + (divided ? " --world 1024" : "") : "kf-host " + processes_of(entry.path()) + name;
      if (run.contains(command)) {
        continue;
      }
      // Jobs, which show their models after some hundred steps, end early here; what scripts do hangs on their steps.
      const Finished done = project.shell(command + (extension == ".toml" && !planned ? " --train.max_steps=20" : ""));
      INFO(done.out << done.err);
      CHECK(done.status == 0);
    }
  }
}
