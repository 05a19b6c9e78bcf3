#include "data/tokenizer/regex_sets.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "data/tokenizer/unicode_newer.h"

namespace kf::regex_set {
namespace {

constexpr std::string_view kCategoryNames = "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";

std::string hex(std::uint32_t cp) {
  std::string digits;
  for (int shift = 20; shift >= 0; shift -= 4) {
    digits += "0123456789abcdef"[cp >> shift & 15];
  }
  return "\\x{" + digits + "}";
}

/// The code points newer than PCRE2 whose category begins with `name`.
std::string newer(std::string_view name) {
  std::string out;
  for (const unicode::NewerRange& range : unicode::kNewer) {
    if (kCategoryNames.substr(2 * static_cast<std::size_t>(range.category), 2).starts_with(name)) {
      out += range.first == range.last ? hex(range.first) : hex(range.first) + "-" + hex(range.last);
    }
  }
  return out;
}

bool is_category(std::string_view name) {
  if (name.size() == 1) {
    return std::string_view("LMNPSZC").find(name) != std::string_view::npos;
  }
  for (std::size_t i = 0; i < kCategoryNames.size(); i += 2) {
    if (kCategoryNames.substr(i, 2) == name) {
      return true;
    }
  }
  return false;
}

std::string of(std::string_view category) { return "\\p{" + std::string(category) + "}" + newer(category); }
std::string assigned() { return of("L") + of("M") + of("N") + of("P") + of("S") + of("Z") + of("Cc") + of("Cf") + of("Co"); }
CharSet category(std::string_view name) {
  if (name == "Cn") {
    return {assigned(), true};
  }
  if (name == "C") {
    return {of("L") + of("M") + of("N") + of("P") + of("S") + of("Z"), true};
  }
  return {of(name)};
}

// What Unicode 16 calls so beside the categories that say it.
constexpr const char* kOtherAlphabetic =  // those that PCRE2 does not know
    "\\x{363}-\\x{36f}\\x{897}\\x{c04}\\x{cf3}\\x{f82}-\\x{f83}\\x{1dd3}-\\x{1de6}\\x{10d69}\\x{10efc}\\x{11080}-\\x{11081}\\x{11241}"
    "\\x{113b8}-\\x{113c0}\\x{113c2}\\x{113c5}\\x{113c7}-\\x{113ca}\\x{113cc}-\\x{113cd}"
    "\\x{1171e}\\x{11f00}-\\x{11f01}\\x{11f03}\\x{11f34}-\\x{11f3a}\\x{11f3e}-\\x{11f40}\\x{1611e}-\\x{1612e}\\x{1e08f}";
constexpr const char* kOtherLowercase =
    "\\x{aa}\\x{ba}\\x{2b0}-\\x{2b8}\\x{2c0}-\\x{2c1}\\x{2e0}-\\x{2e4}\\x{345}\\x{37a}\\x{10fc}\\x{1d2c}-\\x{1d6a}\\x{1d78}\\x{1d9b}-\\x{"
    "1dbf}"
    "\\x{2071}\\x{207f}\\x{2090}-\\x{209c}\\x{2170}-\\x{217f}\\x{24d0}-\\x{24e9}\\x{2c7c}-\\x{2c7d}\\x{a69c}-\\x{a69d}\\x{a770}"
    "\\x{a7f2}-\\x{a7f4}\\x{a7f8}-\\x{a7f9}\\x{ab5c}-\\x{ab5f}\\x{ab69}\\x{10780}\\x{10783}-\\x{10785}\\x{10787}-\\x{107b0}"
    "\\x{107b2}-\\x{107ba}\\x{1e030}-\\x{1e06d}";
constexpr const char* kOtherUppercase =
    "\\x{2160}-\\x{216f}\\x{24b6}-\\x{24cf}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

std::string alphabetic() { return "\\p{Alphabetic}" + of("L") + of("Nl") + kOtherAlphabetic; }
std::string graphic() { return of("L") + of("M") + of("N") + of("P") + of("S") + of("Cf") + of("Co"); }

using Sets = std::map<std::string_view, std::string>;

/// The set `name`; "" where there is none.
std::string set_of(const Sets& sets, std::string_view name) {
  const auto found = sets.find(name);
  return found == sets.end() ? "" : found->second;
}

/// Those that Oniguruma's Unicode brackets and properties share.
std::string shared(std::string_view name) {
  static const Sets sets{{"alpha", alphabetic()},     {"alnum", alphabetic() + of("Nd")},    {"digit", of("Nd")},
                         {"space", spaces().members}, {"upper", of("Lu") + kOtherUppercase}, {"lower", of("Ll") + kOtherLowercase},
                         {"graph", graphic()},        {"print", graphic() + of("Zs")},       {"cntrl", of("Cc")},
                         {"xdigit", "0-9a-fA-F"},     {"blank", "\\x{9}" + of("Zs")},        {"ascii", "\\x{0}-\\x{7f}"}};
  return set_of(sets, name);
}

std::string ascii(std::string_view name) {
  static const Sets sets{{"alpha", "a-zA-Z"},
                         {"alnum", "0-9a-zA-Z"},
                         {"digit", "0-9"},
                         {"space", "\\x{9}-\\x{d}\\x{20}"},
                         {"upper", "A-Z"},
                         {"lower", "a-z"},
                         {"graph", "!-~"},
                         {"print", "\\x{20}-~"},
                         {"cntrl", "\\x{0}-\\x{1f}\\x{7f}"},
                         {"xdigit", "0-9a-fA-F"},
                         {"blank", "\\x{9}\\x{20}"},
                         {"ascii", "\\x{0}-\\x{7f}"},
                         {"punct", "!-\\/:-@\\[-`{-~"},
                         {"word", "0-9a-zA-Z_"}};
  return set_of(sets, name);
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != ' ' && c != '_' && c != '-') {
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return out;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 41> kLongNames{{{"letter", "L"},
                                                                                    {"uppercaseletter", "Lu"},
                                                                                    {"lowercaseletter", "Ll"},
                                                                                    {"titlecaseletter", "Lt"},
                                                                                    {"modifierletter", "Lm"},
                                                                                    {"otherletter", "Lo"},
                                                                                    {"mark", "M"},
                                                                                    {"combiningmark", "M"},
                                                                                    {"nonspacingmark", "Mn"},
                                                                                    {"spacingmark", "Mc"},
                                                                                    {"enclosingmark", "Me"},
                                                                                    {"number", "N"},
                                                                                    {"decimalnumber", "Nd"},
                                                                                    {"letternumber", "Nl"},
                                                                                    {"othernumber", "No"},
                                                                                    {"punctuation", "P"},
                                                                                    {"connectorpunctuation", "Pc"},
                                                                                    {"dashpunctuation", "Pd"},
                                                                                    {"openpunctuation", "Ps"},
                                                                                    {"closepunctuation", "Pe"},
                                                                                    {"initialpunctuation", "Pi"},
                                                                                    {"finalpunctuation", "Pf"},
                                                                                    {"otherpunctuation", "Po"},
                                                                                    {"punct", "P"},
                                                                                    {"symbol", "S"},
                                                                                    {"mathsymbol", "Sm"},
                                                                                    {"currencysymbol", "Sc"},
                                                                                    {"modifiersymbol", "Sk"},
                                                                                    {"othersymbol", "So"},
                                                                                    {"separator", "Z"},
                                                                                    {"spaceseparator", "Zs"},
                                                                                    {"lineseparator", "Zl"},
                                                                                    {"paragraphseparator", "Zp"},
                                                                                    {"other", "C"},
                                                                                    {"control", "Cc"},
                                                                                    {"format", "Cf"},
                                                                                    {"surrogate", "Cs"},
                                                                                    {"privateuse", "Co"},
                                                                                    {"unassigned", "Cn"},
                                                                                    {"lc", "LC"},
                                                                                    {"casedletter", "LC"}}};

struct Script {
  std::string_view name;
  const char* newer;  // than PCRE2
};
constexpr std::array<Script, 32> kScripts{
    {{"arabic", "\\x{897}\\x{10ec2}-\\x{10ec4}\\x{10efc}-\\x{10eff}"},
     {"armenian", ""},
     {"balinese", "\\x{1b4e}-\\x{1b4f}\\x{1b7f}"},
     {"bengali", ""},
     {"bopomofo", ""},
     {"common",
      "\\x{2427}-\\x{2429}\\x{2ffc}-\\x{2fff}\\x{31e4}-\\x{31e5}\\x{31ef}\\x{1cc00}-\\x{1ccf9}\\x{1cd00}-\\x{1ceb3}\\x{1d2c0}-\\x{1d2d3}"
      "\\x{1f6dc}\\x{1f774}-\\x{1f776}\\x{1f77b}-\\x{1f77f}\\x{1f7d9}\\x{1f8b2}-\\x{1f8bb}\\x{1f8c0}-\\x{1f8c1}\\x{1fa75}-\\x{1fa77}"
      "\\x{1fa87}-\\x{1fa89}\\x{1fa8f}\\x{1faad}-\\x{1faaf}\\x{1fabb}-\\x{1fabf}\\x{1fac6}\\x{1face}-\\x{1facf}\\x{1fada}-\\x{1fadc}"
      "\\x{1fadf}\\x{1fae8}-\\x{1fae9}\\x{1faf7}-\\x{1faf8}\\x{1fbcb}-\\x{1fbef}"},
     {"cyrillic", "\\x{1c89}-\\x{1c8a}\\x{1e030}-\\x{1e06d}\\x{1e08f}"},
     {"devanagari", "\\x{11b00}-\\x{11b09}"},
     {"ethiopic", ""},
     {"georgian", ""},
     {"greek", ""},
     {"gujarati", ""},
     {"gurmukhi", ""},
     {"han", "\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"},
     {"hangul", ""},
     {"hebrew", ""},
     {"hiragana", "\\x{1b132}"},
     {"inherited", ""},
     {"kannada", "\\x{cf3}"},
     {"katakana", "\\x{1b155}"},
     {"khmer", ""},
     {"lao", "\\x{ece}"},
     {"latin", "\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{1df25}-\\x{1df2a}"},
     {"malayalam", ""},
     {"mongolian", ""},
     {"myanmar", "\\x{116d0}-\\x{116e3}"},
     {"sinhala", ""},
     {"syriac", ""},
     {"tamil", ""},
     {"telugu", ""},
     {"thai", ""},
     {"tibetan", ""}}};

/// Scripts proper: PCRE2 takes a bare name for the script with its extensions. "" for those that were not compared with the libraries.
std::string script(const std::string& name) {
  const auto* found = std::find_if(kScripts.begin(), kScripts.end(), [&](const Script& script) { return script.name == name; });
  return found == kScripts.end() ? "" : "\\p{sc:" + name + "}" + found->newer;
}

}  // namespace

CharSet digits() { return {of("Nd")}; }
CharSet spaces() { return {"\\p{Z}\\x{9}-\\x{d}\\x{85}"}; }

CharSet word(scan::Dialect dialect, bool in_class) {
  static const std::string common = of("L") + of("M") + of("Nl") + of("Nd") + of("Pc") +
                                    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";
  const bool onig = dialect == scan::Dialect::onig;
  return {common + (!onig ? "\\x{200c}\\x{200d}" : in_class ? "" : "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}")};
}

std::optional<CharSet> property(std::string_view written) {
  if (is_category(written)) {
    return category(written);
  }
  const std::string name = plain_name(written);
  if (name.size() == 1 || name.size() == 2) {
    std::string as_category = name;
    as_category[0] = static_cast<char>(name[0] - 'a' + 'A');
    if (is_category(as_category)) {
      return category(as_category);
    }
  }
  for (const auto& [full, known] : kLongNames) {
    if (full == name) {
      return known == "LC" ? CharSet{of("Lu") + of("Ll") + of("Lt")} : category(known);
    }
  }
  if (name == "any") {
    return CharSet{"\\x{0}-\\x{10ffff}"};
  }
  if (name == "assigned") {
    return CharSet{assigned()};
  }
  if (name == "word") {
    return word(scan::Dialect::onig, false);
  }
  static const std::map<std::string_view, std::string_view> long_names{
      {"alphabetic", "alpha"}, {"uppercase", "upper"}, {"lowercase", "lower"}, {"whitespace", "space"}};
  const auto brief = long_names.find(name);
  const std::string members = shared(brief == long_names.end() ? std::string_view(name) : brief->second);
  if (!members.empty()) {
    return CharSet{members};
  }
  const std::string of_script = script(name);
  return of_script.empty() ? std::nullopt : std::optional<CharSet>{CharSet{of_script}};
}

std::optional<CharSet> posix(std::string_view name, scan::Dialect dialect) {
  const bool negated = name.starts_with('^');
  name.remove_prefix(negated ? 1 : 0);
  std::string members;
  if (dialect == scan::Dialect::rust) {
    members = ascii(name);
  } else if (name == "punct") {
    members = of("P") + of("S");
  } else if (name == "word") {
    members = word(dialect, true).members;
  } else {
    members = shared(name);
  }
  return members.empty() ? std::nullopt : std::optional<CharSet>{CharSet{members, negated}};
}

}  // namespace kf::regex_set
