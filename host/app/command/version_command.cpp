#include <iostream>

#include "app/command/commands.h"
#include "app/help/version.h"

namespace kf {

int version_command(const Arguments& /*args*/) {
  std::cout << version_text();
  return 0;
}

}  // namespace kf
