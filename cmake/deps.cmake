# Third-party libraries as imported targets. Nothing here is compiled with our warnings.

set(KF_TORCH_DIR "${CMAKE_SOURCE_DIR}/.deps/torch" CACHE PATH "The torch folder of the 2.11.0 wheel (include/ and lib/)")
if(NOT EXISTS "${KF_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "no torch in ${KF_TORCH_DIR}: run `make deps`, or set KF_TORCH_DIR to the torch folder of a 2.11.0 wheel")
endif()
file(STRINGS "${KF_TORCH_DIR}/version.py" version REGEX "^__version__ = ")
string(REGEX REPLACE ".*'([0-9.]+)[^']*'.*" "\\1" KF_TORCH_VERSION "${version}")
if(NOT KF_TORCH_VERSION VERSION_EQUAL 2.11.0)
  message(FATAL_ERROR "torch in ${KF_TORCH_DIR} is '${KF_TORCH_VERSION}', wanted 2.11.0: run `make deps`")
endif()
get_filename_component(KF_NVIDIA_DIR "${KF_TORCH_DIR}/../nvidia" ABSOLUTE)

# One of torch's libraries by its file; the linker gets the full path, the binary its soname.
function(kf_torch_library name file)
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${KF_TORCH_DIR}/lib/${file}")
endfunction()

# find_package(Torch) wants a CUDA toolkit and Python and sets global flags, so the targets are made by hand. libtorch_cpu itself needs
# libcudart and libcupti, which it finds through its own RPATH.
kf_torch_library(torch_c10 libc10.so)
kf_torch_library(torch_cpu libtorch_cpu.so)
kf_torch_library(kf_gomp libgomp.so.1)
add_library(kf_torch_cpu INTERFACE)
target_include_directories(kf_torch_cpu SYSTEM INTERFACE "${KF_TORCH_DIR}/include" "${KF_TORCH_DIR}/include/torch/csrc/api/include")
target_compile_definitions(kf_torch_cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
target_link_libraries(kf_torch_cpu INTERFACE torch_cpu torch_c10)
target_link_options(kf_torch_cpu INTERFACE "-Wl,-rpath-link,${KF_NVIDIA_DIR}/cu13/lib" -Wl,--allow-shlib-undefined)
# A build folder that moves together with its tree still finds torch. (The absolute path is added by CMake.)
set(CMAKE_BUILD_RPATH "$ORIGIN/../../.deps/torch/lib")

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LUAJIT REQUIRED luajit)
add_library(kf_luajit INTERFACE)
target_include_directories(kf_luajit SYSTEM INTERFACE ${LUAJIT_INCLUDE_DIRS})
target_link_libraries(kf_luajit INTERFACE ${LUAJIT_LINK_LIBRARIES} ${CMAKE_DL_LIBS})

find_path(KF_SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
add_library(kf_spdlog INTERFACE)  # header-only in the one file that uses it
target_include_directories(kf_spdlog SYSTEM INTERFACE ${KF_SPDLOG_INCLUDE})
target_compile_definitions(kf_spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

function(kf_library name header library)
  string(TOUPPER ${name} variable)
  find_path(${variable}_INCLUDE ${header} REQUIRED)
  find_library(${variable}_LIBRARY ${library} REQUIRED)
  add_library(${name} INTERFACE)
  target_include_directories(${name} SYSTEM INTERFACE ${${variable}_INCLUDE})
  target_link_libraries(${name} INTERFACE ${${variable}_LIBRARY})
endfunction()
kf_library(kf_sqlite sqlite3.h sqlite3)
kf_library(kf_zlib zlib.h z)
kf_library(kf_deflate libdeflate.h deflate)
kf_library(kf_zstd zstd.h zstd)
kf_library(kf_pcre2 pcre2.h pcre2-8)
kf_library(kf_utf8proc utf8proc.h utf8proc)
kf_library(kf_simdjson simdjson.h simdjson)
kf_library(kf_curl curl/curl.h curl)
kf_library(kf_crypto openssl/evp.h crypto)
find_path(KF_XXHASH_INCLUDE xxhash.h REQUIRED)  # all of it is in the header
kf_library(kf_yaml yaml-cpp/yaml.h yaml-cpp)
kf_library(kf_archive archive.h archive)
kf_library(kf_dw elfutils/libdwfl.h dw)
kf_library(kf_isal isa-l/crc.h isal)
find_path(KF_PROTOZERO_INCLUDE protozero/pbf_writer.hpp REQUIRED)  # all of it is in headers
add_library(kf_protozero INTERFACE)
target_include_directories(kf_protozero SYSTEM INTERFACE ${KF_PROTOZERO_INCLUDE})
# Compiled with macros that change its classes: they are asked for.
pkg_check_modules(HTTPLIB REQUIRED cpp-httplib)
add_library(kf_httplib INTERFACE)
target_include_directories(kf_httplib SYSTEM INTERFACE ${HTTPLIB_INCLUDE_DIRS})
target_compile_options(kf_httplib INTERFACE ${HTTPLIB_CFLAGS_OTHER})
target_link_libraries(kf_httplib INTERFACE ${HTTPLIB_LINK_LIBRARIES})

foreach(header toml++/toml.h nlohmann/json.hpp catch2/catch.hpp)
  string(MAKE_C_IDENTIFIER "KF_HEADER_${header}" variable)
  find_path(${variable} ${header} REQUIRED)  # Debian's header-only packages live in /usr/include
endforeach()

# Arrow and Parquet: headers and libraries of PyPI's pyarrow. Without them everything but the module that reads such files is built.
set(KF_ARROW_DIR "${CMAKE_SOURCE_DIR}/.deps/pyarrow" CACHE PATH "The pyarrow folder of a wheel (include/ and libarrow.so.*)")
set(KF_WITH_ARROW OFF)
if(EXISTS "${KF_ARROW_DIR}/include/arrow/api.h")
  set(KF_WITH_ARROW ON)
  message(STATUS "Arrow module: ${KF_ARROW_DIR}")
else()
  message(STATUS "Arrow module: left out, no pyarrow in ${KF_ARROW_DIR} (`make deps` installs it); Parquet and Arrow files cannot be read")
endif()

# The prompt's history and completion; without it lines are read plainly.
find_path(KF_LIBEDIT_HEADER editline/readline.h)
if(KF_LIBEDIT_HEADER)
  find_library(KF_LIBEDIT edit)
endif()
