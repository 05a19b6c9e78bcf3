#pragma once
// Dots and marks on a grid of characters.

#include <cstddef>
#include <string>
#include <vector>

#include "report/terminal/printable.h"

namespace kf::report {

/// Each character is `across` x `down` dots: 2 x 4 of Braille, or one mark.
class Canvas {
 public:
  /// `braille`: dots of Braille; otherwise what was drawn last shows its mark.
  Canvas(std::size_t columns, std::size_t rows, bool braille);

  std::size_t width() const { return columns_ * across(); }  // in dots
  std::size_t height() const { return rows_ * down(); }
  /// A line of dots between two places, from the top left corner; both ends lie on the canvas.
  void line(std::size_t x0, std::size_t y0, std::size_t x1, std::size_t y1, char mark, Color color);
  /// The characters of a row, without blanks at its end.
  std::string row(std::size_t row, bool color) const;

 private:
  struct Place {
    unsigned dots = 0;
    char mark = ' ';
    Color color = Color::none;
  };
  std::size_t across() const { return braille_ ? 2 : 1; }
  std::size_t down() const { return braille_ ? 4 : 1; }
  void dot(std::size_t x, std::size_t y, char mark, Color color);

  std::size_t columns_, rows_;
  bool braille_;
  std::vector<Place> places_;
};

}  // namespace kf::report
