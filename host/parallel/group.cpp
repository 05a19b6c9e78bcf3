#include "parallel/group.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "core/error.h"
#include "parallel/call.h"
#include "parallel/one_rank.h"

namespace kf {
namespace {

at::Tensor rows_like(const at::Tensor& t, std::int64_t rows) {
  std::vector<std::int64_t> shape = t.sizes().vec();
  shape.at(0) = rows;
  return at::empty(shape, t.options().requires_grad(false));
}

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.mutable_data_ptr<std::uint8_t>()));
  return bytes;
}

}  // namespace

Group::Group(std::string name, std::vector<std::int64_t> ranks, std::int64_t rank)
    : name_(std::move(name)), ranks_(std::move(ranks)), rank_(rank) {}

void Group::run(Call call) { start(std::move(call)).wait(); }

void Group::sum(const at::Tensor& t) { run(whole_call(*this, Op::sum, t)); }
void Group::largest(const at::Tensor& t) { run(whole_call(*this, Op::largest, t)); }
void Group::broadcast(const at::Tensor& t, std::int64_t from) { run(whole_call(*this, Op::broadcast, t, from)); }
void Group::gather(const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& rows) {
  run(gather_call(*this, whole, part, rows));
}
void Group::scatter_sum(const at::Tensor& part, const at::Tensor& whole, const std::vector<std::int64_t>& rows) {
  run(scatter_call(*this, part, whole, rows));
}
void Group::exchange(const at::Tensor& to, const at::Tensor& from, const Splits& splits) { run(exchange_call(*this, to, from, splits)); }
void Group::barrier() { run(Call{}); }
void Group::send(const at::Tensor& t, std::int64_t to) { begin_send(t, to).wait(); }
void Group::receive(const at::Tensor& t, std::int64_t from) { begin_receive(t, from).wait(); }

Pending Group::begin_sum(const at::Tensor& t) { return start(whole_call(*this, Op::sum, t)); }
Pending Group::begin_gather(const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& rows) {
  return start(gather_call(*this, whole, part, rows));
}
Pending Group::begin_scatter_sum(const at::Tensor& part, const at::Tensor& whole, const std::vector<std::int64_t>& rows) {
  return start(scatter_call(*this, part, whole, rows));
}
Pending Group::begin_exchange(const at::Tensor& to, const at::Tensor& from, const Splits& splits) {
  return start(exchange_call(*this, to, from, splits));
}
Pending Group::begin_send(const at::Tensor& t, std::int64_t to) {
  check_peer(*this, "send", t, to);
  return start_send(t, to);
}
Pending Group::begin_receive(const at::Tensor& t, std::int64_t from) {
  check_peer(*this, "receive", t, from);
  return start_receive(t, from);
}

at::Tensor Group::gathered(const at::Tensor& part, std::int64_t length) {
  if (size() == 1) {
    gather(part, part, {length});  // for its checks
    return part;
  }
  at::Tensor whole = rows_like(part, length);
  gather(whole, part);
  return whole;
}

at::Tensor Group::scattered(const at::Tensor& whole) {
  if (size() == 1) {
    scatter_sum(whole, whole);
    return whole;
  }
  at::Tensor part = rows_like(whole, even_rows(whole.size(0), size())[static_cast<std::size_t>(rank())]);
  scatter_sum(part, whole);
  return part;
}

at::Tensor Group::exchanged(const at::Tensor& from, const Splits& splits) {
  if (size() == 1) {
    exchange(from, from, splits);
    return from;
  }
  at::Tensor to = rows_like(from, offsets_of(splits.received).back());
  exchange(to, from, splits);
  return to;
}

Splits Group::agree(const std::vector<std::int64_t>& sent) {
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(size()), 1);
  const at::Tensor mine = at::tensor(sent, at::kLong);
  const at::Tensor theirs = at::empty({size()}, at::kLong);
  exchange(theirs, mine, {ones, ones});
  const auto* const numbers = theirs.const_data_ptr<std::int64_t>();
  return {sent, std::vector<std::int64_t>(numbers, numbers + size())};
}

std::vector<std::string> Group::tell(const std::string& mine) {
  const at::Tensor lengths = at::empty({size()}, at::kLong);
  gather(lengths, at::tensor({static_cast<std::int64_t>(mine.size())}, at::kLong));
  const auto* const numbers = lengths.const_data_ptr<std::int64_t>();
  const std::vector<std::int64_t> rows(numbers, numbers + size());
  const std::vector<std::int64_t> offsets = offsets_of(rows);
  const at::Tensor all = at::empty({offsets.back()}, at::kByte);
  gather(all, bytes_of(mine), rows);
  const char* const text = reinterpret_cast<const char*>(all.const_data_ptr<std::uint8_t>());
  std::vector<std::string> told;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    told.emplace_back(text + offsets[rank], text + offsets[rank + 1]);
  }
  return told;
}

std::unique_ptr<Group> Group::part(const std::string& name, const std::vector<std::int64_t>& ranks) {
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  KF_CHECK(own != ranks.end(), Code::communication, "rank {} of group {} is not of its part {}", rank_, name_, name);
  KF_CHECK(std::is_sorted(ranks.begin(), ranks.end(), std::less_equal<>()) && ranks.front() >= 0 && ranks.back() < size(),
           Code::communication, "part {} of group {}: its ranks are not ascending, or not of this group", name, name_);
  std::vector<std::int64_t> of_world;
  std::string key = name;
  for (const std::int64_t rank : ranks) {
    of_world.push_back(ranks_[static_cast<std::size_t>(rank)]);
    key += "," + to_text(of_world.back());
  }
  if (ranks.size() == 1) {
    return std::make_unique<OneRank>(name, of_world.front());
  }
  const std::int64_t before = std::count(parts_.begin(), parts_.end(), key);
  parts_.push_back(key);
  return make_part(name, format("{}#{}", key, before), std::move(of_world), own - ranks.begin());
}

}  // namespace kf
