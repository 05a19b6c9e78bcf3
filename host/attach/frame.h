#pragma once
// What goes over the socket of a run: frames of a kind, a length and as many bytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kf::attach {

/// On the wire: the letter, the length in four bytes (the lowest first), the text.
struct Frame {
  enum class Kind : char {
    hello = 'h',   // to the client, first of all: the protocol's number
    chunk = 'e',   // to the run: Lua that it shall run
    reload = 'r',  // to the run: that it shall read its hooks again; no text
    output = 'o',  // to the client: what a chunk printed and gave
    done = 'd',    // to the client: that was all
    error = 'x',   // to the client: the exit status as a digit, then the message
    bye = 'g'      // to the client: why the run talks to it no more
  };
  Kind kind = Kind::hello;
  std::string text;
};

inline constexpr const char* kProtocol = "1";
/// A chunk that begins so asks for the names that may stand behind what follows, "" for variables: it changes nothing, and the log is not
/// told. To runs that do not know it, it is a comment.
inline constexpr const char* kNamesOf = "--names of ";
/// Bytes of one text.
inline constexpr std::size_t kMostText = std::size_t{1} << 20U;

/// Throws Code::communication for a text that is too long.
std::string to_bytes(const Frame& frame);

/// Puts frames together from bytes as they come; never holds more than one frame and what came with it.
class FrameReader {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }
  /// The next whole frame. Throws Code::communication for bytes that begin none.
  std::optional<Frame> next();

 private:
  std::string bytes_;
};

}  // namespace kf::attach
