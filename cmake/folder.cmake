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

# kf_folder(data/read [TORCH] USES data/chat [LIBS kf_simdjson]) makes kf_data_read of all files of the folder. TORCH: it includes torch,
# behind one precompiled header. LIBS: what else it needs, for itself alone.
function(kf_folder folder)
  cmake_parse_arguments(F "TORCH" "" "USES;LIBS" ${ARGN})
  kf_target_of("${folder}" target)
  kf_place_of("${folder}" place)
  kf_headers("${folder}")
  file(GLOB sources CONFIGURE_DEPENDS "${place}/*.cpp")
  add_library(${target} STATIC ${sources})
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
