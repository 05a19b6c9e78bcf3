#include "app/help/completion.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "app/help/help.h"
#include "config/load/names.h"
#include "config/schema/schema.h"
#include "config/show/emit.h"
#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

using Names = std::vector<std::string>;

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

std::string commands() { return join(command_names(), " ") + " help"; }

/// Of every command that has some, a line made by `line` of the command and its words.
template <typename Line>
std::string for_own_words(Line line) {
  std::string out;
  for (const auto& [command, words] : own_words()) {
    out += line(command, words);
  }
  return out + line("help", commands());
}

/// The options that a page of help names, in their order.
Names options_on(const std::string& page) {
  Names out;
  for (std::size_t at = page.find("--"); at != std::string::npos; at = page.find("--", at)) {
    std::size_t end = at + 2;
    while (end < page.size() && (std::islower(static_cast<unsigned char>(page[end])) != 0 || page[end] == '-')) {
      ++end;
    }
    const std::string name = page.substr(at, end - at);
    const bool whole = name.size() > 2 && (at == 0 || page[at - 1] != '-') && (end == page.size() || page[end] != '.');
    if (whole && name.back() != '-' && std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(name);
    }
    at = end;
  }
  return out;
}

bool takes_settings(const std::string& page) { return page.find("--section.key=") != std::string::npos; }

/// Of every command, a line made by `line` of its name, its options, and whether it takes settings.
template <typename Line>
std::string for_options(Line line) {
  std::string out;
  for (const std::string& command : command_names()) {
    const std::string page = command_page(command);
    out += line(command, options_on(page), takes_settings(page));
  }
  return out;
}

std::string training_options() { return join(options_on(command_page("train")), " "); }

std::string settings() {
  std::string out;
  for (const config::Row& row : config::rows()) {
    out += " --" + row.key() + "=";
  }
  return out;
}

/// What a setting begins with: its section, or its name where it has none.
std::string sections() {
  Names out;
  for (const config::Row& row : config::rows()) {
    const std::string begin = row.section.empty() ? "--" + row.name + "=" : "--" + row.section + ".";
    if (std::find(out.begin(), out.end(), begin) == out.end()) {
      out.push_back(begin);
    }
  }
  return join(out, " ");
}

constexpr const char* kTruth = "true false";

/// The values that a setting takes, where they can be listed; "" where they cannot.
std::string values_of(const config::Row& row, const config::Catalog& catalog) {
  if (row.type == config::Type::boolean) {
    return kTruth;
  }
  if (row.type != config::Type::text) {
    return "";
  }
  return join(row.check.kind.empty() ? row.check.choices : config::part_names(catalog, row.check.kind), " ");
}

/// A line made by `line` of settings that take the same values, "--a|--b", and these.
template <typename Line>
std::string for_values(const config::Catalog& catalog, Line line) {
  std::map<std::string, Names> keys;
  for (const config::Row& row : config::rows()) {
    if (std::string values = values_of(row, catalog); !values.empty()) {
      keys[std::move(values)].push_back("--" + row.key());
    }
  }
  std::string out;
  for (const auto& [values, own] : keys) {
    out += line(join(own, "|"), values);
  }
  return out;
}

/// `text` with every "@NAME@" that `parts` has.
std::string filled(std::string text, const std::map<std::string, std::string>& parts) {
  for (const auto& [name, part] : parts) {
    const std::string mark = "@" + name + "@";
    const std::size_t at = text.find(mark);
    KF_CHECK(at != std::string::npos, Code::other, "the script of a shell has no {}", mark);
    text.replace(at, mark.size(), part);
  }
  return text;
}

constexpr const char* kBash = R"sh(# Completion of kf-host for bash: source <(kf-host completion bash)
_kf_host() {
  COMPREPLY=()
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} key="" front="" words="" file
  # bash cuts --key=value at its =, unless COMP_WORDBREAKS says otherwise.
  if [[ $word == --*=* ]]; then
    key=${word%%=*} front=$key= word=${word#*=}
  elif [[ $word == "=" ]]; then
    key=$before word=""
  elif [[ $before == "=" ]]; then
    key=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  case ${key:-$before} in
@VALUES@  esac
  if [[ -z $key && ($word == -* || $words == "@TRUTH@") ]]; then
    words=""  # a truth may stand alone
  fi
  if [[ -n $key || -n $words ]]; then
    if [[ -n $words ]]; then
      COMPREPLY=($(compgen -P "$front" -W "$words" -- "$word"))
    elif [[ -n $front ]]; then  # else the shell completes files itself
      while IFS= read -r file; do
        [[ -d $file ]] && file+=/
        COMPREPLY+=("$front$(printf %q "$file")")
      done < <(compgen -f -- "$word")
      [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    fi
    return
  fi
  if [[ $word == -* ]]; then
    local settings=yes
    case ${COMP_WORDS[1]} in
@OPTIONS@      *) words="@TRAINING@" ;;
    esac
    words+=" --help"
    if [[ -n $settings && $word == *.* ]]; then
      words+="@SETTINGS@"
    elif [[ -n $settings ]]; then
      words+=" @SECTIONS@"
    fi
  elif [[ $COMP_CWORD == 1 ]]; then
    words="@COMMANDS@"
  elif [[ $COMP_CWORD == 2 ]]; then
    case ${COMP_WORDS[1]} in
@WORDS@    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=.] ]]; then
    compopt -o nospace 2>/dev/null
  fi
  if [[ $COMP_CWORD == 1 && $word != -* ]]; then
    while IFS= read -r file; do
      if [[ $file == *.toml || $file == *.lua ]]; then
        COMPREPLY+=("$(printf %q "$file")")
      fi
    done < <(compgen -f -- "$word")
  fi
}
complete -o default -F _kf_host kf-host
)sh";

