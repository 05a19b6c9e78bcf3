#include "app/help/completion.h"

#include <map>

#include "app/help/help.h"
#include "config/schema/schema.h"
#include "config/show/emit.h"
#include "core/text.h"

namespace kf {
namespace {

/// Words that stand behind a command; files are completed by the shell itself.
const std::map<std::string, std::string>& own_words() {
  static const std::map<std::string, std::string> words{
      {"adapter", "export"},
      {"checkpoint", "list info verify diff average convert merge-lora prune"},
      {"completion", "bash zsh fish"},
      {"config", "check show explain diff keys presets new schema docs meta api"},
      {"data", "info build peek verify stats cache"},
      {"sweep", "show best plot resume"},
      {"tokenizer", "encode decode info train"},
  };
  return words;
}

std::string commands() { return join(command_names(), " "); }

/// Of every command that has some, a line made by `line` of the command and its words.
template <typename Line>
std::string for_own_words(Line line) {
  std::string out;
  for (const auto& [command, words] : own_words()) {
    out += line(command, words);
  }
  return out + line("help", commands());
}

std::string settings(const std::string& between) {
  std::string out;
  for (const config::Row& row : config::rows()) {
    out += between + "--" + row.key() + "=";
  }
  return out;
}

std::string bash() {
  return "# Completion of kf-host for bash: source <(kf-host completion bash)\n_kf_host() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} words=\"\"\n"
         "  if [[ $word == --* ]]; then\n    words=\"--help --dry-run" +
         settings(" ") + "\"\n    compopt -o nospace 2>/dev/null\n  elif [[ $COMP_CWORD == 1 ]]; then\n    words=\"" + commands() +
         " help\"\n  else\n    case ${COMP_WORDS[1]} in\n" + for_own_words([](const std::string& command, const std::string& words) {
           return "      " + command + ") words=\"" + words + "\" ;;\n";
         }) +
         "    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _kf_host kf-host\n";
}

std::string zsh() {
  return "#compdef kf-host\n# Completion of kf-host for zsh: source <(kf-host completion zsh), or as _kf-host in a folder of $fpath.\n"
         "_kf_host() {\n  if [[ $words[CURRENT] == --* ]]; then\n    compadd -- --help --dry-run\n    compadd -S '' --" +
         settings(" ") + "\n    return\n  fi\n  if (( CURRENT == 2 )); then\n    compadd -- " + commands() +
         " help\n  else\n    case $words[2] in\n" + for_own_words([](const std::string& command, const std::string& words) {
           return "      " + command + ") (( CURRENT == 3 )) && compadd -- " + words + " ;;\n";
         }) +
         "    esac\n  fi\n  _files\n}\nif [[ $funcstack[1] == _kf-host ]]; then\n  _kf_host \"$@\"\nelse\n  compdef _kf_host kf-host\nfi\n";
}

/// A text between single quotes of fish.
std::string quoted_for_fish(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  }
  return out + "'";
}

std::string fish() {
  std::string out = "# Completion of kf-host for fish: ~/.config/fish/completions/kf-host.fish\n";
  out += "complete -c kf-host -n __fish_use_subcommand -a '" + commands() + " help'\n";
  out += for_own_words([](const std::string& command, const std::string& words) {
    return "complete -c kf-host -n '__fish_seen_subcommand_from " + command + "' -a '" + words + "'\n";
  });
  out += "complete -c kf-host -l help\ncomplete -c kf-host -l dry-run\n";
  for (const config::Row& row : config::rows()) {
    out += "complete -c kf-host -l " + row.key() + " -r -d " + quoted_for_fish(config::doc_text(row)) + "\n";
  }
  return out;
}

using Written = std::string (*)();
const std::map<std::string, Written>& shells() {
  static const std::map<std::string, Written> all{{"bash", bash}, {"fish", fish}, {"zsh", zsh}};
  return all;
}

}  // namespace

const std::vector<std::string>& completed_shells() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& [name, written] : shells()) {
      out.push_back(name);
    }
    return out;
  }();
  return names;
}

std::string completion_for(const std::string& shell) { return shells().at(shell)(); }

}  // namespace kf
