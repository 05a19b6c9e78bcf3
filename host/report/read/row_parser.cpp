#include "report/read/row_parser.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "report/read/line_file.h"

namespace kf::report {
namespace {

namespace od = simdjson::ondemand;

static_assert(LineFile::kPadding >= simdjson::SIMDJSON_PADDING);

constexpr std::size_t kMostBroken = 100;  // lines that are named
constexpr std::string_view kEval = "eval.";

/// "nan", "inf", "-inf" as rows spell them.
std::optional<double> not_finite(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "nan") {
    return std::nan("");
  }
  return text == "inf" ? std::optional(kInfinity) : text == "-inf" ? std::optional(-kInfinity) : std::nullopt;
}

/// Columns that grow row by row. A row comes number by number, and counts when it is whole.
class Builder {
 public:
  Columns columns;

  /// Of a name that came first now; its earlier rows have gaps.
  std::size_t add_column(std::string name) {
    columns.columns.push_back({std::move(name), {}});
    return columns.columns.size() - 1;
  }
  void begin_row() { numbers_.clear(); }
  void put(std::size_t column, double value) { numbers_.emplace_back(column, value); }
  void end_row(std::int64_t step) {
    const std::size_t row = columns.steps.size();
    columns.steps.push_back(step);
    for (const auto& [column, value] : numbers_) {
      std::vector<double>& values = columns.columns[column].values;
      values.resize(row, gap());  // of a column that came behind what it lacked
      values.push_back(value);
    }
  }
  /// Takes the rows of `next` behind its own; `next` keeps its columns, empty. `column_of`: of a name, which may come first now.
  template <class ColumnOf>
  void take_from(Builder& next, ColumnOf column_of) {
    for (Column& from : next.columns.columns) {
      if (!from.values.empty()) {
        std::vector<double>& to = columns.columns[column_of(from.name)].values;
        to.resize(columns.steps.size(), gap());
        to.insert(to.end(), from.values.begin(), from.values.end());
        from.values.clear();
      }
    }
    columns.steps.insert(columns.steps.end(), next.columns.steps.begin(), next.columns.steps.end());
    next.columns.steps.clear();
  }
  /// The columns as long as there are rows.
  void level() {
    for (Column& column : columns.columns) {
      column.values.resize(columns.steps.size(), gap());
    }
  }

 private:
  std::vector<std::pair<std::size_t, double>> numbers_;  // of the row that is not yet whole; of a name that comes twice the last counts
};

}  // namespace

class RowParser::Lines {
 public:
  explicit Lines(std::vector<std::string> wanted) : wanted_(std::move(wanted)) {}

