#pragma once
// A script in a temporary folder, run against fresh registries.

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/script/script.h"
#include "core/error.h"
#include "optim/schedule.h"
#include "support/temp_dir.h"
#include "train/loop/hook.h"

namespace kf::test {

/// Scripts are called <folder>/recipe.lua; `shown` takes the folder out of a message.
struct ScriptFixture {
  explicit ScriptFixture(ScriptHost host = {}, std::vector<std::string> arguments = {})
      : script(std::make_unique<Script>(registries, std::move(host), std::move(arguments))) {}

  std::optional<config::Node> run(std::string_view source) { return script->run_file(folder.write("recipe.lua", source)); }

  /// The message of the error that running `source` gives, "recipe.lua:1: ..."; Code::script is required.
  std::string error(std::string_view source, Code code = Code::script) {
    try {
      run(source);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return shown(error.what());
    }
    FAIL("no error came out of:\n" << source);
    return "";
  }

  std::string shown(std::string text) const {
    const std::string prefix = folder.path().string() + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

  /// The registered part of a kind: part(&Registries::hook, "judge").
  template <class Factory, class... More>
  auto part(Registry<Factory> Registries::*kind, const std::string& name, More&&... more) {
    return make_part(registries.*kind, name, config, registries, std::forward<More>(more)...);
  }
  std::unique_ptr<Hook> hook(const std::string& name) { return part(&Registries::hook, name); }
  std::unique_ptr<Schedule> schedule(const std::string& name, std::int64_t max_steps = 100) {
    return part(&Registries::scheduler, name, ScheduleSpan{max_steps});
  }

  TempDir folder;
  Registries registries;
  config::Config config;
  std::unique_ptr<Script> script;
};

/// The first line of a message.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What an Error from `body` says.
template <class F>
std::string error_of(const ScriptFixture& fixture, F&& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == Code::script);
    return fixture.shown(error.what());
  }
  FAIL("no error");
  return "";
}

}  // namespace kf::test
