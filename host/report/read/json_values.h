#pragma once
// Values of tables that others wrote: what is not as it should be is not there.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"

namespace kf::report {

inline constexpr std::uint64_t kMostJson = std::uint64_t{1} << 28;  // bytes of run.json and its like

std::string text_at(const config::Table& table, const char* key);
std::optional<std::int64_t> integer_at(const config::Table& table, const char* key);
std::vector<std::string> texts_at(const config::Table& table, const char* key);
/// Null where there is no list.
const config::Array* list_at(const config::Table& table, const char* key);

/// A file of one object. Throws Code::other where it is none.
config::Table read_object(const fs::path& file);

/// "2026-11-28T21:47:03Z" in seconds since 1970; 0 for anything else.
double seconds_of(const std::string& utc);

}  // namespace kf::report
