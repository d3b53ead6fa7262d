// Words for people that several jobs share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace gradloom::app {

// A line of a summary: what it is about, and what is said of it.
using TextRow = std::pair<std::string, std::string>;

std::string counted(std::uint64_t count, std::string_view noun);  // "1 epoch", "30 epochs"
std::string percent(double share);                                // "97.5 %"; no rounding up to 100

// To so many significant digits, in every locale; a number that is too large for a double becomes infinite.
double with_digits(double value, int digits);

}  // namespace gradloom::app
