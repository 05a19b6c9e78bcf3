#include "report/terminal/canvas.h"

#include <array>
#include <cmath>
#include <cstdlib>

namespace kf::report {
namespace {

/// U+2800 and the dots: eight bits (Unicode 6.0, chapter 15.11).
std::string braille(unsigned dots) {
  const unsigned code = 0x2800U + dots;
  return {static_cast<char>(0xe0U | code >> 12U), static_cast<char>(0x80U | (code >> 6U & 0x3fU)),
          static_cast<char>(0x80U | (code & 0x3fU))};
}

/// Of the dot in column x of 2 and row y of 4.
unsigned bit(std::size_t x, std::size_t y) {
  constexpr std::array<std::array<unsigned, 4>, 2> kBits{{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
  return kBits[x][y];
}

}  // namespace

Canvas::Canvas(std::size_t columns, std::size_t rows, bool braille)
    : columns_(columns), rows_(rows), braille_(braille), places_(columns * rows) {}

void Canvas::dot(std::size_t x, std::size_t y, char mark, Color color) {
  Place& place = places_[y / down() * columns_ + x / across()];
  place.dots |= braille_ ? bit(x % 2, y % 4) : 1;
  place.mark = mark;
  place.color = color;
}

void Canvas::line(std::size_t x0, std::size_t y0, std::size_t x1, std::size_t y1, char mark, Color color) {
  const double dx = static_cast<double>(x1) - static_cast<double>(x0), dy = static_cast<double>(y1) - static_cast<double>(y0);
  const double steps = std::max(1.0, std::max(std::abs(dx), std::abs(dy)));
  for (double i = 0; i <= steps; ++i) {
    dot(static_cast<std::size_t>(std::lround(static_cast<double>(x0) + dx * i / steps)),
        static_cast<std::size_t>(std::lround(static_cast<double>(y0) + dy * i / steps)), mark, color);
  }
}

std::string Canvas::row(std::size_t row, bool color) const {
  std::string out;
  std::string blanks;
  for (std::size_t column = 0; column < columns_; ++column) {
    const Place& place = places_[row * columns_ + column];
    if (place.dots == 0) {
      blanks += ' ';
      continue;
    }
    out += blanks + colored(braille_ ? braille(place.dots) : std::string(1, place.mark), color ? place.color : Color::none);
    blanks.clear();
  }
  return out;
}

}  // namespace kf::report
