# Turns Lua files into a C++ array of shipped modules: cmake -DOUT=file.cpp -DROOT=lua "-DFILES=kf/init.lua;kf/x.lua" -P embed_lua.cmake
# lua/kf/init.lua is the module "kf", lua/kf/hooks/x.lua is "kf.hooks.x".

set(arrays "")
set(rows "")
set(number 0)
foreach(file ${FILES})
  file(READ "${ROOT}/${file}" hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(REGEX REPLACE "(/init)?\\.lua$" "" module "${file}")
  string(REPLACE "/" "." module "${module}")
  string(APPEND arrays "constexpr char kModule${number}[] = {${bytes}'\\0'};\n")
  string(APPEND rows "    {\"${module}\", {kModule${number}, sizeof kModule${number} - 1}},\n")
  math(EXPR number "${number} + 1")
endforeach()

set(text "// Made from lua/ by cmake/embed_lua.cmake.\n#include \"bindings/vm/runtime.h\"\n\nnamespace kf::lua {\nnamespace {\n\n")
string(APPEND text "${arrays}\n}  // namespace\n\nconst ShippedModule kShippedModules[] = {\n${rows}};\n")
string(APPEND text "const std::size_t kShippedModuleCount = ${number};\n\n}  // namespace kf::lua\n")
file(WRITE "${OUT}" "${text}")
