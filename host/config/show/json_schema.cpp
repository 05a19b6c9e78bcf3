#include <utility>

#include "config/load/names.h"
#include "config/show/emit.h"
#include "config/tree/make.h"

namespace kf::config {
namespace {

Node fields_schema(const std::vector<Row>& fields, const Catalog& catalog, bool open);

Node row_schema(const Row& row, const Catalog& catalog) {
  const SchemaContext context{[&](const std::string& kind) { return part_names(catalog, kind); },
                              [&](const std::vector<Row>& fields) { return fields_schema(fields, catalog, false); }};
  Node out = type_row(row.type).schema(row, context);
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
  Node rest = open ? make_table({{"type", make_text("object")}}) : Node(false);
  return make_table(
      {{"type", make_text("object")}, {"properties", Node(std::move(properties))}, {"additionalProperties", std::move(rest)}});
}

/// The own tables of registered parts, [KIND.NAME].
Table part_schemas(const std::string& kind, const Catalog& catalog) {
  Table out;
  if (const auto found = catalog.find(kind); found != catalog.end()) {
    for (const PartInfo& part : found->second) {
      if (!part.fields.empty()) {
        out[part.name] = fields_schema(part.fields, catalog, false);
      }
    }
  }
  return out;
}

}  // namespace

Node to_schema(const Catalog& catalog) {
  Table properties;
  properties["extends"] = make_table(
      {{"type", Node(Array{make_text("string"), make_text("array")})},
       {"items", make_table({{"type", make_text("string")}})},
       {"description", make_text("TOML files whose settings lie below this one's, later ones over earlier ones; relative to this file.")}});
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
      properties[kind] = make_table({{"type", make_text("object")},
                                     {"properties", Node(part_schemas(kind, catalog))},
                                     {"additionalProperties", make_table({{"type", make_text("object")}})}});
    }
  }
  return make_table({{"$schema", make_text("http://json-schema.org/draft-07/schema#")},
                     {"title", make_text("kf-host job")},
                     {"type", make_text("object")},
                     {"properties", Node(std::move(properties))},
                     {"additionalProperties", Node(false)}});
}

}  // namespace kf::config
