// Expressions of formulas. What was read is printed and read again, which gives the same text.
#include "gradloom/formula/mathml.h"
#include "gradloom/formula/parse.h"
#include "gradloom/formula/print.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;
using namespace gradloom::formula;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> names{"x", "y"};
  for (const Decimals decimals : {Decimals::exact, Decimals::approximate}) {
    const auto e = parse_expression(fuzz::text_of(data, size), names, decimals);
    if (!e) return 0;
    for (const auto& notation : kNotations) (void)print(*e, names, notation.value);
    (void)mathml(*e, names);
    const std::string text = print(*e, names, Notation::text);
    const auto again = parse_expression(text, names, Decimals::approximate);
    if (!again) std::fprintf(stderr, "%s: %s\n", text.c_str(), again.error().message.c_str());
    fuzz::require(again.ok(), "what was printed is read");
    const std::string second = print(*again, names, Notation::text);
    if (second != text) std::fprintf(stderr, "%s\n%s\n", text.c_str(), second.c_str());
    fuzz::require(second == text, "what was read is printed as it was");
  }
  return 0;
}