  void take(std::string_view lines) {
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = lines.find('\n', at);
      const std::string_view line = lines.substr(at, end - at);
      ++lines_;
      if (const std::string fault = line.empty() ? "" : row_fault(line); !fault.empty()) {
        if (broken_.size() < kMostBroken) {
          broken_.push_back({lines_, fault});
        }
        ++broken_count_;
      }
      at = end + 1;
    }
  }

  void take_from(Lines& next) {
    steps_.take_from(next.steps_, [this](const std::string& name) { return step_column(name); });
    evals_.take_from(next.evals_, [this](const std::string& path) { return eval_column(path); });
    for (BrokenLine& line : next.broken_) {
      if (broken_.size() < kMostBroken) {
        broken_.push_back({lines_ + line.line, std::move(line.fault)});
      }
    }
    broken_count_ += std::exchange(next.broken_count_, 0);
    lines_ += std::exchange(next.lines_, 0);
    next.broken_.clear();
  }
  void level() {
    steps_.level();
    evals_.level();
  }

  const Columns& steps() const { return steps_.columns; }
  const Columns& evals() const { return evals_.columns; }
  const std::vector<BrokenLine>& broken() const { return broken_; }
  std::int64_t broken_count() const { return broken_count_; }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  enum class Special { no, step, eval, not_finite };
  /// A key of rows, and what is done with it.
  struct Known {
    std::string name;
    Special special = Special::no;
    std::size_t column = kNone;  // kNone: it is not wanted
  };

  /// Takes one row; what keeps the line from being one, "" where it is.
  std::string row_fault(std::string_view line) {
    od::document document;
    od::object row;
    if (parser_.iterate(line.data(), line.size(), line.size() + LineFile::kPadding).get(document) != simdjson::SUCCESS ||
        document.get_object().get(row) != simdjson::SUCCESS) {
      return "it is no JSON object";
    }
    steps_.begin_row();
    evals_.begin_row();
    step_.reset();
    is_eval_ = false;
    std::size_t place = 0;
    for (auto got : row) {
      od::field field;
      if (std::move(got).get(field) != simdjson::SUCCESS) {
        return "it is broken JSON";
      }
      const Known& key = known(field, line, place++);
      if (std::string fault = take_value(key, field.value()); !fault.empty()) {
        return fault;
      }
    }
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
      return "it goes on behind its object";
    }
    if (!step_ || *step_ < 0) {
      return "it has no step";
    }
    (is_eval_ ? evals_ : steps_).end_row(*step_);
    return {};
  }

  std::string take_value(const Known& key, od::value value) {
    switch (key.special) {
      case Special::step: {
        std::int64_t step = 0;
        if (value.get_int64().get(step) != simdjson::SUCCESS) {
          return "its step is no integer";
        }
        step_ = step;
        return {};
      }
      case Special::eval: is_eval_ = true; return eval_fault(value, "");
      case Special::not_finite: return not_finite_fault(value, steps_, "");
      case Special::no: break;
    }
    if (key.column == kNone) {
      return {};
    }
    const std::optional<double> number = number_of(value);
    if (!number) {
      return format("'{}' is no number", key.name);
    }
    steps_.put(key.column, *number);
    return {};
  }

  /// A gap for null; nothing for what is no number.
  static std::optional<double> number_of(od::value value) {
    double number = 0;
    if (value.get_double().get(number) == simdjson::SUCCESS) {
      return number;
    }
    bool null = false;
    return value.is_null().get(null) == simdjson::SUCCESS && null ? std::optional(gap()) : std::nullopt;
  }

  /// The numbers of an evaluation, or below `prefix` of one of its sets.
  std::string eval_fault(od::value value, const std::string& prefix) {
    od::object numbers;
    if (value.get_object().get(numbers) != simdjson::SUCCESS) {
      return "its evaluation is no object";
    }
    for (auto got : numbers) {
      od::field field;
      std::string_view name;
      if (std::move(got).get(field) != simdjson::SUCCESS || field.unescaped_key().get(name) != simdjson::SUCCESS) {
        return "it is broken JSON";
      }
      const std::string path = prefix + std::string(name);
      od::value one = field.value();
      od::json_type type{};
      if (one.type().get(type) != simdjson::SUCCESS) {
        return "it is broken JSON";
      }
      std::string fault;
      if (type == od::json_type::object) {
        fault = name == "not_finite" ? not_finite_fault(one, evals_, prefix)
                : prefix.empty()     ? eval_fault(one, path + ".")
                                     : format("'{}' is no number", path);
      } else if (const std::size_t column = eval_column(path); column != kNone) {
        const std::optional<double> number = number_of(one);
        fault = number ? "" : format("'{}' is no number", path);
        evals_.put(column, number.value_or(0));
      }
      if (!fault.empty()) {
        return fault;
      }
    }
    return {};
  }

  /// {"loss": "nan"}: what the nulls of this row were.
  std::string not_finite_fault(od::value value, Builder& rows, const std::string& prefix) {
    od::object names;
    if (value.get_object().get(names) != simdjson::SUCCESS) {
      return "its not_finite is no object";
    }
    for (auto got : names) {
      od::field field;
      std::string_view name, text;
      if (std::move(got).get(field) != simdjson::SUCCESS || field.unescaped_key().get(name) != simdjson::SUCCESS) {
        return "it is broken JSON";
      }
      const std::string path = prefix + std::string(name);
      if (field.value().get_string().get(text) != simdjson::SUCCESS || !not_finite(text)) {
        return format("not_finite says nothing of '{}' that it could", path);
      }
      const std::size_t column = &rows == &steps_ ? step_column(path) : eval_column(path);
      if (column != kNone) {
        rows.put(column, *not_finite(text));
      }
    }
    return {};
  }

  /// Rows have their keys in one order, so what stood at this place before is looked at first.
  const Known& known(od::field& field, std::string_view line, std::size_t place) {
    const char* const raw = field.key().raw();
    const auto left = static_cast<std::size_t>(line.data() + line.size() - raw);
    if (place < order_.size()) {
      const Known& guess = *order_[place];
      if (guess.name.size() < left && std::memcmp(raw, guess.name.data(), guess.name.size()) == 0 && raw[guess.name.size()] == '"') {
        return guess;
      }
    }
    std::string_view name;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) {
      name = "";
    }
    const Known& found = entry(std::string(name));
    // A name with escapes is never the one that stands there, so it costs a look into the map each time.
    order_.resize(std::max(order_.size(), place + 1), &found);
    order_[place] = &found;
    return found;
  }

  const Known& entry(const std::string& name) {
    const auto [at, is_new] = known_.try_emplace(name);
    Known& out = at->second;
    if (is_new) {
      out.name = name;
      out.special = special(name);
      if (out.special == Special::no && wants(name)) {
        out.column = steps_.add_column(name);
      }
    }
    return out;
  }

  static Special special(std::string_view name) {
    if (name == "step") {
      return Special::step;
    }
    if (name == "eval") {
      return Special::eval;
    }
    return name == "not_finite" ? Special::not_finite : Special::no;
  }

  std::size_t step_column(const std::string& name) { return entry(name).column; }

  std::size_t eval_column(const std::string& path) {
    std::vector<Column>& all = evals_.columns.columns;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].name == path) {
        return i;
      }
    }
    return wants(std::string(kEval) + path) ? evals_.add_column(path) : kNone;
  }

  bool wants(const std::string& name) const { return wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end(); }

  std::vector<std::string> wanted_;
  od::parser parser_;
  Builder steps_, evals_;
  std::unordered_map<std::string, Known> known_;  // its entries stay where they are
  std::vector<const Known*> order_;               // by their place in the last row
  std::optional<std::int64_t> step_;              // of the row at hand
  bool is_eval_ = false;
  std::int64_t lines_ = 0, broken_count_ = 0;
  std::vector<BrokenLine> broken_;
};

RowParser::RowParser(std::vector<std::string> wanted) : lines_(std::make_unique<Lines>(std::move(wanted))) {}
RowParser::~RowParser() = default;
RowParser::RowParser(RowParser&& other) noexcept = default;
RowParser& RowParser::operator=(RowParser&& other) noexcept = default;

void RowParser::take(std::string_view lines) { lines_->take(lines); }
void RowParser::take_from(RowParser& next) { lines_->take_from(*next.lines_); }
void RowParser::level() { lines_->level(); }
const Columns& RowParser::steps() const { return lines_->steps(); }
const Columns& RowParser::evals() const { return lines_->evals(); }
const std::vector<BrokenLine>& RowParser::broken() const { return lines_->broken(); }
std::int64_t RowParser::broken_count() const { return lines_->broken_count(); }

}  // namespace kf::report
