#include "report/read/row_file.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"

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

  void clear() {
    columns = {};
    numbers_.clear();
  }
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

class RowFile::Parser {
 public:
  Parser(fs::path file, std::vector<std::string> wanted) : file_(std::move(file)), wanted_(std::move(wanted)) {}

  News read() {
    const News news = file_.look();
    if (news == News::again) {
      steps_.clear();
      evals_.clear();
      known_.clear();
      order_.clear();
      broken_.clear();
      broken_count_ = lines_ = 0;
    }
    const std::uint64_t before = file_.offset();
    for (std::string_view lines = file_.next(); !lines.empty(); lines = file_.next()) {
      take(lines);
    }
    steps_.level();
    evals_.level();
    if (news == News::again) {
      return news;
    }
    return file_.offset() > before ? News::more : News::nothing;
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

  LineFile file_;
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

RowFile::RowFile(fs::path file, std::vector<std::string> wanted) : parser_(std::make_unique<Parser>(std::move(file), std::move(wanted))) {}
RowFile::~RowFile() = default;
RowFile::RowFile(RowFile&& other) noexcept = default;
RowFile& RowFile::operator=(RowFile&& other) noexcept = default;

News RowFile::read() { return parser_->read(); }
const Columns& RowFile::steps() const { return parser_->steps(); }
const Columns& RowFile::evals() const { return parser_->evals(); }
const std::vector<BrokenLine>& RowFile::broken() const { return parser_->broken(); }
std::int64_t RowFile::broken_count() const { return parser_->broken_count(); }

RowFile::Series RowFile::find(std::string_view metric) const {
  const bool eval = metric.starts_with(kEval);
  const Columns& rows = eval ? evals() : steps();
  const Column* const column = rows.find(eval ? metric.substr(kEval.size()) : metric);
  return column != nullptr ? Series{&rows.steps, &column->values} : Series{};
}

std::vector<std::string> RowFile::names() const {
  std::vector<std::string> out;
  for (const Column& column : steps().columns) {
    out.push_back(column.name);
  }
  for (const Column& column : evals().columns) {
    out.push_back(std::string(kEval) + column.name);
  }
  return out;
}

}  // namespace kf::report
