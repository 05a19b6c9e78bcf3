-- LuaJIT; nothing is global but `require`.
std = "luajit"
max_line_length = 140
self = false -- methods that do not need their object still take it
-- The meta file is made for editors and never loaded; the script of version_1 stays as its checkpoint knows it.
exclude_files = { "build", ".deps", "runs", "lua/meta", "tests/e2e/version_1" }
