#include "checkpoint/pickle/unpickle.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "checkpoint/pickle/cursor.h"
#include "checkpoint/pickle/globals.h"
#include "checkpoint/pickle/opcodes.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::pickle {
namespace {

/// Follows the instructions over a stack of values, as Python does.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const Place& place, const Limits& limits)
      : in_(bytes.first(std::min<std::uint64_t>(bytes.size(), limits.bytes)), place), place_(place), limits_(limits) {}

  Unpickled run() {
    check(in_.left() > 0 && in_.number<std::uint8_t>() == static_cast<std::uint8_t>(Op::proto),
          "is none of protocol 2 to 5: it does not begin with PROTO");
    const auto protocol = in_.number<std::uint8_t>();
    check(protocol >= 2 && protocol <= 5, "is of protocol {}; 2 to 5 are read", protocol);
    for (;;) {
      at_ = in_.position();
      const auto code = in_.number<std::uint8_t>();
      op_ = static_cast<Op>(code);
      if (op_ == Op::stop) {
        break;
      }
      if (!literal() && !container() && !naming() && !moving()) {
        refuse(format("has the instruction {}, which is not read: files of tensors need none such", name_of(code)));
      }
      spend(0);
    }
    const Id root = pop();
    check(stack_.empty() && marks_.empty(), "ends with values that belong to nothing");
    check_tree(nodes_, root, place_, limits_);
    return {std::move(nodes_), root, in_.position()};
  }

 private:
  // --- the instructions, each group true where it has the present one ---

  /// Numbers and texts.
  bool literal() {
    switch (op_) {
      case Op::none: return push({Kind::none});
      case Op::newtrue: return push({Kind::boolean, 1});
      case Op::newfalse: return push({Kind::boolean, 0});
      case Op::binint: return push({Kind::integer, in_.number<std::int32_t>()});
      case Op::binint1: return push({Kind::integer, in_.number<std::uint8_t>()});
      case Op::binint2: return push({Kind::integer, in_.number<std::uint16_t>()});
      case Op::long1: return push_long(in_.number<std::uint8_t>());
      case Op::long4: return push_long(size_of_four());
      case Op::binfloat: return push_real();
      case Op::short_binunicode: return push_text(Kind::text, in_.number<std::uint8_t>());
      case Op::binunicode: return push_text(Kind::text, in_.number<std::uint32_t>());
      case Op::binunicode8: return push_text(Kind::text, in_.number<std::uint64_t>());
      case Op::short_binstring: return push_text(Kind::text, in_.number<std::uint8_t>());  // of Python 2: names of tensors are such
      case Op::binstring: return push_text(Kind::text, size_of_four());
      case Op::short_binbytes: return push_text(Kind::bytes, in_.number<std::uint8_t>());
      case Op::binbytes: return push_text(Kind::bytes, in_.number<std::uint32_t>());
      case Op::binbytes8:
      case Op::bytearray8: return push_text(Kind::bytes, in_.number<std::uint64_t>());
      default: return false;
    }
  }

  bool container() {
    switch (op_) {
      case Op::mark: return marks_.push_back(stack_.size()), true;
      case Op::empty_list: return push({Kind::list});
      case Op::empty_tuple: return push({Kind::tuple});
      case Op::empty_dict: return push({Kind::dict});
      case Op::empty_set: return push({Kind::set});
      case Op::list: return push_items(Kind::list, above_mark());
      case Op::tuple: return push_items(Kind::tuple, above_mark());
      case Op::frozenset: return push_items(Kind::set, above_mark());
      case Op::dict: return push_items(Kind::dict, above_mark());
      case Op::tuple1: return push_items(Kind::tuple, top(1));
      case Op::tuple2: return push_items(Kind::tuple, top(2));
      case Op::tuple3: return push_items(Kind::tuple, top(3));
      case Op::append: return add(Kind::list, top(1));
      case Op::appends: return add(Kind::list, above_mark());
      case Op::additems: return add(Kind::set, above_mark());
      case Op::setitem: return add(Kind::dict, top(2));
      case Op::setitems: return add(Kind::dict, above_mark());
      default: return false;
    }
  }

