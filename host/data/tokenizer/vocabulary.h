#pragma once
// Tokens and their ids, both ways.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

class Vocabulary {
 public:
  /// Where the token or the id is there already, the later one wins, as in the files' own readers.
  void add(std::string_view token, std::uint32_t id);
  std::optional<std::uint32_t> find(std::string_view token) const;
  /// Empty where no token has this id.
  std::optional<std::string_view> token(std::uint32_t id) const;
  /// Tokens.
  std::size_t size() const { return used_; }
  /// One more than the largest id.
  std::uint32_t end() const { return static_cast<std::uint32_t>(tokens_.size()); }
  /// Bytes of the longest token.
  std::size_t longest() const { return longest_; }

 private:
  struct Place {
    std::size_t offset = 0;
    std::uint32_t size = 0;
    bool given = false;
  };
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id_plus_1 = 0;
    Place place;
  };

  std::string_view text(const Place& place) const { return std::string_view(bytes_).substr(place.offset, place.size); }
  Slot& slot(std::string_view token, std::uint32_t hash);
  void grow();

  std::string bytes_;  // of all tokens, one after the other
  std::vector<Place> tokens_;
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace kf
