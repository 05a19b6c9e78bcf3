# generated/build_info.h. Asked for at every build, since a commit does not run CMake; written only when a value has changed.

set(KF_GENERATED_DIR "${CMAKE_BINARY_DIR}/generated")
string(CONCAT compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
set(values
  "-DPROJECT_VERSION=${PROJECT_VERSION}" "-DKF_COMPILER=${compiler}" "-DKF_BUILD_TYPE=${CMAKE_BUILD_TYPE}"
  "-DKF_TORCH_VERSION=${KF_TORCH_VERSION}" "-DKF_CUDA_TEXT=${KF_CUDA_TEXT}" "-DKF_LUAJIT_VERSION=${LUAJIT_VERSION}"
  "-DKF_SOURCE_DIR=${CMAKE_SOURCE_DIR}" "-DKF_OUTPUT=${KF_GENERATED_DIR}/build_info.h"
  "-DKF_TEMPLATE=${CMAKE_SOURCE_DIR}/host/app/build_info.h.in")
add_custom_target(kf_build_info
  COMMAND "${CMAKE_COMMAND}" ${values} -P "${CMAKE_SOURCE_DIR}/cmake/write_build_info.cmake"
  BYPRODUCTS "${KF_GENERATED_DIR}/build_info.h"
  COMMENT "Looking at the version"
  VERBATIM)
