#pragma once
// A collective call as a value: what Group's implementations get, compare and carry out. Seen by those alone.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kf {

class Group;
struct Splits;

enum class Op { sum, largest, broadcast, gather, scatter_sum, exchange, barrier };

/// One call of one rank.
struct Call {
  Op op = Op::barrier;
  at::Tensor to;    ///< written; sum, largest and broadcast also read it
  at::Tensor from;  ///< read; undefined for sum, largest, broadcast
  /// By rank: rows of the parts (gather, scatter_sum), rows sent and received (exchange).
  std::vector<std::int64_t> rows, sent, received;
  std::int64_t root = 0;  ///< of broadcast

  /// "gather of float32 [5, 2] in parts of [2, 2, 1] rows": the same text on all ranks, or the calls do not match. Says nothing of how many
  /// rows an exchange moves: the two ranks that they are between have to agree on these alone.
  std::string text() const;
};

/// "float32 [3, 4]".
std::string describe(const at::Tensor& t);

// Checked calls: each throws Code::communication for what no group could carry out.
Call whole_call(const Group& group, Op op, const at::Tensor& t, std::int64_t root = 0);
Call gather_call(const Group& group, const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& rows);
Call scatter_call(const Group& group, const at::Tensor& part, const at::Tensor& whole, const std::vector<std::int64_t>& rows);
Call exchange_call(const Group& group, const at::Tensor& to, const at::Tensor& from, const Splits& splits);
/// A send or a receive.
void check_peer(const Group& group, const char* what, const at::Tensor& t, std::int64_t peer);

/// A sum of up to so many bytes goes from everybody to everybody and is added up by all; above, everybody adds up a part and the sums are
/// gathered. The same order and so the same bits; the first has one exchange less, the second moves less.
inline constexpr std::size_t kSmallSum = 16 << 10;
/// Bytes of tensors that leave this rank in it.
std::int64_t bytes_sent(const Group& group, const Call& call);

/// The rows of `t` that are `rank`'s.
at::Tensor rows_of(const at::Tensor& t, const std::vector<std::int64_t>& rows, std::int64_t rank);

}  // namespace kf
