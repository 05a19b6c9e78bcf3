-- LuaJIT; nothing is global but `require`.
std = "luajit"
max_line_length = 140
self = false -- methods that do not need their object still take it
exclude_files = { "build", ".deps", "runs", "lua/meta" } -- the meta file is made for editors and never loaded
