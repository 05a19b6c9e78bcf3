#include "app/help/man_page.h"

#include <algorithm>
#include <cctype>

#include "app/help/help.h"
#include "config/schema/schema.h"
#include "config/show/emit.h"

namespace kf {
namespace {

/// Text that stands for itself: a backslash, a dash and a point at a line's start mean something to roff.
std::string literal(const std::string& text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    begins_line = c == '\n';
  }
  return out;
}

std::string as_it_stands(const std::string& text) { return ".nf\n" + literal(text) + (text.ends_with('\n') ? "" : "\n") + ".fi\n"; }

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string settings() {
  std::string out = ".SH SETTINGS\nOf a job's TOML file, and of the command line as \\-\\-section.key=value.\n";
  for (const config::Row& row : config::rows()) {
    const std::string allowed = config::allowed_text(row);
    out += ".TP\n.B " + literal(row.key()) + "\n" + literal(config::type_text(row)) + ", " + literal(config::value_text(row.fallback)) +
           (allowed.empty() ? "" : ", " + literal(allowed)) + ".\n" + literal(config::doc_text(row)) + "\n";
  }
  return out;
}

constexpr const char* kEnvironment = R"(.SH ENVIRONMENT
.TP
.B KF_TORCH_DIR
The folder of torch 2.11.0 (with lib/libtorch_cpu.so in it) to take instead of the one beside the program.
.TP
.B KF_LUA_PATH
Folders in which scripts look for modules, behind their own folder; between them a semicolon.
.TP
.B OMP_NUM_THREADS
Threads that compute; unset, one for each physical core that the process may use.
.TP
.B NO_COLOR
Any value: no colours.
)";

}  // namespace

std::string man_page() {
  std::string out = ".TH KF\\-HOST 1\n.SH NAME\nkf\\-host \\- train language models, configured by TOML, scripted by Lua\n.SH SYNOPSIS\n" +
                    as_it_stands(kHelp) + ".SH COMMANDS\n";
  for (const std::string& command : command_names()) {
    out += ".SS " + literal(upper(command)) + "\n" + as_it_stands(command_page(command));
  }
  return out + settings() + kEnvironment + ".SH SEE ALSO\nThe pages in share/doc/kf\\-host; luajit(1).\n";
}

}  // namespace kf
