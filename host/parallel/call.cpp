#include "parallel/call.h"

#include <c10/core/ScalarType.h>

#include <numeric>

#include "core/error.h"
#include "parallel/group.h"

namespace kf {
namespace {

template <class Numbers>
std::string list_of(const Numbers& numbers) {
  std::vector<std::string> texts;
  for (const std::int64_t number : numbers) {
    texts.push_back(to_text(number));
  }
  return "[" + join(texts, ", ") + "]";
}

const char* name_of(Op op) {
  switch (op) {
    case Op::sum: return "sum";
    case Op::largest: return "largest";
    case Op::broadcast: return "broadcast";
    case Op::gather: return "gather";
    case Op::scatter_sum: return "scatter_sum";
    case Op::exchange: return "exchange";
    case Op::barrier: return "barrier";
  }
  return "";
}

void check(bool condition, const Group& group, const char* what, const std::string& problem) {
  KF_CHECK(condition, Code::communication, "{} in group {}: {}", what, group.name(), problem);
}

void check_tensor(const Group& group, const char* what, const at::Tensor& t) {
  check(t.defined(), group, what, "a tensor that is not defined");
  check(t.is_contiguous(), group, what, describe(t) + " is not contiguous");
}

void check_no_sum_of_bool(const Group& group, const char* what, const at::Tensor& t) {
  check(t.scalar_type() != at::kBool, group, what, "bool has no sum; `largest` says whether any is true");
}

std::int64_t total(const std::vector<std::int64_t>& rows) { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }

// Whether `rows` has an entry for each rank, none negative, `all` together, and `t` has `all` rows of them.
void check_rows(const Group& group, const char* what, const char* whose, const std::vector<std::int64_t>& rows, const at::Tensor& t) {
  check(static_cast<std::int64_t>(rows.size()) == group.size(), group, what,
        format("{} rows {} for {} ranks", whose, list_of(rows), group.size()));
  for (const std::int64_t count : rows) {
    check(count >= 0, group, what, format("{} rows {}", whose, list_of(rows)));
  }
  check(total(rows) == t.size(0), group, what, format("{} rows {} are not the rows of {}", whose, list_of(rows), describe(t)));
}

// Two tensors of rows of the same kind.
void check_alike(const Group& group, const char* what, const at::Tensor& a, const at::Tensor& b) {
  check_tensor(group, what, a);
  check_tensor(group, what, b);
  const bool alike = a.dim() >= 1 && a.dim() == b.dim() && a.scalar_type() == b.scalar_type() && a.sizes().slice(1) == b.sizes().slice(1) &&
                     a.device() == b.device();
  check(alike, group, what, format("{} and {} do not have rows of one kind", describe(a), describe(b)));
}

Call parts_call(const Group& group, Op op, const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& rows) {
  const char* const what = name_of(op);
  check_alike(group, what, whole, part);
  Call call;
  call.op = op;
  call.rows = rows.empty() ? even_rows(whole.size(0), group.size()) : rows;
  check_rows(group, what, "parts of", call.rows, whole);
  const std::int64_t own = call.rows[static_cast<std::size_t>(group.rank())];
  check(part.size(0) == own, group, what, format("the part is {}, its rows should be {}", describe(part), own));
  return call;
}

}  // namespace

std::string describe(const at::Tensor& t) { return c10::getDtypeNames(t.scalar_type()).first + " " + list_of(t.sizes()); }

std::string Call::text() const {
  std::string text = name_of(op);
  switch (op) {
    case Op::sum:
    case Op::largest: return text + " of " + describe(to);
    case Op::broadcast: return text + format(" of {} from rank {}", describe(to), root);
    case Op::gather: return text + format(" of {} in parts of {} rows", describe(to), list_of(rows));
    case Op::scatter_sum: return text + format(" of {} in parts of {} rows", describe(from), list_of(rows));
    case Op::exchange: return text + format(" of {} rows {}", c10::getDtypeNames(to.scalar_type()).first, list_of(to.sizes().slice(1)));
    case Op::barrier: return text;
  }
  return text;
}

Call whole_call(const Group& group, Op op, const at::Tensor& t, std::int64_t root) {
  check_tensor(group, name_of(op), t);
  if (op == Op::sum) {
    check_no_sum_of_bool(group, name_of(op), t);
  }
  check(root >= 0 && root < group.size(), group, name_of(op), format("rank {} of {}", root, group.size()));
  Call call;
  call.op = op;
  call.to = t;
  call.root = root;
  return call;
}

Call gather_call(const Group& group, const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& rows) {
  Call call = parts_call(group, Op::gather, whole, part, rows);
  call.to = whole;
  call.from = part;
  return call;
}

Call scatter_call(const Group& group, const at::Tensor& part, const at::Tensor& whole, const std::vector<std::int64_t>& rows) {
  Call call = parts_call(group, Op::scatter_sum, whole, part, rows);
  check_no_sum_of_bool(group, "scatter_sum", whole);
  call.to = part;
  call.from = whole;
  return call;
}

Call exchange_call(const Group& group, const at::Tensor& to, const at::Tensor& from, const Splits& splits) {
  check_alike(group, "exchange", to, from);
  check_rows(group, "exchange", "received", splits.received, to);
  check_rows(group, "exchange", "sent", splits.sent, from);
  const auto own = static_cast<std::size_t>(group.rank());
  check(splits.sent[own] == splits.received[own], group, "exchange",
        format("{} rows sent to this rank itself, {} received from it", splits.sent[own], splits.received[own]));
  Call call;
  call.op = Op::exchange;
  call.to = to;
  call.from = from;
  call.sent = splits.sent;
  call.received = splits.received;
  return call;
}

void check_peer(const Group& group, const char* what, const at::Tensor& t, std::int64_t peer) {
  check_tensor(group, what, t);
  check(peer >= 0 && peer < group.size(), group, what, format("rank {} of {}", peer, group.size()));
  check(peer != group.rank(), group, what, format("rank {} is this rank itself", peer));
}

std::int64_t bytes_sent(const Group& group, const Call& call) {
  const auto own = static_cast<std::size_t>(group.rank());
  const std::int64_t others = group.size() - 1;
  const auto bytes = [](const at::Tensor& t) { return t.defined() ? static_cast<std::int64_t>(t.nbytes()) : 0; };
  switch (call.op) {
    case Op::sum:
    case Op::largest: {
      if (call.to.nbytes() <= kSmallSum) {
        return others * bytes(call.to);
      }
      const std::int64_t mine = even_rows(call.to.numel(), group.size())[own] * static_cast<std::int64_t>(call.to.element_size());
      return bytes(call.to) - mine + others * mine;
    }
    case Op::broadcast: return group.rank() == call.root ? others * bytes(call.to) : 0;
    case Op::gather: return others * bytes(call.from);
    case Op::scatter_sum: return bytes(call.from) - bytes(call.to);
    case Op::exchange: return bytes(call.from) - bytes(rows_of(call.from, call.sent, group.rank()));
    case Op::barrier: return 0;
  }
  return 0;
}

at::Tensor rows_of(const at::Tensor& t, const std::vector<std::int64_t>& rows, std::int64_t rank) {
  const std::int64_t begin = std::accumulate(rows.begin(), rows.begin() + rank, std::int64_t{0});
  return t.narrow(0, begin, rows[static_cast<std::size_t>(rank)]);
}

}  // namespace kf
