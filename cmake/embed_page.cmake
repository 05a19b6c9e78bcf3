# Turns the page's files into C++ arrays: cmake -DOUT=assets.cpp -DROOT=page/web "-DSCRIPTS=dom.js;page.js" -P embed_page.cmake
# The scripts become one, in a function of its own, in the order in which they are given.

function(bytes_of file out)
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  set(${out} "${bytes}" PARENT_SCOPE)
endfunction()

bytes_of("${ROOT}/page.html" html)
bytes_of("${ROOT}/page.css" style)
set(script "")
foreach(file ${SCRIPTS})
  bytes_of("${ROOT}/${file}" bytes)
  string(APPEND script "${bytes}'\\n',")
endforeach()
string(HEX "(() => {\n\"use strict\";\n" head)
string(HEX "})();" tail)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," head "${head}")
string(REGEX REPLACE "(..)" "'\\\\x\\1'," tail "${tail}")

set(text "// Made from host/report/page/web by cmake/embed_page.cmake.\n#include \"report/page/assets.h\"\n\nnamespace kf::report::assets {\nnamespace {\n\n")
string(APPEND text "constexpr char kHtmlBytes[] = {${html}};\nconstexpr char kStyleBytes[] = {${style}};\nconstexpr char kScriptBytes[] = {${head}${script}${tail}};\n\n}  // namespace\n\n")
foreach(name Html Style Script)
  string(APPEND text "const std::string_view k${name}(k${name}Bytes, sizeof k${name}Bytes);\n")
endforeach()
string(APPEND text "\n}  // namespace kf::report::assets\n")
file(WRITE "${OUT}" "${text}")
