#pragma once
// The own options of a native part: each named once, bound to the member of the options struct that holds it.

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/part.h"

namespace kf::config {

/// The fields of a part's own table whose values go into an Options; defaults are those of the struct.
template <class Options>
class OwnFields {
 public:
  struct Field {
    Row row;
    std::function<void(const Node&, Options&)> set;
  };

  OwnFields(std::initializer_list<Field> fields) : fields_(fields) {}

  /// As the part registers them.
  std::vector<Row> rows() const {
    std::vector<Row> out;
    for (const Field& field : fields_) {
      out.push_back(field.row);
    }
    return out;
  }

  /// The options of a checked table; what it does not have (settings made by hand) keeps its default.
  Options read(const PartOptions& table) const {
    Options out;
    for (const Field& field : fields_) {
      if (const Node* const node = table.find(field.row.name)) {
        field.set(*node, out);
      }
    }
    return out;
  }

 private:
  std::vector<Field> fields_;
};

/// field("gamma", &MarsOptions::gamma, at_least(0), "Share of ..."): an entry of OwnFields<MarsOptions>.
template <class Options, class T>
typename OwnFields<Options>::Field field(std::string name, T Options::*member, Check check, std::string doc) {
  return {value_row<T>(std::move(name), Options().*member, std::move(check), std::move(doc)),
          [member](const Node& node, Options& out) { from_node(node, out.*member); }};
}

}  // namespace kf::config
