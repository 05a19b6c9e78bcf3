#pragma once
// Templates in a subset of Jinja, as tokenizers' chat_template is written: everything that the published templates use; what is not known
// is refused by name with its line when the template is read.
//
//   const Template made("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
//   const Rendered out = made.render(variables);      // out.text: with what wrote each byte

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_range.h"
#include "data/template/value.h"

namespace kf::jinja {

struct Rendered {
  Text text;
  std::vector<ByteRange> generation;  // what stands in {% generation %}
};

class Template {
 public:
  /// Throws Code::config naming the line and what is not understood.
  explicit Template(std::string_view source);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  /// Whether it says itself what is to be learned, by {% generation %}.
  bool marks_generation() const;
  /// `variables`: by name. Thread-safe. Throws Code::data naming the line, as for raise_exception, and for a text of more than 1 GiB.
  Rendered render(const Dict& variables) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace kf::jinja
