// Where keys stand in a script's text.
#include <catch2/catch.hpp>

#include "bindings/session/source_map.h"

using kf::lua::code_text;
using kf::lua::CodeText;
using kf::lua::SourceMap;

namespace {

/// "line:column" of the value at a path, "" when it is not found.
std::string place(const SourceMap& map, const std::vector<std::string>& path, int line = 1000) {
  const SourceMap::Entry* entry = map.find(path, line);
  return entry ? std::to_string(entry->value.line) + ":" + std::to_string(entry->value.column) : "";
}

}  // namespace

TEST_CASE("source map: keys of nested tables are found with line and column", "[source]") {
  const SourceMap map(R"(local kf = require("kf") -- { optimizer = { lr = 0 } }
return {
  extends = "base.toml",
  optimizer = { name = "adamw", lr = 6e-4 },
  ["scheduler"] = {
    warmup_steps = 200;
    ['half'] = { floor = 0.1 },
  },
  data = { datasets = { { path = "a" }, { path = "b", weight = 2 } } },
}
)");
  CHECK(map.return_line() == 2);
  CHECK(place(map, {"extends"}) == "3:13");
  CHECK(place(map, {"optimizer", "lr"}) == "4:38");
  CHECK(place(map, {"scheduler", "warmup_steps"}) == "6:20");
  CHECK(place(map, {"scheduler", "half", "floor"}) == "7:26");
  CHECK(place(map, {"data", "datasets", "2", "weight"}) == "9:64");
  CHECK(place(map, {"optimizer", "betas"}).empty());
  CHECK(map.line(6) == "    warmup_steps = 200;");
}

TEST_CASE("source map: what stands in functions, comments and strings is not taken for keys of the table around", "[source]") {
  const SourceMap map(R"(return {
  on = function(ctx)
    if ctx then lr = 1 end
    for i = 1, 3 do local t = { lr = 2, x = i } end
    repeat y = 3 until y
  end,
  text = [[ lr = 4, { lr = 5 } ]], more = "lr = \" 6", --[==[ lr = 7 ]==]
  call = f({ lr = 8 }, { 9 }),
  lr = 10,
})");
  CHECK(place(map, {"lr"}, 1) == "9:8");
  CHECK(place(map, {"call"}, 1) == "8:10");
  CHECK(place(map, {"on", "lr"}).empty());
}

TEST_CASE("source map: the table nearest to the line counts, and assignments count too", "[source]") {
  const SourceMap map(R"(local a = { optimizer = { lr = 1 } }
run(a)
local b = { optimizer = { lr = 2 } }
run(b)
b.optimizer.lr = 3
b.train = { seed = 4 }
run(b)
)");
  CHECK(place(map, {"optimizer", "lr"}, 2).starts_with("1:"));
  CHECK(place(map, {"optimizer", "lr"}, 7).starts_with("5:"));
  CHECK(place(map, {"train", "seed"}, 7) == "6:20");
}

TEST_CASE("source map: any text is read to its end", "[source]") {
  const std::string text =
      GENERATE("", "{", "}", "return {", "[[", "--[==[", "\"", "'\\", "a.b.", "{ [", "a = = {", ")))", "end end", "{ ['x'] = ");
  CAPTURE(text);
  const SourceMap map(text);
  CHECK(map.find({"nothing"}, 1) == nullptr);
}

TEST_CASE("code text: comments and blanks mean nothing, functions stand apart from the rest", "[source_map]") {
  const std::string script = R"(local width = 4
local function act(x)
  if x > 0 then return x end
  for i = 1, 3 do x = x * i end
  repeat x = x + 1 until x > 0
  return (function(y) return y end)(x)
end
return { optimizer = { lr = 1 }, hooks = { { on_step_end = function(ctx) ctx:stop("so") end } } }
)";
  const CodeText code = code_text(script);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = script;
    text.replace(text.find(from), from.size(), to);
    return code_text(text);
  };
  for (const auto& [from, to] :
       {std::pair("local width", "-- a word\n\n  local   width"), std::pair("return x end", "return x --[[ long ]] end")}) {
    CHECK(with(from, to).functions == code.functions);
    CHECK(with(from, to).rest == code.rest);
  }
  for (const auto& [from, to] : {std::pair("x * i", "x + i"), std::pair("return y", "return -y"), std::pair("\"so\"", "\"\\110o\""),
                                 std::pair("x > 0 then", "x >= 0 then")}) {
    CAPTURE(from);
    CHECK(with(from, to).functions != code.functions);
    CHECK(with(from, to).rest == code.rest);
  }
  for (const auto& [from, to] : {std::pair("width = 4", "width = 5"), std::pair("lr = 1", "lr = 2")}) {
    CAPTURE(from);
    CHECK(with(from, to).functions == code.functions);
    CHECK(with(from, to).rest != code.rest);
  }
}
