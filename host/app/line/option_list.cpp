#include "app/line/option_list.h"

#include <algorithm>

#include "config/load/cli.h"

namespace kf {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void fail_unknown(const std::string& name, const OptionNames& names) {
  std::vector<std::string> all = names.values;
  all.insert(all.end(), names.flags.begin(), names.flags.end());
  const std::string near = nearest(name, all);
  fail(Code::config, "{} has no option '{}'{}; have: {}{}", names.command, name, near.empty() ? "" : "; did you mean '" + near + "'?",
       join(all, ", "), names.overrides ? ", and settings, --section.key=value" : "");
}

}  // namespace

std::string OptionList::last(const std::string& name) const {
  const auto found = std::find_if(options.rbegin(), options.rend(), [&](const auto& option) { return option.first == name; });
  return found == options.rend() ? "" : found->second;
}

bool OptionList::has(const std::string& name) const {
  return std::any_of(options.begin(), options.end(), [&](const auto& option) { return option.first == name; });
}

OptionList parse_options(const std::vector<std::string>& given, const OptionNames& names) {
  const std::vector<std::string> args = names.overrides ? config::join_values(given) : given;
  OptionList out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].rfind("--", 0) != 0) {
      KF_CHECK(args[i].size() < 2 || args[i][0] != '-' || std::isdigit(static_cast<unsigned char>(args[i][1])) != 0, Code::config,
               "{} has no option '{}'; options begin with two dashes", names.command, args[i]);
      out.words.push_back(args[i]);
      continue;
    }
    const std::size_t equals = args[i].find('=');
    const std::string name = args[i].substr(0, equals);
    if (contains(names.values, name)) {
      KF_CHECK(equals != std::string::npos || i + 1 < args.size(), Code::config, "{} needs a value", name);
      out.options.emplace_back(name, equals != std::string::npos ? args[i].substr(equals + 1) : args[i + 1]);
      i += equals == std::string::npos ? 1 : 0;
    } else if (contains(names.flags, name)) {
      KF_CHECK(equals == std::string::npos, Code::config, "{} takes no value", name);
      out.options.emplace_back(name, "");
    } else if (names.overrides && name.find('.') != std::string::npos) {
      out.overrides.push_back(args[i]);
    } else {
      fail_unknown(name, names);
    }
  }
  return out;
}

void check_word(const std::string& option, const std::string& value, const std::vector<std::string>& allowed) {
  KF_CHECK(contains(allowed, value), Code::config, "{}: '{}' is none of {}", option, value, join(allowed, ", "));
}

}  // namespace kf
