--- The module `kf`: what scripts see of the host. `local kf = require("kf")`; nothing is global.
local native = require("kf.native")

local kf = {
  --- The host's version, "0.1.0".
  version = native.version,
  --- The strings after `--` on the command line.
  args = native.args,
  --- This process among all: `rank` counts from 0 to `world - 1`.
  dist = native.dist,
  --- `kf.register.<kind>(name, factory, { fields = ..., doc = ... })`.
  register = native.register,
  --- Trains a job (a table like a recipe's) and returns { status, steps, tokens, loss, eval, history, checkpoint, seconds }.
  run = native.run,
}

--- A function that formats like string.format and writes a line to the log; without further arguments the text stands as it is.
local function logger(level)
  return function(pattern, ...)
    if type(pattern) ~= "string" then
      error(("kf.log.%s: expected a string, got %s"):format(level, type(pattern)), 2)
    end
    if select("#", ...) > 0 then
      local ok, text = pcall(string.format, pattern, ...)
      if not ok then
        error(("kf.log.%s: %s"):format(level, text), 2)
      end
      pattern = text
    end
    native.log(level, pattern)
  end
end

--- Lines in the run's log: `kf.log.info("loss %.3f at step %d", loss, step)`.
kf.log = { info = logger("info"), warn = logger("warn"), error = logger("error") }

kf.print_table = require("kf.table").print

return setmetatable(kf, { __index = native.missing, __newindex = native.refuse })
