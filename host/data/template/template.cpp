#include "data/template/template.h"

#include "data/template/evaluator.h"
#include "data/template/parser.h"

namespace kf::jinja {

struct Template::Impl {
  Parsed parsed;
};

Template::Template(std::string_view source) : impl_(std::make_unique<const Impl>(Impl{parse(source)})) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

bool Template::marks_generation() const { return impl_->parsed.generation; }
Rendered Template::render(const Dict& variables) const { return evaluate(impl_->parsed.block, variables); }

}  // namespace kf::jinja
