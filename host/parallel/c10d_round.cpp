#include "parallel/c10d_round.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string_view>

#include "core/text.h"
#include "parallel/reduce.h"
#include "parallel/rows.h"

namespace kf {
namespace {

constexpr std::int64_t kNote = 256;  // bytes

std::uint64_t mix(std::uint64_t hash, std::string_view text) {  // FNV-1a: the same in every process
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}
std::uint64_t hash_of(std::string_view text) { return mix(0xcbf29ce484222325U, text); }

// Tags of notes are below 2^29, of tensors from 2^30: they never meet.
int note_tag(std::int64_t number, bool letter) { return static_cast<int>((number & 0xfffffff) << 1) | static_cast<int>(letter); }
int tensor_tag(std::string_view text) { return static_cast<int>(hash_of(text) & 0x3fffffffU) | 0x40000000; }

at::Tensor note_of(std::string text) {
  if (static_cast<std::int64_t>(text.size()) > kNote) {
    const std::string rest = format(" ... (#{})", hash_of(text) % 1000000007);
    text = text.substr(0, static_cast<std::size_t>(kNote) - rest.size()) + rest;
  }
  at::Tensor note = at::zeros({kNote}, at::kByte);
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(note.mutable_data_ptr<std::uint8_t>()));
  return note;
}

std::string text_of(const at::Tensor& note) {
  const char* const text = reinterpret_cast<const char*>(note.const_data_ptr<std::uint8_t>());
  return {text, std::find(text, text + kNote, '\0')};
}

// The parts of a call, moved between all pairs of ranks.
class Round {
 public:
  Round(GlooLink& link, const Group& group, const Call& call, std::int64_t number, GlooLink::Clock::time_point deadline)
      : link_(link), group_(group), call_(call), number_(number), deadline_(deadline), text_(call.text()) {}

  void carry_out() {
    send_notes();
    switch (call_.op) {
      case Op::sum:
      case Op::largest: reduce(); break;
      case Op::broadcast: broadcast(); break;
      case Op::gather: move(cut(call_.to, call_.rows), same(call_.from)); break;
      case Op::scatter_sum: scatter(); break;
      case Op::exchange: move(cut(call_.to, call_.received), cut(call_.from, call_.sent)); break;
      case Op::barrier: read_notes(); break;
    }
  }

 private:
  using Tensors = std::vector<at::Tensor>;  // by rank; this rank's own are copied, not sent; undefined or empty: nothing

  std::int64_t size() const { return group_.size(); }
  std::int64_t own() const { return group_.rank(); }

  // What a note to `peer`, or from it, says: the call's text, and for an exchange the rows that go that way.
  std::string note_text(std::int64_t peer, bool to_peer) const {
    if (call_.op != Op::exchange) {
      return text_;
    }
    const auto rows = to_peer ? call_.sent : call_.received;
    return text_ + format(", {} of them from rank {} to rank {}", rows[static_cast<std::size_t>(peer)],
                          group_.ranks()[static_cast<std::size_t>(to_peer ? own() : peer)],
                          group_.ranks()[static_cast<std::size_t>(to_peer ? peer : own())]);
  }

  void send_notes() {
    for (std::int64_t peer = 0; peer < size(); ++peer) {
      notes_.push_back(peer == own() ? at::Tensor() : at::empty({kNote}, at::kByte));
      if (peer != own()) {
        note_messages_.push_back(link_.receive(notes_.back(), peer, note_tag(number_, false)));
        note_messages_.push_back(link_.send(note_of(note_text(peer, true)), peer, note_tag(number_, false)));
      }
    }
  }

  void read_notes() {
    for (const auto& message : note_messages_) {
      link_.wait(message, deadline_);
    }
    note_messages_.clear();
    for (std::int64_t peer = 0; peer < static_cast<std::int64_t>(notes_.size()); ++peer) {
      const at::Tensor& note = notes_[static_cast<std::size_t>(peer)];
      if (peer == own() || text_of(note) == text_of(note_of(note_text(peer, false)))) {
        continue;
      }
      const auto& ranks = group_.ranks();
      // In order of ranks, so that both say the same.
      std::string a = format("rank {} calls {}", ranks[static_cast<std::size_t>(own())], note_text(peer, false));
      std::string b = format("rank {} calls {}", ranks[static_cast<std::size_t>(peer)], text_of(note));
      throw Mismatch{own() < peer ? a + ", " + b : b + ", " + a};
    }
    notes_.clear();
  }

  // The tag of the tensor that `sender` sends: of the call and its phase, and where only these two know its length, of that, too.
  int tag(const at::Tensor& t) const { return tensor_tag(format("call {}.{} {} {}", number_, phase_, text_, t.numel())); }