  /// Globals, what is made of them, and what is stored elsewhere.
  bool naming() {
    switch (op_) {
      case Op::global: {
        const std::string_view module = in_.line();
        return push_global(module, in_.line());
      }
      case Op::stack_global: {
        const std::vector<Id> names = top(2);
        check(nodes_[names[0]].kind == Kind::text && nodes_[names[1]].kind == Kind::text, "names a global by something else than texts");
        return push_global(nodes_[names[0]].text, nodes_[names[1]].text);
      }
      case Op::reduce:
      case Op::newobj: return make(top(2));
      case Op::build: return build();
      case Op::binpersid: return push_items(Kind::reference, top(1));
      default: return false;
    }
  }

  /// The stack and the memo.
  bool moving() {
    switch (op_) {
      case Op::pop: return pop(), true;
      case Op::pop_mark: return above_mark(), true;
      case Op::dup: return push_again(last());
      case Op::binput: return keep(in_.number<std::uint8_t>());
      case Op::long_binput: return keep(in_.number<std::uint32_t>());
      case Op::memoize: return keep(memo_.size());
      case Op::binget: return recall(in_.number<std::uint8_t>());
      case Op::long_binget: return recall(in_.number<std::uint32_t>());
      case Op::frame: {
        const auto length = in_.number<std::uint64_t>();
        check(length <= in_.left(), "has a frame of {} bytes, and only {} follow", length, in_.left());
        return true;
      }
      default: return false;
    }
  }

  // --- the stack ---

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Id last() {
    check(stack_.size() > floor(), "takes a value from an empty stack");
    return stack_.back();
  }

  Id pop() {
    const Id out = last();
    stack_.pop_back();
    return out;
  }

