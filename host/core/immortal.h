#pragma once
// What is still used while the process ends.

namespace kf {

/// A T that is never destroyed: destructors of other statics, and handlers of exit(), may use it.
template <class T>
union Immortal {
  T value;
  Immortal() : value() {}
  ~Immortal() {}  // NOLINT(modernize-use-equals-default): of a union with such a member it would be deleted
};

}  // namespace kf
