#include "app/doctor/doctor.h"

#include <algorithm>
#include <cstdio>

#include "app/doctor/looks.h"
#include "app/help/usage.h"
#include "app/help/version.h"
#include "config/tree/json.h"
#include "config/tree/make.h"
#include "core/text.h"
#include "core/wrap.h"

namespace kf {
namespace {

constexpr std::size_t kNames = 15;  // columns

const char* word_of(Finding::State state) {
  switch (state) {
    case Finding::State::fine: return "fine";
    case Finding::State::poor: return "poor";
    case Finding::State::bad: break;
  }
  return "bad";
}

Findings look(const fs::path& folder, const Installation& installation) {
  return {look_at_processor(),        look_at_threads(),
          look_at_memory(),           look_at_torch(installation),
          look_at_gpus(installation), look_at_tables(installation),
          look_at_disk(folder),       look_at_temporary(),
          look_at_shared_memory(),    look_at_limits(),
          look_at_launcher()};
}

bool well(const Findings& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& one) { return one.state == Finding::State::bad; });
}

std::string text_of(const Findings& findings) {
  std::string out = version_text() + '\n';
  for (const Finding& one : findings) {
    const std::string mark = one.state == Finding::State::fine ? "  " : one.state == Finding::State::poor ? "! " : "X ";
    std::string name = one.name;
    name.resize(std::max(kNames, name.size() + 1), ' ');
    out += mark + name + one.says + '\n';
    if (!one.remedy.empty()) {
      out += std::string(kNames + 2, ' ') + "-> " + one.remedy + '\n';
    }
  }
  return out + (well(findings) ? "\njobs can train here\n" : "\njobs cannot train here: see what is marked X\n");
}

std::string json_of(const Findings& findings) {
  config::Array all;
  for (const Finding& one : findings) {
    all.push_back(config::make_table({{"name", config::Node(one.name)},
                                      {"state", config::make_text(word_of(one.state))},
                                      {"says", config::Node(one.says)},
                                      {"remedy", config::Node(one.remedy)}}));
  }
  const config::Node tree = config::make_table({{"well", config::Node(well(findings))}, {"findings", config::Node(std::move(all))}});
  return config::to_json(tree, config::JsonStyle::plain, 2) + '\n';
}

}  // namespace

int doctor(const std::vector<std::string>& words, const Installation& installation) {
  bool json = false;
  std::vector<std::string> folders;
  for (const std::string& word : words) {
    if (word == "--json") {
      json = true;
    } else {
      folders.push_back(word);
    }
  }
  if (folders.size() > 1 || (!folders.empty() && folders[0].starts_with("-"))) {
    std::fputs(folded(usage::kDoctor).c_str(), stderr);
    return 2;
  }
  const Findings findings = look(folders.empty() ? "." : folders[0], installation);
  std::fputs((json ? json_of(findings) : text_of(findings)).c_str(), stdout);
  return well(findings) ? 0 : 1;
}

}  // namespace kf
