#include "gradloom/app/text.h"

#include <fmt/format.h>

#include "gradloom/data/csv.h"

namespace gradloom::app {

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string percent(double share) {
  const double p = 100 * share;
  return p < 100 && p > 99.9 ? fmt::format("{:.3f} %", p) : fmt::format("{:.4g} %", p);
}

double with_digits(double value, int digits) {
  double rounded = value;
  parse_number(fmt::format("{:.{}g}", value, digits), rounded);
  return rounded;
}

}  // namespace gradloom::app
