#pragma once
// Memory that runs out over a record becomes a message that names the file and what to do.

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/fs.h"

namespace kf {

[[noreturn]] inline void memory_ran_out(const fs::path& file, std::int64_t record) {
  fail(Code::data,
       "{}: memory ran out over {}; a record is held whole, several times over: split what is that long, lower data.max_record_bytes to be "
       "told of it with its place, or lower data.num_workers",
       file, record > 0 ? format("record {}", record) : std::string("one of its records"));
}

/// What `f` gives. Where memory ran out in it: Code::data with the file, and the record's number unless it is 0.
template <class F>
decltype(auto) naming_file(const fs::path& file, std::int64_t record, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const std::bad_alloc&) {
    memory_ran_out(file, record);
  } catch (const std::length_error&) {
    memory_ran_out(file, record);
  }
}

}  // namespace kf
