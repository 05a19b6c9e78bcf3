#include "bindings/context/generate_call.h"

#include <algorithm>

#include "bindings/value/ids.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "generate/sampling.h"

namespace kf::lua {
namespace {

std::int64_t count_option(lua_State* L, const std::string& where, const std::string& key) {
  const auto value = exact_integer(L, -1);
  KF_CHECK(value && *value >= 0, Code::script, "{}: {} must be a whole number from 0 on, got {}", where, key, describe(L, -1));
  return *value;
}

double share_option(lua_State* L, const std::string& where, const std::string& key, double max) {
  const double value = lua_tonumber(L, -1);
  KF_CHECK(lua_type(L, -1) == LUA_TNUMBER && value >= 0 && value <= max, Code::script, "{}: {} must be a number from 0 to {}, got {}",
           where, key, max, describe(L, -1));
  return value;
}

/// A text, or a list of texts, at `index`.
std::vector<std::string> read_texts(lua_State* L, int index, const std::string& where, const std::string& what) {
  if (lua_type(L, index) == LUA_TSTRING) {
    return {check_text(L, index, where, what)};
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: {} must be a string or a list of strings, got {}", where, what, describe(L, index));
  const int table = index < 0 ? lua_gettop(L) + index + 1 : index;
  std::vector<std::string> texts;
  for (std::size_t i = 1; i <= lua_objlen(L, table); ++i) {
    lua_rawgeti(L, table, static_cast<int>(i));
    KF_CHECK(lua_type(L, -1) == LUA_TSTRING, Code::script, "{}: {} {} must be a string, got {}", where, what, i, describe(L, -1));
    texts.emplace_back(text_at(L, -1));
    lua_pop(L, 1);
  }
  return texts;
}

std::vector<std::string> read_stop(lua_State* L, const std::string& where) {
  std::vector<std::string> stop = read_texts(L, -1, where, "stop");
  KF_CHECK(std::find(stop.begin(), stop.end(), "") == stop.end(), Code::script, "{}: stop has an empty text, which would end all", where);
  return stop;
}

std::vector<std::int64_t> read_stop_ids(lua_State* L, const std::string& where) {
  KF_CHECK(lua_istable(L, -1), Code::script, "{}: stop_ids must be a list of ids, got {}", where, describe(L, -1));
  std::vector<std::int64_t> ids;
  const int table = lua_gettop(L);
  for (std::size_t i = 1; i <= lua_objlen(L, table); ++i) {
    lua_rawgeti(L, table, static_cast<int>(i));
    ids.push_back(count_option(L, where, "each of stop_ids"));
    lua_pop(L, 1);
  }
  return ids;
}

/// The value on top, as the option `key`; false where there is no such option.
bool read_option(lua_State* L, const std::string& where, const std::string& key, GenerateOptions& options) {
  if (key == "max_new_tokens") {
    options.max_new_tokens = count_option(L, where, key);
    options.shorten = false;  // asked for
  } else if (key == "temperature") {
    options.temperature = share_option(L, where, key, 1e6);
  } else if (key == "top_k") {
    options.top_k = count_option(L, where, key);
  } else if (key == "top_p") {
    options.top_p = share_option(L, where, key, 1);
  } else if (key == "min_p") {
    options.min_p = share_option(L, where, key, 1);
  } else if (key == "repetition_penalty") {
    options.repetition_penalty = share_option(L, where, key, 1e6);
    KF_CHECK(options.repetition_penalty > 0, Code::script, "{}: repetition_penalty must be above 0", where);
  } else if (key == "seed") {
    options.seed = static_cast<std::uint64_t>(count_option(L, where, key));
  } else if (key == "stop") {
    options.stop = read_stop(L, where);
  } else if (key == "stop_ids") {
    options.stop_ids = read_stop_ids(L, where);
  } else {
    return false;
  }
  return true;
}

GenerateOptions read_generate_options(lua_State* L, int index, const std::string& where, GenerateOptions options) {
  if (lua_isnoneornil(L, index)) {
    return options;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected a table of options, got {}", where, describe(L, index));
  const std::vector<std::string> names = {"max_new_tokens",     "temperature", "top_k", "top_p",   "min_p",
                                          "repetition_penalty", "seed",        "stop",  "stop_ids"};
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    KF_CHECK(read_option(L, where, key, options), Code::script, "{}: no option '{}'{}", where, key, suggestion(key, names));
  }
  return options;
}

/// { ids, logprobs, stopped, prompt_tokens }
void push_info(lua_State* L, const Completion& answer) {
  lua_createtable(L, 0, 4);
  push_ids(L, answer.ids);
  lua_setfield(L, -2, "ids");
  lua_createtable(L, static_cast<int>(answer.logprobs.size()), 0);
  for (std::size_t i = 0; i < answer.logprobs.size(); ++i) {
    push(L, answer.logprobs[i]);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
  lua_setfield(L, -2, "logprobs");
  set(L, "stopped", end_name(answer.end));
  set(L, "prompt_tokens", static_cast<double>(answer.prompt_tokens));
}

}  // namespace

int call_generate(lua_State* L, const std::string& where, const GenerateOptions& defaults, const GenerateFunction& generate) {
  const bool one = lua_type(L, 2) == LUA_TSTRING;
  const std::vector<std::string> prompts = read_texts(L, 2, where, "a prompt");
  const GenerateOptions options = read_generate_options(L, 3, where, defaults);
  const Crossing crossing(L);
  const std::vector<Completion> answers = [&] {
    try {
      return generate(prompts, options);
    } catch (const Error& error) {
      if (error.code() == Code::config) {  // a limit of the model: the script asked for too much
        throw Error(Code::script, format("{}: {}", where, error.what()));
      }
      throw;
    }
  }();
  if (one) {
    push(L, answers.at(0).text);
    push_info(L, answers[0]);
    return 2;
  }
  lua_createtable(L, static_cast<int>(answers.size()), 0);
  lua_createtable(L, static_cast<int>(answers.size()), 0);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    push(L, answers[i].text);
    lua_rawseti(L, -3, static_cast<int>(i + 1));
    push_info(L, answers[i]);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
  return 2;
}

}  // namespace kf::lua
