#pragma once
// SQLite behind two calls. The one file that sees its header is sqlite.cpp.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/fs.h"

struct sqlite3;

namespace kf::sweep {

/// null, integer, real, text.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;
using SqlRow = std::vector<SqlValue>;

/// One connection, one thread. Other processes may write the same file: a locked one is waited for (a minute), then Code::other.
class Database {
 public:
  enum class Mode { create, existing };

  /// How changes are kept until they are whole. Write-ahead logging lets who reads and who writes alone, and shares memory between
  /// processes, so it holds on one machine only; a rollback journal needs nothing but locks of files.
  enum class Journal { wal, rollback };
  /// By the file system of `path`: rollback where machines share it. KF_SWEEP_JOURNAL=wal or rollback says otherwise.
  static Journal journal(const fs::path& path);

  /// With `journal(path)`; every commit is on the disk before it returns, unless `relax` says otherwise.
  Database(const fs::path& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs one statement with values for its `?`; the rows it gives.
  std::vector<SqlRow> run(std::string_view sql, std::initializer_list<SqlValue> values = {});
  /// Runs several statements without values.
  void script(const std::string& sql);
  std::int64_t last_id() const;

  /// From now on (`on`) commits to a write-ahead log are whole but not on the disk at once: where the machine fails, the last ones may be
  /// as if they had never been. The next commit that is on the disk has all earlier ones with it. A rollback journal is not relaxed.
  void relax(bool on);
  bool relaxed() const { return relaxed_; }
  bool in_transaction() const;

  /// All of `body` or nothing of it, with no other writer in between. Inside of another `write`: a part of that.
  template <class F>
  auto write(F&& body) {
    return in_transaction() ? body() : within("BEGIN IMMEDIATE", body);
  }
  /// All statements of `body` see the file as it is at one moment, whatever others write meanwhile. Inside of a `write`: that one's.
  template <class F>
  auto read(F&& body) {
    return in_transaction() ? body() : within("BEGIN", body);
  }

 private:
  template <class F>
  auto within(const char* begin, F& body) {
    Transaction transaction(*this, begin);
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      transaction.commit();
    } else {
      auto result = body();
      transaction.commit();
      return result;
    }
  }

  class Transaction {
   public:
    Transaction(Database& database, const char* begin) : database_(database) { database_.script(begin); }
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit() {
      database_.script("COMMIT");
      done_ = true;
    }

   private:
    Database& database_;
    bool done_ = false;
  };

  void switch_journal(Journal journal);
  [[noreturn]] void failed(std::string_view what) const;

  fs::path path_;
  Journal journal_ = Journal::wal;
  bool relaxed_ = false;
  sqlite3* handle_ = nullptr;
};

}  // namespace kf::sweep
