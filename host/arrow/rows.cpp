#include "arrow/rows.h"

#include <algorithm>

#include "arrow/cells.h"
#include "core/text.h"

namespace kf::table {
namespace {

void check_type(const arrow::Field& field, const std::string& described, const TableRequest& request) {
  const arrow::DataType& type = *field.type();
  if (request.json) {
    return;
  }
  const bool good = is_text(type) || (!request.strings_only && is_printable(type));
  if (!good) {
    throw Problem(format("the {} is a column of {}, not of strings", described, type.ToString()));
  }
}

}  // namespace

std::vector<std::string> columns_of(const arrow::Schema& schema, const TableRequest& request) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < request.columns.size(); ++i) {
    std::string name = request.columns[i];
    std::vector<int> found = schema.GetAllFieldIndices(name);
    if (found.empty() && request.json && name.find('.') != std::string::npos) {
      name = name.substr(0, name.find('.'));
      found = schema.GetAllFieldIndices(name);
    }
    if (found.empty() && request.optional[i]) {
      continue;
    }
    if (found.size() != 1) {
      throw Problem(format("{} {}; the columns are {}", found.empty() ? "no" : "several columns for the", request.described[i],
                           join(schema.field_names(), ", ")));
    }
    check_type(*schema.field(found[0]), request.described[i], request);
    if (request.chat && i == 0 && name == request.columns[0]) {
      const arrow::DataType& type = *schema.field(found[0])->type();
      if (const std::string problem = problem_of_chat(type); !problem.empty()) {
        throw Problem(format("the {} is {}: its type is {}", request.described[0], problem, type.ToString()));
      }
    }
    if (std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(std::move(name));
    }
  }
  return out;
}

Rows::Rows(const TableRequest& request) : request_(request), batches_(request.parquet ? open_parquet(request) : open_ipc(request)) {
  row_ = batches_->first_row() - 1;
  names_ = columns_of(*batches_->schema(), request_);
  values_.resize(names_.size());
}

TableRows::Step Rows::next() noexcept {
  try {
    return step();
  } catch (const std::exception& error) {
    error_ = error.what();
  }
  return Step::failed;
}

std::int64_t Rows::position() const noexcept { return batches_->position(); }

TableRows::Step Rows::step() {
  while (!batch_ || at_ == batch_->num_rows()) {
    if (!next_batch()) {
      return Step::end;
    }
  }
  ++row_;
  ++at_;
  return request_.json ? read_json() : read_fields();
}

bool Rows::next_batch() {
  columns_.clear();
  batch_ = batches_->next();
  at_ = 0;
  if (!batch_) {
    return false;
  }
  for (const std::string& name : names_) {
    columns_.push_back(batch_->GetColumnByName(name));
    if (columns_.back() == nullptr) {
      throw Problem(format("a batch without the column {}", kf::quoted(name)));
    }
  }
  return true;
}

TableRows::Step Rows::broken(std::string reason) {
  error_ = std::move(reason);
  return Step::broken;
}

TableRows::Step Rows::read_fields() {
  printed_.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const arrow::Array& column = *columns_[i];
    std::optional<std::string_view> value;
    if (is_text(*column.type())) {
      value = text_at(column, at_ - 1);
    } else if (std::optional<std::string> text = printed_at(column, at_ - 1)) {
      value = printed_.emplace_back(std::move(*text));
    }
    if (!value) {
      return broken(format("the {} is null", request_.described[i]));
    }
    values_[i] = *value;
  }
  return Step::row;
}

TableRows::Step Rows::read_json() {
  printed_.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::string& text = printed_.emplace_back();
    append_json(*columns_[i], at_ - 1, text);
    values_[i] = text;
  }
  return Step::row;
}

}  // namespace kf::table