std::string bash(const config::Catalog& catalog) {
  return filled(
      kBash, {{"VALUES", for_values(catalog, [](const std::string& keys,
                                                const std::string& values) { return "    " + keys + ") words=\"" + values + "\" ;;\n"; })},
              {"TRUTH", kTruth},
              {"OPTIONS", for_options([](const std::string& command, const Names& options, bool settings) {
                 return "      " + command + ") words=\"" + join(options, " ") + "\"" + (settings ? "" : " settings=\"\"") + " ;;\n";
               })},
              {"TRAINING", training_options()},
              {"SETTINGS", settings()},
              {"SECTIONS", sections()},
              {"COMMANDS", commands()},
              {"WORDS", for_own_words([](const std::string& command, const std::string& words) {
                 return "      " + command + ") words=\"" + words + "\" ;;\n";
               })}});
}

constexpr const char* kZsh = R"sh(#compdef kf-host
# Completion of kf-host for zsh: source <(kf-host completion zsh), or as _kf-host in a folder of $fpath.
_kf_host() {
  local word=$words[CURRENT] key="" before=$words[CURRENT-1] settings=yes
  local -a values options
  if [[ $word == --*=* ]]; then
    key=${word%%=*}
    compset -P '*='
  fi
  case ${key:-$before} in
@VALUES@  esac
  if [[ -z $key && ($word == -* || "$values" == "@TRUTH@") ]]; then
    values=() # a truth may stand alone
  fi
  if (( $#values )); then
    compadd -- $values
    return
  elif [[ -n $key ]]; then
    _files
    return
  fi
  if [[ $word == -* ]]; then
    case $words[2] in
@OPTIONS@      *) options=(@TRAINING@) ;;
    esac
    compadd -- --help $options
    if [[ -n $settings && $word == *.* ]]; then
      compadd -S '' --@SETTINGS@
    elif [[ -n $settings ]]; then
      compadd -S '' -- @SECTIONS@
    fi
    return
  fi
  if (( CURRENT == 2 )); then
    compadd -- @COMMANDS@
  elif (( CURRENT == 3 )); then
    case $words[2] in
@WORDS@    esac
  fi
  _files
}
if [[ $funcstack[1] == _kf-host ]]; then
  _kf_host "$@"
else
  compdef _kf_host kf-host
fi
)sh";

std::string zsh(const config::Catalog& catalog) {
  return filled(
      kZsh, {{"VALUES", for_values(catalog, [](const std::string& keys,
                                               const std::string& values) { return "    " + keys + ") values=(" + values + ") ;;\n"; })},
             {"TRUTH", kTruth},
             {"OPTIONS", for_options([](const std::string& command, const Names& options, bool settings) {
                return "      " + command + ") options=(" + join(options, " ") + ")" + (settings ? "" : " settings=\"\"") + " ;;\n";
              })},
             {"TRAINING", training_options()},
             {"SETTINGS", settings()},
             {"SECTIONS", sections()},
             {"COMMANDS", commands()},
             {"WORDS", for_own_words([](const std::string& command, const std::string& words) {
                return "      " + command + ") compadd -- " + words + " ;;\n";
              })}});
}

/// A text between single quotes of fish.
std::string quoted_for_fish(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  }
  return out + "'";
}

constexpr const char* kFish = R"sh(# Completion of kf-host for fish: ~/.config/fish/completions/kf-host.fish
function __kf_host_is  # whether the command is one of these
  set -l words (commandline -opc)
  test (count $words) -gt 1; and contains -- $words[2] $argv
end
function __kf_host_follows  # whether the next word is the one behind such a command
  test (count (commandline -opc)) -eq 2; and __kf_host_is $argv
end
)sh";

std::string fish(const config::Catalog& catalog) {
  const std::string line = "complete -c kf-host";
  std::string out = kFish;
  out += line + " -n __fish_use_subcommand -a '" + commands() + "'\n" + line + " -l help\n";
  out += for_own_words([&](const std::string& command, const std::string& words) {
    return line + " -n '__kf_host_follows " + command + "' -a '" + words + "'\n";
  });
  std::string without;  // settings
  out += for_options([&](const std::string& command, const Names& options, bool settings) {
    without += settings ? "" : " " + command;
    const std::string where = command == "train" ? "not __kf_host_is " + join(command_names(), " ") : "__kf_host_is " + command;
    std::string lines;
    for (const std::string& option : options) {
      lines += option == "--help" ? "" : line + " -n '" + where + "' -l " + option.substr(2) + "\n";
    }
    return lines;
  });
  for (const config::Row& row : config::rows()) {
    const std::string values = values_of(row, catalog);
    out += line + " -n 'not __kf_host_is" + without + "' -l " + row.key() + (values.empty() ? " -r" : " -x -a '" + values + "'") + " -d " +
           quoted_for_fish(config::doc_text(row)) + "\n";
  }
  return out;
}

using Written = std::string (*)(const config::Catalog&);
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

std::string completion_for(const std::string& shell, const config::Catalog& catalog) { return shells().at(shell)(catalog); }

}  // namespace kf