  /// The topmost values in their order, taken off.
  std::vector<Id> top(std::size_t count) {
    check(stack_.size() >= floor() + count, "takes a value from an empty stack");
    std::vector<Id> out(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }

  std::vector<Id> above_mark() {
    check(!marks_.empty(), "has no MARK where one is needed");
    std::vector<Id> out(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return out;
  }

  bool push(Node node) {
    spend(sizeof(Node) + node.items.size() * sizeof(Id));
    nodes_.push_back(std::move(node));
    return push_again(static_cast<Id>(nodes_.size() - 1));
  }

  bool push_again(Id id) {
    stack_.push_back(id);
    return true;
  }

  bool push_items(Kind kind, std::vector<Id> items) {
    check(kind != Kind::dict || items.size() % 2 == 0, "has a dict with a key and no value");
    Node node{kind};
    node.items = std::move(items);
    return push(std::move(node));
  }

  /// Limits on what is made: marks and the stack are counted as they stand.
  void spend(std::uint64_t bytes) {
    spent_ += bytes;
    const std::uint64_t held = spent_ + (stack_.size() + 2 * marks_.size()) * sizeof(Id) + memo_.size() * 32;
    check(held <= limits_.memory && nodes_.size() < std::numeric_limits<Id>::max(), "holds values of more than {} bytes", limits_.memory);
  }

  // --- values ---

  std::uint32_t size_of_four() {
    const auto size = in_.number<std::int32_t>();
    check(size >= 0, "has a length of {}", size);
    return static_cast<std::uint32_t>(size);
  }

  bool push_long(std::uint32_t size) {
    const std::string_view digits = in_.take(size);
    if (size > sizeof(std::int64_t)) {
      return push({.kind = Kind::large_integer, .text = digits});
    }
    std::uint64_t bits = size > 0 && (static_cast<std::uint8_t>(digits.back()) & 0x80) != 0 ? ~std::uint64_t{0} : 0;  // its sign
    std::memcpy(&bits, digits.data(), size);
    return push({Kind::integer, static_cast<std::int64_t>(bits)});
  }

  bool push_real() {  // the one number of pickles that is big-endian
    std::uint64_t bits = 0;
    for (const char byte : in_.take(sizeof bits)) {
      bits = bits << 8 | static_cast<std::uint8_t>(byte);
    }
    return push({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
  }

  bool push_text(Kind kind, std::uint64_t size) { return push({.kind = kind, .text = in_.take(size)}); }

  bool push_global(std::string_view module, std::string_view name) {
    const std::string_view known = allowed_global(module, name);
    if (known.empty()) {
      refuse(
          format("names {}, which is not on the list of what files of tensors need; nothing else is read, because pickles can run any code "
                 "by such "
                 "names. Save the tensors alone, as with torch.save(model.state_dict(), FILE), or as safetensors",
                 kf::quoted(format("{}.{}", module, name))));
    }
    return push({.kind = Kind::global, .text = known});
  }

  bool add(Kind kind, const std::vector<Id>& items) {
    Node& to = nodes_[last()];
    check(to.kind == kind, "adds items to {}", words_for(to.kind));
    check(kind != Kind::dict || items.size() % 2 == 0, "has a dict with a key and no value");
    to.items.insert(to.items.end(), items.begin(), items.end());
    spend(items.size() * sizeof(Id));
    return true;
  }

  /// A call in Python, a name with arguments here.
  bool make(const std::vector<Id>& call) {
    const std::string_view name = nodes_[call[0]].text;
    check(nodes_[call[0]].kind == Kind::global, "calls {}", words_for(nodes_[call[0]].kind));
    check(nodes_[call[1]].kind == Kind::tuple, "calls {} with {} in place of a tuple", name, words_for(nodes_[call[1]].kind));
    if (name == "collections.OrderedDict" || name == "collections.Counter" || name == "collections.defaultdict") {
      return push_items(Kind::dict, dict_items(name, nodes_[call[1]].items));
    }
    return push({.kind = Kind::object, .text = name, .items = {call[1]}});
  }

  /// Items of a dict that is made by a call: of nothing, of another dict, or of a list of pairs (as Python 2 has it).
  std::vector<Id> dict_items(std::string_view name, const std::vector<Id>& arguments) {
    if (arguments.empty() || name == "collections.defaultdict") {
      return {};
    }
    const Node& from = nodes_[arguments[0]];
    spend(from.items.size() * 2 * sizeof(Id));
    if (from.kind == Kind::dict) {
      return from.items;
    }
    std::vector<Id> out;
    check(from.kind == Kind::list, "makes a dict of {}", words_for(from.kind));
    for (const Id pair : from.items) {
      const Node& node = nodes_[pair];
      check((node.kind == Kind::list || node.kind == Kind::tuple) && node.items.size() == 2, "makes a dict of what are no pairs");
      out.insert(out.end(), node.items.begin(), node.items.end());
    }
    return out;
  }

  /// Attributes that are set on an object. A dict's (the `_metadata` of state dicts) say nothing of its items and are left.
  bool build() {
    const Id state = pop();
    Node& to = nodes_[last()];
    check(to.kind == Kind::object || to.kind == Kind::dict, "sets the state of {}", words_for(to.kind));
    if (to.kind == Kind::object) {
      check(to.items.size() == 1, "sets the state of a {} twice", to.text);
      to.items.push_back(state);
    }
    return true;
  }

  // --- the memo ---

  bool keep(std::uint64_t index) {
    memo_[index] = last();
    check(memo_.size() <= limits_.memo, "keeps more than {} values to name them again", limits_.memo);
    return true;
  }

  bool recall(std::uint64_t index) {
    const auto found = memo_.find(index);
    check(found != memo_.end(), "names value {} again, which it never kept", index);
    return push_again(found->second);
  }

  template <class... Args>
  void check(bool holds, std::string_view pattern, const Args&... args) const {
    if (!holds) [[unlikely]] {
      refuse(format(pattern, args...));
    }
  }
  [[noreturn]] void refuse(const std::string& what) const {
    fail(Code::checkpoint, "{}: the pickle {} (byte {})", place_.file, what, place_.offset + at_);
  }

  Cursor in_;
  const Place& place_;
  const Limits& limits_;
  Op op_ = Op::stop;
  std::uint64_t at_ = 0;  // of the present instruction
  std::vector<Node> nodes_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, Id> memo_;
  std::uint64_t spent_ = 0;
};

}  // namespace

Unpickled unpickle(std::span<const std::byte> bytes, const Place& place, const Limits& limits) {
  return Machine(bytes, place, limits).run();
}

}  // namespace kf::pickle
