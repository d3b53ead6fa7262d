// What the exports as text share: names, expressions of gates, and a reader of lines.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit::netlist {

// How a language spells constants; everything else is the same in C and Verilog.
struct Spelling {
  std::string_view zero, one;
};
inline constexpr Spelling kC{"UINT64_C(0)", "~UINT64_C(0)"};
inline constexpr Spelling kVerilog{"1'b0", "1'b1"};

void check_name(std::string_view name);
const char* op_name(Op op);  // "AND", "XOR", ...

std::string signal_name(const Circuit& circuit, std::uint32_t signal);  // in[3] or s12
std::string expression(const Circuit& circuit, const Gate& gate, const Spelling& spelling);

// What inputs and outputs stand for, a line for each: "in[0]: age > 30", "out[0] to out[7]: a vote for yes". Lines are
// safe in comments and in quotes: no control characters, quotes, backslashes, ends of comments.
std::vector<std::string> meaning_lines(const Meaning& meaning);
std::string input_text(const InputMeaning& input);  // "age > 30", as safe
std::string safe_text(std::string_view text);

// Reads a text piece by piece; each call either takes what it names or leaves the text as it was.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    for (const char c : word) line_ += c == '\n';
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::uint32_t> take_number() {
    std::uint32_t n = 0;
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (code != std::errc{} || (rest_[0] == '0' && end != rest_.data() + 1)) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return n;
  }
  std::string_view take_until(std::string_view stop) {
    const std::string_view taken = rest_.substr(0, rest_.find(stop));
    take(taken);
    return taken;
  }
  bool ended() const { return rest_.empty(); }
  Error wrong(std::string_view expected) const;

 private:
  std::string_view rest_;
  std::size_t line_ = 1;
};

// in[N] below `inputs`, or sN with inputs <= N < signals.
std::optional<std::uint32_t> take_signal(Cursor& cursor, std::uint32_t inputs, std::uint64_t signals);
// An expression as expression() writes it. Ops of one operand come back as A or NOT A.
std::optional<Gate> take_expression(Cursor& cursor, const Spelling& spelling, std::uint32_t inputs,
                                    std::uint64_t signals);

}  // namespace gradloom::circuit::netlist
