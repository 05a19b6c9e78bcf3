#include "app/help/version.h"

#include "build_info.h"

namespace kf {

std::string version_text() {
  return std::string("kf-host ") + build::kVersion + "  git " + build::kGit + "\ntorch " + build::kTorch + ", CUDA " + build::kCuda +
         ", LuaJIT " + build::kLuajit + ",\n" + build::kCompiler + ", " + build::kBuildType + "\n";
}

}  // namespace kf
