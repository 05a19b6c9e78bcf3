#include "sweep/sqlite.h"

#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "core/error.h"
#include "core/network_disk.h"

namespace kf::sweep {
namespace {

constexpr int kPatienceMs = 60'000;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

void bind(sqlite3_stmt* statement, int place, const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    sqlite3_bind_int64(statement, place, *integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    sqlite3_bind_double(statement, place, *real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    sqlite3_bind_text(statement, place, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
  } else {
    sqlite3_bind_null(statement, place);
  }
}

SqlValue column(sqlite3_stmt* statement, int index) {
  switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER: return static_cast<std::int64_t>(sqlite3_column_int64(statement, index));
    case SQLITE_FLOAT: return sqlite3_column_double(statement, index);
    case SQLITE_NULL: return std::monostate{};
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, index));
      return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, index)));
    }
  }
}

}  // namespace

Database::Journal Database::journal(const fs::path& path) {
  const char* const asked = std::getenv("KF_SWEEP_JOURNAL");
  if (asked != nullptr && *asked != '\0') {
    const std::string_view word = asked;
    KF_CHECK(word == "wal" || word == "rollback", Code::config, "KF_SWEEP_JOURNAL={}: must be wal or rollback", word);
    return word == "wal" ? Journal::wal : Journal::rollback;
  }
  return network_disk(path).empty() ? Journal::wal : Journal::rollback;
}

Database::Database(const fs::path& path, Mode mode) : path_(path) {
  const int flags = SQLITE_OPEN_READWRITE | (mode == Mode::create ? SQLITE_OPEN_CREATE : 0);
  if (sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr) != SQLITE_OK) {
    const std::string reason = handle_ != nullptr ? sqlite3_errmsg(handle_) : "not enough memory";
    sqlite3_close(handle_);
    fail(Code::other, "cannot open {}: {}", path, reason);
  }
  sqlite3_busy_timeout(handle_, kPatienceMs);
  try {
    journal_ = journal(path);
    switch_journal(journal_);
    run("PRAGMA synchronous = FULL");
    run("PRAGMA foreign_keys = ON");
  } catch (const std::exception&) {
    sqlite3_close(handle_);
    throw;
  }
}

/// The switch does not wait for other connections by itself.
void Database::switch_journal(Journal journal) {
  constexpr int kTries = 300;
  for (int i = 1;; ++i) {
    try {
      run(journal == Journal::wal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
      return;
    } catch (const Error&) {
      if (i == kTries || sqlite3_errcode(handle_) != SQLITE_BUSY) {
        throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

void Database::relax(bool on) {
  if (journal_ == Journal::wal && on != relaxed_) {
    run(on ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
    relaxed_ = on;
  }
}

Database::~Database() { sqlite3_close(handle_); }

Database::Transaction::~Transaction() {
  if (!done_) {
    sqlite3_exec(database_.handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Database::failed(std::string_view what) const { fail(Code::other, "{}: {} ({})", path_, sqlite3_errmsg(handle_), what.substr(0, 60)); }

std::vector<SqlRow> Database::run(std::string_view sql, std::initializer_list<SqlValue> values) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &raw, nullptr) != SQLITE_OK) {
    failed(sql);
  }
  const Statement statement(raw);
  int place = 0;
  for (const SqlValue& value : values) {
    bind(raw, ++place, value);
  }
  std::vector<SqlRow> rows;
  int status = SQLITE_OK;
  while ((status = sqlite3_step(raw)) == SQLITE_ROW) {
    SqlRow row;
    for (int i = 0; i < sqlite3_column_count(raw); ++i) {
      row.push_back(column(raw, i));
    }
    rows.push_back(std::move(row));
  }
  if (status != SQLITE_DONE) {
    failed(sql);
  }
  return rows;
}

void Database::script(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    failed(sql);
  }
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

std::int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle_); }

}  // namespace kf::sweep
