#include <utility>

#include "config/load/names.h"
#include "config/show/emit.h"
#include "core/text.h"

namespace kf::config {
namespace {

Node texts(const std::vector<std::string>& values) {
  Array out;
  for (const std::string& value : values) {
    out.emplace_back(value);
  }
  return Node(std::move(out));
}

Node object(
    std::vector<std::pair<std::string, Node>> entries) {  // NOLINT(performance-unnecessary-value-param): moved from, through `value`
  Table out;
  for (auto& [key, value] : entries) {
    out[key] = std::move(value);
  }
  return Node(std::move(out));
}

Node text(const char* value) { return Node(std::string(value)); }

Node number_schema(const Check& check, const char* type) {
  Node out = object({{"type", text(type)}});
  if (check.min) {
    (*out.table())[check.above_min ? "exclusiveMinimum" : "minimum"] = Node(check.automatic ? -1.0 : *check.min);
  }
  if (check.max) {
    (*out.table())[check.below_max ? "exclusiveMaximum" : "maximum"] = Node(*check.max);
  }
  return out;
}

Node text_schema(const Check& check, const Catalog& catalog) {
  if (!check.choices.empty()) {
    return object({{"type", text("string")}, {"enum", texts(check.choices)}});
  }
  const std::vector<std::string> names = check.kind.empty() ? std::vector<std::string>() : part_names(catalog, check.kind);
  if (!names.empty()) {
    return object({{"anyOf", Node(Array{object({{"type", text("string")}, {"enum", texts(names)}}), object({{"type", text("string")}})})}});
  }
  return object({{"type", text("string")}});
}

Node list_schema(Node items) { return object({{"type", text("array")}, {"items", std::move(items)}}); }

Node fields_schema(const std::vector<Row>& fields, const Catalog& catalog, bool open);

Node row_schema(const Row& row, const Catalog& catalog) {
  Node out;
  switch (row.type) {
    case Type::boolean: out = object({{"type", text("boolean")}}); break;
    case Type::integer: out = number_schema(row.check, "integer"); break;
    case Type::real:
    case Type::duration: out = number_schema(row.check, "number"); break;
    case Type::durations:
      out = object({{"anyOf", Node(Array{number_schema(row.check, "number"), list_schema(number_schema(row.check, "number"))})}});
      break;
    case Type::text: out = text_schema(row.check, catalog); break;
    case Type::pair:
      out = list_schema(number_schema(row.check, "number"));
      (*out.table())["minItems"] = (*out.table())["maxItems"] = Node(std::int64_t{2});
      break;
    case Type::reals: out = list_schema(number_schema(row.check, "number")); break;
    case Type::integers: out = list_schema(number_schema(row.check, "integer")); break;
    case Type::texts: out = list_schema(text_schema(row.check, catalog)); break;
    case Type::list: out = object({{"type", text("array")}}); break;
    case Type::numbers: out = object({{"type", text("object")}, {"additionalProperties", number_schema(row.check, "number")}}); break;
    case Type::record: out = fields_schema(row.fields, catalog, false); break;
    case Type::records: out = list_schema(fields_schema(row.fields, catalog, false)); break;
  }
  (*out.table())["description"] = Node(doc_text(row));
  if (!row.fallback.is_null()) {
    (*out.table())["default"] = row.fallback;
  }
  return out;
}

Node fields_schema(const std::vector<Row>& fields, const Catalog& catalog, bool open) {
  Table properties;
  for (const Row& row : fields) {
    properties[row.name] = row_schema(row, catalog);
  }
  Node rest = open ? object({{"type", text("object")}}) : Node(false);
  return object({{"type", text("object")}, {"properties", Node(std::move(properties))}, {"additionalProperties", std::move(rest)}});
}

/// The own tables of registered parts, [KIND.NAME].
Table part_schemas(const std::string& kind, const Catalog& catalog) {
  Table out;
  if (const auto found = catalog.find(kind); found != catalog.end()) {
    for (const PartInfo& part : found->second) {
      if (!part.fields.empty()) {
        out[part.name] = fields_schema(part_rows(part), catalog, false);
      }
    }
  }
  return out;
}

}  // namespace

Node to_schema(const Catalog& catalog) {
  Table properties;
  properties["extends"] = object(
      {{"type", Node(Array{text("string"), text("array")})},
       {"items", object({{"type", text("string")}})},
       {"description", text("TOML files whose settings lie below this one's, later ones over earlier ones; relative to this file.")}});
  for (const Section& section : sections()) {
    std::vector<Row> fields;
    for (const Row& row : rows()) {
      if (row.section == section.name) {
        fields.push_back(row);
      }
    }
    Node schema = fields_schema(fields, catalog, catalog.contains(section.name));
    (*schema.table())["description"] = Node(section.doc);
    for (auto& [name, part] : part_schemas(section.name, catalog)) {
      (*(*schema.table())["properties"].table())[name] = part;
    }
    properties[section.name] = std::move(schema);
  }
  for (const Row& row : rows()) {
    if (row.section.empty()) {
      properties[row.name] = row_schema(row, catalog);
    }
  }
  for (const auto& [kind, parts] : catalog) {
    if (!is_section(kind)) {
      properties[kind] = object({{"type", text("object")},
                                 {"properties", Node(part_schemas(kind, catalog))},
                                 {"additionalProperties", object({{"type", text("object")}})}});
    }
  }
  return object({{"$schema", text("http://json-schema.org/draft-07/schema#")},
                 {"title", text("kf-host job")},
                 {"type", text("object")},
                 {"properties", Node(std::move(properties))},
                 {"additionalProperties", Node(false)}});
}

}  // namespace kf::config
