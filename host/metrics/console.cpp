#include "metrics/console.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <string_view>
#include <utility>

#include "config/plan/plan.h"
#include "core/decimal.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/log_keep.h"
#include "core/text.h"
#include "core/wrap.h"
#include "metrics/names/names.h"

namespace kf {
namespace {

constexpr std::size_t kHeaderWidth = 80;
constexpr std::size_t kRowColumns = 59;  // of a row whose steps have five digits
constexpr std::size_t kMfuColumns = 7;   // what it gives up first on narrow terminals
constexpr std::size_t kNotesIndent = 6;  // of notes that stand below their row
constexpr double kRedraw = 0.1;          // seconds

/// The console whose bar log lines must not tear; the log's guard takes plain functions.
ConsoleSink* active = nullptr;

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}
std::string left(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

/// Fixed decimals while the number fits its column, else powers of ten; "nan" and "inf" without a sign of their own.
std::string number(double value, int digits, double most, int power_digits = 0) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value > 0 ? "inf" : "-inf";
  }
  if (std::abs(value) < most) {
    return fixed(value, digits);
  }
  return scientific(value, power_digits);
}

/// A column of the table, with a blank before the number: decimals go first where it grows, then powers of ten stand for it.
std::string cell(double value, int digits, std::size_t width) {
  for (; digits >= 0; --digits) {
    const std::string text = number(value, digits, std::numeric_limits<double>::infinity());
    if (text.size() < width) {
      return right(text, width);
    }
  }
  return right(number(value, 0, 0), width);
}

std::string rate_text(double lr) { return lr == 0 ? "0" : number(lr, 0, 0, 1); }

bool set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

ConsoleOptions stdout_options() {
  const char* const term = std::getenv("TERM");
  ConsoleOptions options;
  options.bar = ::isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
  options.color = options.bar && !set("NO_COLOR");
  if (terminal_columns(STDOUT_FILENO) > 0) {
    options.columns = [] { return static_cast<int>(std::max<std::size_t>(1, terminal_columns(STDOUT_FILENO))); };
  }
  return options;
}

std::string header_line(const std::string& label, const std::string& text, const std::string& right_text) {
  const std::string line = left(label, 8) + text;
  return right_text.empty() ? line : line + "  " + right(right_text, line.size() + 2 < kHeaderWidth ? kHeaderWidth - 2 - line.size() : 0);
}

