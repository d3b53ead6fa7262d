// Text for people: HTML escaping and numbers that can be read at a glance.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gradloom::app {

// Safe as element content and inside quoted attributes. Control characters are dropped, invalid UTF-8 becomes U+FFFD.
std::string escape_html(std::string_view text);

// Four significant digits, thousands separators, powers of ten outside [1e-3, 1e7): "0.01234", "12,346", "1.2 × 10⁻⁷".
// Trailing zeros go only where they say nothing: 0.5 is "0.5", 0.99999 is "1.000".
std::string format_number(double value);
std::string format_count(std::int64_t value);

// A fixed number of decimals with thousands separators and a true minus sign.
std::string format_fixed(double value, int decimals);

// "10⁻³"
std::string power_of_ten(int exponent);

// At most `characters` characters (code points), the last one an ellipsis when something was cut.
std::string shorten(std::string_view text, std::size_t characters);

}  // namespace gradloom::app
