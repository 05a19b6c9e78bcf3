// The program's entry, called by the launcher once torch is loaded.

#include <ATen/Context.h>

#include <cstdio>
#include <cstring>

#include "build_info.h"

extern "C" __attribute__((visibility("default"))) int kf_main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("kf-host %s  git %s\ntorch %s, cuda %s, LuaJIT %s, %s, %s, AVX2 or better: %s\n", kf::build::kVersion, kf::build::kGit,
                kf::build::kTorch, kf::build::kCuda, kf::build::kLuajit, kf::build::kCompiler, kf::build::kBuildType,
                at::globalContext().hasMKLDNN() ? "mkldnn" : "none");
    return 0;
  }
  std::fputs("usage: kf-host job.toml | kf-host experiment.lua\n", stderr);
  return 2;
}
