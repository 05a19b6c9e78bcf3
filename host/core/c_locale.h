#pragma once
// The C library's own locale for a stretch of code.

#include <locale.h>  // NOLINT(modernize-deprecated-headers): newlocale is POSIX, not C++

namespace kf {

/// While one exists, this thread reads and writes numbers as the "C" locale does, whatever setlocale was told. For libraries that ask it.
class CLocale {
 public:
  CLocale() : before_(::uselocale(plain())) {}
  ~CLocale() { ::uselocale(before_); }
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  static locale_t plain() {
    static const locale_t made = ::newlocale(LC_ALL_MASK, "C", nullptr);
    return made;
  }
  locale_t before_;
};

}  // namespace kf
