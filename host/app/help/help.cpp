#include "app/help/help.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "app/help/usage.h"
#include "config/show/emit.h"
#include "core/wrap.h"

namespace kf {
namespace {

using Words = std::vector<std::string>;

struct Page {
  std::string_view command;
  std::string_view part;  // the word behind it that has a page of its own; "" for the command's
  const char* const& text;
  bool has_commands = false;  // so that `kf-host COMMAND help` asks for it, too
};
/// A part stands before its command.
constexpr Page kPages[] = {
    {"train", "", usage::kTrain},
    {"generate", "", usage::kGenerate},
    {"eval", "", usage::kEval},
    {"config", "", usage::kConfig, true},
    {"plan", "", usage::kPlan},
    {"profile", "", usage::kProfile},
    {"new", "", usage::kNew},
    {"doctor", "", usage::kDoctor},
    {"data", "info", usage::kDataInfo},
    {"data", "cache", usage::kDataCache},
    {"data", "", usage::kData, true},
    {"registry", "", usage::kRegistry},
    {"test", "", usage::kTest},
    {"lua", "", usage::kLua},
    {"sweep", "", usage::kSweep, true},
    {"export", "", usage::kExport, true},
    {"adapter", "", usage::kAdapter, true},
    {"checkpoint", "", usage::kCheckpoint, true},
    {"replay", "", usage::kReplay},
    {"attach", "", usage::kAttach},
    {"reload", "", usage::kReload},
    {"runs", "", usage::kRuns},
    {"plot", "", usage::kPlot},
    {"compare", "", usage::kCompare},
    {"tail", "", usage::kTail},
    {"reproduce", "", usage::kReproduce},
    {"bundle", "", usage::kBundle},
    {"report", "", usage::kReport},
    {"serve", "", usage::kServe},
    {"tokenizer", "", usage::kTokenizer, true},
    {"completion", "", usage::kCompletion},
};

/// Options whose value is any text: "--help" behind them is what is meant.
constexpr std::string_view kTextOptions[] = {"--prompt", "--system", "--stop", "--delimiter", "--filter", "-e"};

bool is_help(const std::string& word) { return word == "--help" || word == "-h"; }

bool asks(const Words& words) {
  const auto end = std::find(words.begin(), words.end(), "--");  // what follows is for a script
  for (auto word = words.begin(); word != end; ++word) {
    const bool value =
        word != words.begin() && std::find(std::begin(kTextOptions), std::end(kTextOptions), *(word - 1)) != std::end(kTextOptions);
    if (is_help(*word) && !value) {
      return true;
    }
  }
  return false;
}

/// `kf-host job.toml --help` is about training.
Words with_command(Words words) {
  if (words[0].ends_with(".toml") || words[0].starts_with("-")) {
    words.insert(words.begin(), "train");
  }
  return words;
}

bool names_script(const std::string& word) { return word.ends_with(".lua"); }

}  // namespace

std::vector<std::string> command_names() {
  std::vector<std::string> out;
  for (const Page& page : kPages) {
    if (page.part.empty()) {
      out.emplace_back(page.command);
    }
  }
  return out;
}

std::string command_page(const std::string& command) {
  for (const Page& page : kPages) {
    if (page.part.empty() && page.command == command) {
      return folded(page.text);
    }
  }
  return "";
}

std::string help_asked(const Words& args) {
  if (args.empty()) {
    return "";
  }
  if (args[0] == "help" && args.size() > 1) {  // kf-host help train
    return help_asked({args[1], "--help"});
  }
  if (is_help(args[0]) || args[0] == "help") {
    return kHelp;
  }
  const Words words = with_command(args);
  const std::string part = words.size() > 1 ? words[1] : "";
  const auto page = std::find_if(std::begin(kPages), std::end(kPages), [&](const Page& candidate) {
    return candidate.command == words[0] && (candidate.part.empty() || candidate.part == part);
  });
  if (page == std::end(kPages) || !(asks(words) || (page->has_commands && part == "help"))) {
    return "";
  }
  if (page->command != "train") {
    return folded(page->text);
  }
  return std::any_of(words.begin(), words.end(), names_script) ? "" : folded(page->text) + config::sections_text();
}

}  // namespace kf
