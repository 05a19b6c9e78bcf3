#pragma once
// "{title}\n\n{body}" taken apart.

#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// `{{` and `}}` stand for braces. `{note?\n}` is a line break and the field note, and nothing where the field is empty or missing.
class TextTemplate {
 public:
  /// `key` (data.text_template) is for messages. Throws Code::config when a brace is left open or a name is empty.
  TextTemplate(std::string_view pattern, const std::string& key);

  struct Piece {
    std::string text;         // as it is, or what stands in front of a field that is not empty
    std::size_t field = kNo;  // the place of a field in `fields`
    bool optional = false;    // {name?...}
  };
  static constexpr std::size_t kNo = static_cast<std::size_t>(-1);
  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<std::string>& fields() const { return fields_; }
  /// Whether a record may lack the field, or have null there.
  bool optional(std::size_t field) const;

 private:
  std::vector<Piece> pieces_;
  std::vector<std::string> fields_;
};

}  // namespace kf
