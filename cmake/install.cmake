# `make install`, `make package`: one folder that can be moved. bin/kf-host is a link to the program, which finds everything else beside
# itself in lib/kf-host. Components: program, and torch (its half for CPUs, half a gigabyte; without it, KF_TORCH_DIR says where torch is).

set(home lib/kf-host)
set_target_properties(kf_app PROPERTIES INSTALL_RPATH "$ORIGIN/torch/lib")
install(TARGETS kf-host RUNTIME DESTINATION ${home} COMPONENT program)
install(TARGETS kf_app LIBRARY DESTINATION ${home} COMPONENT program)
set(link "${CMAKE_BINARY_DIR}/installed/kf-host")
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/installed")
file(CREATE_LINK "../${home}/kf-host" "${link}" SYMBOLIC)
install(FILES "${link}" DESTINATION bin COMPONENT program)

if(TARGET kf_arrow)
  set_target_properties(kf_arrow PROPERTIES INSTALL_RPATH "$ORIGIN/pyarrow")
  install(TARGETS kf_arrow LIBRARY DESTINATION ${home} COMPONENT program)
  file(GLOB arrow "${KF_ARROW_DIR}/libarrow.so.*" "${KF_ARROW_DIR}/libparquet.so.*")
  install(FILES ${arrow} DESTINATION ${home}/pyarrow COMPONENT program)
endif()
if(TARGET kf_cuda)
  install(TARGETS kf_cuda LIBRARY DESTINATION ${home} COMPONENT program)
endif()

# What libtorch_cpu needs beside the system's libraries; it looks for NVIDIA's two at ../../nvidia/cu13/lib.
foreach(library libc10.so libtorch_cpu.so libgomp.so.1)
  install(PROGRAMS "${KF_TORCH_DIR}/lib/${library}" DESTINATION ${home}/torch/lib COMPONENT torch)
endforeach()
foreach(library libcudart.so.13 libcupti.so.13)
  install(PROGRAMS "${KF_NVIDIA_DIR}/cu13/lib/${library}" DESTINATION ${home}/nvidia/cu13/lib COMPONENT torch)
endforeach()
install(DIRECTORY "${KF_TORCH_DIR}/../torch-${KF_TORCH_VERSION}.dist-info/" DESTINATION share/doc/kf-host/torch COMPONENT torch
  FILES_MATCHING PATTERN "LICENSE*" PATTERN "NOTICE*")

install(DIRECTORY configs examples DESTINATION share/kf-host COMPONENT program)
install(DIRECTORY lua/meta DESTINATION share/kf-host/lua COMPONENT program)  # for editors; what scripts require is in the program
install(DIRECTORY docs/ DESTINATION share/doc/kf-host COMPONENT program)
install(FILES README.md CHANGELOG.md DESTINATION share/doc/kf-host COMPONENT program)

# Written by the program itself, from its commands and settings.
install(CODE "
  set(kf_program \"$<TARGET_FILE:kf-host>\")
  set(kf_torch \"${KF_TORCH_DIR}\")" COMPONENT program)
install(CODE [[
  function(written place)
    set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/${place}")
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY "${folder}")
    message(STATUS "Writing: ${file}")
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env "KF_TORCH_DIR=${kf_torch}" "${kf_program}" ${ARGN} OUTPUT_FILE "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endfunction()
  written(man/man1/kf-host.1 config docs man)
  written(bash-completion/completions/kf-host completion bash)
  written(zsh/site-functions/_kf-host completion zsh)
  written(fish/vendor_completions.d/kf-host.fish completion fish)
  written(kf-host/kf-host.schema.json config schema)
]] COMPONENT program)

set(CPACK_PACKAGE_NAME kf-host)
set(CPACK_PACKAGE_VENDOR "the authors of kf-host")
set(CPACK_PACKAGE_CONTACT "the authors of kf-host <kf-host@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains language models, configured by TOML, scripted by Lua")
set(CPACK_PACKAGE_FILE_NAME "kf-host-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program torch)
set(CPACK_STRIP_FILES OFF)  # torch comes as its makers built it, and stacks of crashes need our names
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6")  # scripts/package.sh finds the rest
include(CPack)