  // Each rank's `from[peer]` goes to that peer's `to[rank]`. The notes travel along with the first tensors and are read before these are
  // waited for.
  void move(const Tensors& to, const Tensors& from) {
    std::vector<std::shared_ptr<Message>> messages;
    for (std::int64_t peer = 0; peer < size(); ++peer) {
      const at::Tensor& in = to[static_cast<std::size_t>(peer)];
      const at::Tensor& out = from[static_cast<std::size_t>(peer)];
      if (peer == own()) {
        if (in.defined() && out.defined()) {
          copy_unless_same(in, out);
        }
        continue;
      }
      if (in.defined()) {
        messages.push_back(link_.receive(in, peer, tag(in)));
      }
      if (out.defined()) {
        messages.push_back(link_.send(out, peer, tag(out)));
      }
    }
    read_notes();
    for (const auto& message : messages) {
      link_.wait(message, deadline_);
    }
    ++phase_;
  }

  Tensors cut(const at::Tensor& t, const std::vector<std::int64_t>& rows) const {
    Tensors parts;
    for (std::int64_t rank = 0; rank < size(); ++rank) {
      parts.push_back(rows_of(t, rows, rank));
    }
    return parts;
  }
  Tensors same(const at::Tensor& t) const { return Tensors(static_cast<std::size_t>(size()), t); }
  // Room for a tensor like `t` from every rank; of this one, t itself.
  Tensors others_like(const at::Tensor& t) const {
    Tensors parts;
    for (std::int64_t rank = 0; rank < size(); ++rank) {
      parts.push_back(rank == own() ? t : at::empty(t.sizes(), t.options().requires_grad(false)));
    }
    return parts;
  }
  // Of parts that are the call's result or room for what came.
  at::Tensor reduced(const Tensors& parts) const { return call_.op == Op::largest ? largest_of(parts) : sum_in_order(parts, true); }

  void reduce() {
    const at::Tensor flat = call_.to.detach().view({-1});
    if (flat.nbytes() <= kSmallSum) {
      const Tensors all = others_like(flat);
      move(all, same(flat));
      copy_unless_same(flat, reduced(all));
      return;
    }
    const Tensors parts = cut(flat, even_rows(flat.numel(), size()));
    const at::Tensor& mine = parts[static_cast<std::size_t>(own())];
    const Tensors theirs = others_like(mine);
    move(theirs, parts);
    copy_unless_same(mine, reduced(theirs));
    move(parts, same(mine));
  }

  void broadcast() {
    const bool root = own() == call_.root;
    Tensors to(static_cast<std::size_t>(size())), from = to;
    if (root) {
      from = same(call_.to);
    } else {
      to[static_cast<std::size_t>(call_.root)] = call_.to;
    }
    move(to, from);
  }

  void scatter() {
    const Tensors parts = cut(call_.from, call_.rows);
    const Tensors theirs = others_like(parts[static_cast<std::size_t>(own())]);
    move(theirs, parts);
    copy_unless_same(call_.to, sum_in_order(theirs, own() != 0));  // the caller's rows stay
  }

  GlooLink& link_;
  const Group& group_;
  const Call& call_;
  const std::int64_t number_;
  const GlooLink::Clock::time_point deadline_;
  const std::string text_;
  int phase_ = 0;
  Tensors notes_;
  std::vector<std::shared_ptr<Message>> note_messages_;
};

}  // namespace

Letter begin_letter(GlooLink& link, const at::Tensor& t, std::int64_t peer, std::int64_t number, bool sends) {
  const std::string text = describe(t);
  const int note = note_tag(number, true), tensor = tensor_tag(format("letter {} {}", number, text));
  if (sends) {
    return {link.send(note_of(text), peer, note), link.send(t, peer, tensor), {}};
  }
  const at::Tensor said = at::empty({kNote}, at::kByte);
  return {link.receive(said, peer, note), link.receive(t, peer, tensor), said};
}

void finish_letter(GlooLink& link, const Group& group, const Letter& letter, const at::Tensor& t, std::int64_t peer, bool sends,
                   GlooLink::Clock::time_point deadline) {
  link.wait(letter.note, deadline);
  if (!sends && text_of(letter.said) != text_of(note_of(describe(t)))) {
    throw Mismatch{format("rank {} receives {} from rank {}, which sends {}", group.ranks()[static_cast<std::size_t>(group.rank())],
                          describe(t), group.ranks()[static_cast<std::size_t>(peer)], text_of(letter.said))};
  }
  link.wait(letter.tensor, deadline);
}

void carry_out_round(GlooLink& link, const Group& group, const Call& call, std::int64_t number, GlooLink::Clock::time_point deadline) {
  Round(link, group, call, number, deadline).carry_out();
}

}  // namespace kf
