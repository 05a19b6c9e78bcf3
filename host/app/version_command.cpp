#include <iostream>

#include "app/commands.h"
#include "app/version.h"

namespace kf {

int version_command(const Arguments& /*args*/) {
  std::cout << version_text();
  return 0;
}

}  // namespace kf
