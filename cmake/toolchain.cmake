# How things are compiled: the cache, the linker, warnings, sanitizers.

find_program(KF_CCACHE ccache)
if(KF_CCACHE)
  # Depend mode trusts the compiler's list of headers: without it every miss runs the preprocessor over all of torch first, which takes as
  # long as the compilation. A precompiled header is safe to cache when its macros and times are left out of the key. Paths below the source
  # tree count relative to it.
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_DEPEND=true "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" "${KF_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # or a header from the cache would be refused
endif()

find_program(KF_MOLD mold)
if(KF_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# For programs, too (not -fPIE): one precompiled header then serves libraries and programs.
add_compile_options(-fPIC)
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)

set(KF_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize= (the asan preset sets address,undefined)")
if(KF_SANITIZE)
  add_compile_options(-fsanitize=${KF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${KF_SANITIZE})
endif()

# Our own targets only: headers of others are SYSTEM.
add_library(kf_warnings INTERFACE)
target_compile_options(kf_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(kf_warnings INTERFACE -Wno-restrict)  # g++ 12 sees overlaps in std::string that are not there (GCC bug 105651)
endif()
