#include "arrow/rows.h"

#include "arrow/cells.h"
#include "core/text.h"

namespace kf::table {
namespace {

void check_type(const arrow::Field& field, const std::string& described, const TableRequest& request) {
  const arrow::DataType& type = *field.type();
  if (request.chat) {
    if (const std::string problem = problem_of_chat(type); !problem.empty()) {
      throw Problem(format("the {} is {}: its type is {}", described, problem, type.ToString()));
    }
    return;
  }
  const bool good = is_text(type) || (!request.strings_only && is_printable(type));
  if (!good) {
    throw Problem(format("the {} is a column of {}, not of strings", described, type.ToString()));
  }
}

}  // namespace

void check_columns(const arrow::Schema& schema, const TableRequest& request) {
  for (std::size_t i = 0; i < request.columns.size(); ++i) {
    const std::vector<int> found = schema.GetAllFieldIndices(request.columns[i]);
    if (found.size() != 1) {
      throw Problem(format("{} {}; the columns are {}", found.empty() ? "no" : "several columns for the", request.described[i],
                           join(schema.field_names(), ", ")));
    }
    check_type(*schema.field(found[0]), request.described[i], request);
  }
}

Rows::Rows(const TableRequest& request) : request_(request), batches_(request.parquet ? open_parquet(request) : open_ipc(request)) {
  row_ = batches_->first_row() - 1;
  values_.resize(request.columns.size());
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
  return request_.chat ? read_chat() : read_fields();
}

bool Rows::next_batch() {
  columns_.clear();
  batch_ = batches_->next();
  at_ = 0;
  if (!batch_) {
    return false;
  }
  for (const std::string& name : request_.columns) {
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

TableRows::Step Rows::read_chat() {
  messages_.clear();
  const std::string problem = chat_at(*columns_[0], at_ - 1, messages_);
  return problem.empty() ? Step::row : broken(format("the {}: {}", request_.described[0], problem));
}

}  // namespace kf::table