std::string short_count(double value) {
  constexpr std::array<const char*, 5> units{"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return number(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, 1e4) + units[unit];
}

ConsoleSink::ConsoleSink(std::ostream& out, ConsoleOptions options) : out_(out), options_(std::move(options)), began_(options_.clock()) {
  if (options_.bar) {
    active = this;
    log::set_terminal_guard(before_log, after_log);
  }
}

ConsoleSink::~ConsoleSink() {
  if (options_.bar) {
    log::set_terminal_guard(nullptr, nullptr);
    active = nullptr;
    const std::lock_guard lock(drawing_);
    erase();
    out_.flush();
  }
}

void ConsoleSink::begin(const RunInfo& run) {
  max_steps_ = run.plan.max_steps;
  start_step_ = done_ = run.completed_steps;
  began_ = options_.clock();
}

void ConsoleSink::row(const StepRow& row) {
  flush_row();
  row_ = row;
  if (row.has_loss) {
    last_ = row;
  }
  rate_.add(row.tokens_per_sec);
  if (const double* const waited = find_number(row.extra, row_key::data_wait)) {
    noted_step_ = row.step;
    notes_.push_back("waits for data " + number(100 * *waited, 0, 1e4) + " %");
  }
}

void ConsoleSink::eval(const EvalResult& result) {
  std::string note = "val " + (result.has_loss() ? number(result.loss, 3, 1e4) : "-");
  if (result.bits_per_byte) {
    note += " (" + number(*result.bits_per_byte, 2, 1e4) + " bits/byte)";
  }
  if (result.ema) {
    note += ", ema " + number(*result.ema, 3, 1e4);
  }
  noted_step_ = result.step;
  notes_.push_back(std::move(note));
  for (const EvalResult& set : result.sets) {
    notes_.push_back(set.name + " " + (set.has_loss() ? number(set.loss, 3, 1e4) : "-"));
  }
}

void ConsoleSink::saved(std::int64_t step, const fs::path& checkpoint) {
  noted_step_ = step;
  notes_.push_back("saved " + checkpoint.filename().string());
}

void ConsoleSink::step_over(std::int64_t step) {
  done_ = step;
  flush_row();
  if (options_.bar && options_.clock() - drawn_at_ >= kRedraw) {
    const std::lock_guard lock(drawing_);
    draw();
    out_.flush();
    drawn_at_ = options_.clock();
  }
}

void ConsoleSink::end(const RunResult& /*result*/) {
  flush_row();
  const std::lock_guard lock(drawing_);
  erase();
  out_.flush();
}

void ConsoleSink::flush_row() {
  if (!row_ && notes_.empty()) {
    return;
  }
  if (!header_printed_) {
    header_printed_ = true;
    const std::string header =
        right("step", step_width()) + "     loss    ppl      lr     grad   tok/s" + (shows_mfu() ? "    mfu" : "") + "   eta";
    print(options_.color ? "\x1b[1m" + header + "\x1b[0m" : header);
    log::keep(header);
  }
  // Notes of a step that has no row (evaluated or saved between two logged ones) stand on a line with its number alone.
  const std::string row = row_ ? table_row(*row_) : right(std::to_string(noted_step_), step_width());
  const std::string notes = join(notes_, "  ");
  const std::size_t width = options_.columns ? static_cast<std::size_t>(std::max(1, options_.columns())) : std::string::npos;
  const std::string line = notes.empty() ? row : left(row, row_columns()) + "   " + notes;
  if (line.size() <= width) {
    print(line);
  } else {  // the notes go below
    print(row);
    std::string below = std::string(kNotesIndent, ' ') + notes;
    below = wrapped(below, width, kNotesIndent);
    for (const std::string& part : split(below, '\n')) {
      print(part);
    }
  }
  log::keep(line);
  row_.reset();
  notes_.clear();
}

void ConsoleSink::print(const std::string& line) {
  const std::lock_guard lock(drawing_);
  const bool redraw = drawn_;
  erase();
  out_ << line << '\n';
  if (redraw) {
    draw();
  }
  out_.flush();
}

std::size_t ConsoleSink::step_width() const { return std::max<std::size_t>(5, std::to_string(max_steps_).size()); }

std::size_t ConsoleSink::row_columns() const { return kRowColumns + step_width() - 5 - (shows_mfu() ? 0 : kMfuColumns); }

bool ConsoleSink::shows_mfu() const {
  return !options_.columns || kRowColumns + step_width() - 5 <= static_cast<std::size_t>(std::max(1, options_.columns()));
}

std::string ConsoleSink::table_row(const StepRow& row) const {
  const auto of_loss = [&row](double value, int digits, std::size_t width) {
    return row.has_loss ? cell(value, digits, width) : right("-", width);
  };
  return right(std::to_string(row.step), step_width()) + of_loss(row.loss, 4, 9) + of_loss(perplexity(row.ce), 1, 7) + "  " +
         left(rate_text(row.lr), 7) + of_loss(row.grad_norm, 3, 7) + right(short_count(row.tokens_per_sec), 8) +
         (shows_mfu() ? right(row.mfu > 0 ? number(100 * row.mfu, 0, 1e4) + " %" : "-", kMfuColumns) : "") + right(eta(row.step), 7);
}

/// From the time that the steps of this process took so far, evaluations and saves included.
std::string ConsoleSink::eta(std::int64_t step) const {
  const std::int64_t here = step - start_step_;
  if (here <= 0 || max_steps_ < step) {
    return "-";
  }
  const double a_step = (options_.clock() - began_) / static_cast<double>(here);
  return human_seconds(a_step * static_cast<double>(max_steps_ - step));
}

std::string ConsoleSink::bar_line() const {
  std::string text = format(" {}/{}", done_, max_steps_);
  if (last_) {
    text += format("  loss {}  {} tok/s", number(last_->loss, 3, 1e4), short_count(rate_.value()));
  }
  text += "  eta " + eta(done_);
  const int columns = options_.columns ? options_.columns() : 80;
  const int width = std::min(35, columns - 3 - static_cast<int>(text.size()));  // the last column stays free: some terminals wrap there
  if (width < 5) {
    return std::string(trim(text).substr(0, static_cast<std::size_t>(std::max(0, columns - 1))));
  }
  const double share = max_steps_ > 0 ? static_cast<double>(done_) / static_cast<double>(max_steps_) : 0;
  const auto filled = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  std::string inside(filled, '=');
  if (filled < static_cast<std::size_t>(width)) {
    inside += '>';
  }
  return "[" + left(inside, static_cast<std::size_t>(width)) + "]" + text;
}

void ConsoleSink::draw() {
  out_ << '\r' << bar_line() << "\x1b[K";
  drawn_ = true;
}

void ConsoleSink::erase() {
  if (std::exchange(drawn_, false)) {
    out_ << "\r\x1b[K";
  }
}

// The lock is held across the log line, which goes to another stream.
void ConsoleSink::before_log() {
  active->drawing_.lock();
  if (active->drawn_) {
    active->out_ << "\r\x1b[K" << std::flush;
  }
}

void ConsoleSink::after_log() {
  if (active->drawn_) {
    active->draw();
    active->out_.flush();
  }
  active->drawing_.unlock();
}

}  // namespace kf
