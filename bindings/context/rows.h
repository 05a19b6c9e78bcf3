#pragma once
// Rows of metrics, and results with them, as Lua tables.

#include <lua.hpp>

#include "metrics/eval_result.h"
#include "metrics/row.h"
#include "metrics/run_result.h"

namespace kf::lua {

/// As in metrics.jsonl: { step = 10, loss = ..., lr = ..., ... }, hooks' own values among them.
void push_row(lua_State* L, const StepRow& row);
/// { step = 20, eval = { loss = ..., perplexity = ... } }
void push_row(lua_State* L, const EvalResult& eval);

/// What kf.run returns: { status = "complete", steps = 20, history = { rows }, ... }
void push_result(lua_State* L, const RunResult& result);

/// The table { name = number, ... } at `index`, sorted by name; `where` starts the messages.
Values read_values(lua_State* L, int index, const std::string& where);

}  // namespace kf::lua
