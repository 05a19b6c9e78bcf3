#include <iostream>

#include "app/commands.h"
#include "build_info.h"

namespace kf {

int version_command(const Arguments& /*args*/) {
  std::cout << "kf-host " << build::kVersion << "  git " << build::kGit << "\ntorch " << build::kTorch << ", CUDA " << build::kCuda
            << ", LuaJIT " << build::kLuajit << ", " << build::kCompiler << ", " << build::kBuildType << '\n';
  return 0;
}

}  // namespace kf
