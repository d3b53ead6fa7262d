#include "gradloom/app/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradloom/app/text.h"
#include "gradloom/io/utf8.h"

namespace gradloom::app {
namespace {

constexpr std::string_view kMinus = "−";

std::string group_thousands(std::string_view digits) {
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

void trim_zeros(std::string& text) {
  if (text.find('.') == std::string::npos) return;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      escaped += "\uFFFD";
    } else if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if (c == '\'') {
      escaped += "&#39;";
    } else if (length > 1 || c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)) {
      escaped += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return escaped;
}

std::string format_fixed(double value, int decimals) {
  const std::string plain = fmt::format("{:.{}f}", std::abs(value), decimals);
  const std::size_t dot = std::min(plain.find('.'), plain.size());
  const std::string magnitude = group_thousands(plain.substr(0, dot)) + plain.substr(dot);
  const bool zero = plain.find_first_not_of("0.") == std::string::npos;
  return value < 0 && !zero ? std::string(kMinus) + magnitude : magnitude;
}

std::string format_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : std::string(kMinus) + "∞";
  if (value == 0) return "0";
  // Rounding to four digits may carry into the next power of ten, so the exponent is read off the rounded number.
  const std::string scientific = fmt::format("{:.3e}", std::abs(value));
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  const bool rounded = std::abs(with_digits(value, 4) / value - 1) > 1e-9;
  if (exponent < -3 || exponent >= 7) {
    std::string digits = scientific.substr(0, scientific.find('e'));
    if (!rounded) trim_zeros(digits);
    return fmt::format("{}{} × {}", value < 0 ? kMinus : "", digits, power_of_ten(exponent));
  }
  std::string text = format_fixed(value, std::max(0, 3 - exponent));
  if (!rounded) trim_zeros(text);
  return text;
}

std::string format_count(std::int64_t value) {
  const std::string plain = fmt::format("{}", value);
  if (value < 0) return std::string(kMinus) + group_thousands(plain.substr(1));
  return group_thousands(plain);
}

std::string power_of_ten(int exponent) {
  static constexpr std::string_view kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = "10";
  for (const char c : fmt::format("{}", exponent)) text += c == '-' ? "⁻" : kDigits[c - '0'];
  return text;
}

std::string shorten(std::string_view text, std::size_t characters) {
  std::size_t count = 0, cut = 0, at = 0;  // `cut`: where the last character that still fits beside an ellipsis ends
  while (at < text.size()) {
    at += std::max<std::size_t>(utf8_length(text.substr(at)), 1);
    ++count;
    if (count < characters) cut = at;
  }
  if (count <= characters) return std::string(text);
  return std::string(text.substr(0, cut)) + "…";
}

}  // namespace gradloom::app
