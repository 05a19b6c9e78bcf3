# A folder is a target, and sees the folders that it names, those that they see, and nothing else: another folder's header is not found.

# kf_data_read of data/read.
function(kf_target_of folder variable)
  string(REPLACE "/" "_" name "${folder}")
  set(${variable} "kf_${name}" PARENT_SCOPE)
endfunction()

# Where a folder lies: beside host if it is one of bindings/.
function(kf_place_of folder variable)
  set(place "${CMAKE_SOURCE_DIR}/host/${folder}")
  if(folder MATCHES "^bindings/")
    set(place "${CMAKE_SOURCE_DIR}/${folder}")
  endif()
  set(${variable} "${place}" PARENT_SCOPE)
endfunction()

# kf_headers(data/read) makes kf_data_read_headers, which lets others write #include "data/read/reader.h": an include path of the folder's
# own, made of links to its headers.
function(kf_headers folder)
  kf_target_of("${folder}" target)
  kf_place_of("${folder}" place)
  file(GLOB headers CONFIGURE_DEPENDS "${place}/*.h" "${place}/*.def")
  set(shown "${CMAKE_BINARY_DIR}/include/${target}")
  file(REMOVE_RECURSE "${shown}")
  file(MAKE_DIRECTORY "${shown}/${folder}")
  foreach(header ${headers})
    get_filename_component(name "${header}" NAME)
    file(CREATE_LINK "${header}" "${shown}/${folder}/${name}" SYMBOLIC)
  endforeach()
  add_library(${target}_headers INTERFACE)
  target_compile_options(${target}_headers INTERFACE "SHELL:-iquote \"${shown}\"")  # quoted: the path may have a blank
endfunction()

# Adds the *_simd.cpp files of a folder to its target: each is compiled once for every set of instructions (kernels/simd/isa.h), in a
# namespace of the set's name.
function(kf_simd target place)
  file(GLOB sources CONFIGURE_DEPENDS "${place}/*_simd.cpp")
  if(NOT sources)
    return()
  endif()
  set(sets plain)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND sets avx2 avx512 avx512_bf16)
  endif()
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 ${flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  set(flags_avx512_bf16 ${flags_avx512} -mavx512bf16)
  foreach(isa ${sets})
    add_library(${target}_${isa} OBJECT ${sources})
    target_compile_definitions(${target}_${isa} PRIVATE "KF_SIMD_ISA=${isa}")
    # Loops over lanes are unrolled by hand, and no other kind of vector is wanted beside.
    target_compile_options(${target}_${isa} PRIVATE -O3 -ffp-contract=fast -fno-math-errno -Wno-psabi ${flags_${isa}})
    target_link_libraries(${target}_${isa} PRIVATE kf_warnings kf_kernels_simd_headers ${target}_headers)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${isa}>)
  endforeach()
endfunction()

# kf_folder(data/read [TORCH] USES data/chat [LIBS kf_simdjson]) makes kf_data_read of all files of the folder. TORCH: it includes torch,
# behind one precompiled header. LIBS: what else it needs, for itself alone.
function(kf_folder folder)
  cmake_parse_arguments(F "TORCH" "" "USES;LIBS" ${ARGN})
  kf_target_of("${folder}" target)
  kf_place_of("${folder}" place)
  kf_headers("${folder}")
  file(GLOB sources CONFIGURE_DEPENDS "${place}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_simd\\.cpp$")
  add_library(${target} STATIC ${sources})
  kf_simd(${target} "${place}")
  target_link_libraries(${target} PUBLIC ${target}_headers PRIVATE kf_warnings ${F_LIBS})
  foreach(used ${F_USES})
    kf_target_of("${used}" seen)
    target_link_libraries(${target} PUBLIC ${seen})
  endforeach()
  if(F_TORCH)
    target_link_libraries(${target} PUBLIC kf_torch_cpu)
    target_precompile_headers(${target} REUSE_FROM kf_torch_headers)
  endif()
endfunction()

# kf_house(kf_text data/cache config/show): folders, and what they see, under one name for tests.
function(kf_house name)
  add_library(${name} INTERFACE)
  foreach(folder ${ARGN})
    kf_target_of("${folder}" part)
    target_link_libraries(${name} INTERFACE ${part})
  endforeach()
endfunction()
