#include <iostream>

#include "app/command/commands.h"
#include "config/schema/schema.h"
#include "core/error.h"

namespace kf {
namespace {

/// What may stand behind each command; files are completed by the shell itself.
constexpr const char* kWords = R"(
    config) words="check show explain diff keys presets new schema docs meta api" ;;
    data) words="info build peek verify stats cache" ;;
    tokenizer) words="encode decode info train" ;;
    sweep) words="show best plot resume" ;;
    adapter) words="export" ;;
    checkpoint) words="list info verify diff average convert merge-lora prune" ;;
    help) words="train new doctor generate eval config plan profile data tokenizer test lua sweep export adapter checkpoint attach reload runs plot compare tail reproduce bundle report serve replay registry" ;;
    completion) words="bash" ;;
)";

}  // namespace

int completion_command(const Arguments& args) {
  KF_CHECK(args.size() == 1 && args[0] == "bash", Code::config, "usage: kf-host completion bash; other shells are not known");
  std::cout << "# Completion of kf-host for bash: source <(kf-host completion bash)\n_kf_host() {\n"
               "  local word=${COMP_WORDS[COMP_CWORD]} words=\"\"\n"
               "  if [[ $word == --* ]]; then\n    words=\"--help --dry-run";
  for (const config::Row& row : config::rows()) {
    std::cout << " --" << row.key() << '=';
  }
  std::cout << "\"\n    compopt -o nospace 2>/dev/null\n  elif [[ $COMP_CWORD == 1 ]]; then\n"
               "    words=\"train new doctor generate eval config plan profile data tokenizer test lua sweep export adapter checkpoint "
               "attach reload runs plot compare tail reproduce bundle report serve replay registry "
               "completion help\"\n"
               "  else\n    case ${COMP_WORDS[1]} in"
            << kWords
            << "    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _kf_host kf-host\n";
  return 0;
}

}  // namespace kf
