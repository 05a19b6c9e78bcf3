#include "data/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/error.h"

namespace kf {
namespace {

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeStack {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

/// What a match needs of memory. The stack lets patterns with nested repeats go over long runs.
struct Workspace {
  std::unique_ptr<pcre2_match_context, FreeContext> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, FreeStack> stack{pcre2_jit_stack_create(std::size_t{32} << 10, std::size_t{64} << 20, nullptr)};
  std::unique_ptr<pcre2_match_data, FreeMatch> data{pcre2_match_data_create(1, nullptr)};

  Workspace() { pcre2_jit_stack_assign(context.get(), nullptr, stack.get()); }
};

}  // namespace

struct Regex::Code_ {
  pcre2_code* code = nullptr;
  explicit Code_(pcre2_code* given) : code(given) {}
  ~Code_() { pcre2_code_free(code); }
  Code_(const Code_&) = delete;
  Code_& operator=(const Code_&) = delete;
};

Regex::Regex(std::string_view pattern, scan::Dialect dialect, const std::string& where) : pattern_(pattern), where_(where) {
  const std::string translated = translate_regex(pattern, dialect, where);
  const std::uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | (dialect == scan::Dialect::onig ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options, &error, &offset, nullptr);
  KF_CHECK(code != nullptr, Code::data, "{}: the regular expression {} does not compile: {}", where, kf::quoted(pattern),
           message_of(error));
  code_ = std::make_unique<Code_>(code);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where it cannot, the interpreter runs the same code
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::each_match(std::string_view text, const std::function<bool(std::size_t, std::size_t)>& found) const {
  thread_local Workspace workspace;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t last_end = std::string_view::npos;
  for (std::size_t from = 0; from <= text.size();) {
    const int count = pcre2_match(code_->code, subject, text.size(), from, 0, workspace.data.get(), workspace.context.get());
    if (count == PCRE2_ERROR_NOMATCH) {
      return;
    }
    KF_CHECK(count >= 0, Code::data, "{}: the regular expression {} failed on a text of {} bytes: {}", where_, kf::quoted(pattern_),
             text.size(), message_of(count));
    const PCRE2_SIZE* at = pcre2_get_ovector_pointer(workspace.data.get());
    if (at[0] == at[1] && at[1] == last_end) {  // an empty match right behind a match is none, as in both libraries
      from += from < text.size() ? unicode::decode(text.data() + from, text.data() + text.size()).size : 1;
      continue;
    }
    if (!found(at[0], at[1])) {
      return;
    }
    from = last_end = at[1];
  }
}

}  // namespace kf
