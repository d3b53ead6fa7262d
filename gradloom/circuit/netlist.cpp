#include "gradloom/circuit/netlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gradloom/base/error.h"

namespace gradloom::circuit::netlist {

namespace {

// Words of C (and C++, whose compilers may read the file) and Verilog.
constexpr std::string_view kReserved[] = {
    "alignas",     "alignof",   "always",    "and",      "asm",        "assign",    "auto",     "begin",
    "bool",        "break",     "buf",       "case",     "casex",      "casez",     "catch",    "char",
    "class",       "const",     "constexpr", "continue", "deassign",   "default",   "defparam", "delete",
    "disable",     "do",        "double",    "edge",     "else",       "end",       "endcase",  "endfunction",
    "endgenerate", "endmodule", "endtask",   "enum",     "event",      "explicit",  "export",   "extern",
    "false",       "float",     "for",       "force",    "forever",    "fork",      "friend",   "function",
    "generate",    "genvar",    "goto",      "if",       "ifnone",     "initial",   "inline",   "inout",
    "input",       "int",       "integer",   "join",     "localparam", "long",      "main",     "module",
    "mutable",     "namespace", "nand",      "negedge",  "new",        "nmos",      "noexcept", "nor",
    "not",         "nullptr",   "operator",  "or",       "output",     "parameter", "pmos",     "posedge",
    "primitive",   "private",   "protected", "public",   "real",       "realtime",  "reg",      "register",
    "release",     "repeat",    "restrict",  "return",   "scalared",   "short",     "signed",   "sizeof",
    "specify",     "specparam", "static",    "struct",   "supply0",    "supply1",   "switch",   "table",
    "task",        "template",  "this",      "throw",    "time",       "tran",      "tri",      "true",
    "try",         "typedef",   "typename",  "union",    "unsigned",   "using",     "vectored", "virtual",
    "void",        "volatile",  "wait",      "wand",     "while",      "wire",      "wor",      "xnor",
    "xor"};

}  // namespace

void check_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool good = !name.empty() && name.size() <= 100 && letter(name[0]) &&
                    std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
  if (!good) throw_invalid(fmt::format("'{}' is not a valid name for a function or module", name));
  // <stdint.h> has uint64_t, UINT64_MAX, INT8_C and the like; a compiler knows what printf is.
  const auto starts = [&](std::string_view with) { return name.substr(0, with.size()) == with; };
  const bool of_header = name.ends_with("_t") || starts("INT") || starts("UINT") || starts("SIZE_") ||
                         starts("PTRDIFF_") || starts("WCHAR_") || starts("WINT_") || starts("SIG_ATOMIC_");
  const std::string_view known[] = {"printf", "malloc", "free", "exit", "abort", "main"};
  if (of_header || starts("__builtin") || std::find(std::begin(known), std::end(known), name) != std::end(known))
    throw_invalid(fmt::format("'{}' has a meaning in C; choose another name", name));
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved))
    throw_invalid(fmt::format("'{}' is a keyword of C or Verilog; choose another name", name));
}

const char* op_name(Op op) {
  constexpr std::array<const char*, 16> kNames = {"0",   "AND",  "A&!B",  "A",    "!A&B",  "B",    "XOR",  "OR",
                                                  "NOR", "XNOR", "NOT B", "A|!B", "NOT A", "!A|B", "NAND", "1"};
  return kNames[static_cast<unsigned>(op) & 15];
}

std::string safe_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool unsafe = byte < 0x20 || byte == 0x7f;
    // Two characters that mean something together are kept apart: the end of a comment, a trigraph.
    if (!safe.empty() &&
        ((safe.back() == '*' && c == '/') || (safe.back() == '/' && c == '*') || (safe.back() == '?' && c == '?')))
      safe += ' ';
    safe += unsafe || c == '\\' ? ' ' : c == '"' ? '\'' : c;
  }
  return safe;
}

std::string input_text(const InputMeaning& input) {
  return fmt::format("{} > {}", safe_text(input.column), input.threshold);
}

std::vector<std::string> meaning_lines(const Meaning& m) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < m.inputs.size(); ++i)
    lines.push_back(fmt::format("in[{}]: {}", i, input_text(m.inputs[i])));
  for (std::size_t o = 0, end = 0; o < m.outputs.size(); o = end) {
    while (end < m.outputs.size() && m.outputs[end] == m.outputs[o]) ++end;
    lines.push_back(fmt::format("out[{}]{}: {} for {}", o, end - o > 1 ? fmt::format(" to out[{}]", end - 1) : "",
                                end - o > 1 ? "votes" : "a vote", safe_text(m.outputs[o])));
  }
  if (!m.outputs.empty()) lines.emplace_back("The class with the most votes wins; of equal classes, the first.");
  return lines;
}

std::string signal_name(const Circuit& c, std::uint32_t signal) {
  return signal < c.inputs ? fmt::format("in[{}]", signal) : fmt::format("s{}", signal);
}

std::string expression(const Circuit& c, const Gate& gate, const Spelling& spelling) {
  const std::string a = signal_name(c, gate.a), b = signal_name(c, gate.b);
  switch (gate.op) {
    case Op::always_false:
      return std::string(spelling.zero);
    case Op::a_and_b:
      return a + " & " + b;
    case Op::a_and_not_b:
      return a + " & ~" + b;
    case Op::a:
      return a;
    case Op::not_a_and_b:
      return "~" + a + " & " + b;
    case Op::b:
      return b;
    case Op::a_xor_b:
      return a + " ^ " + b;
    case Op::a_or_b:
      return a + " | " + b;
    case Op::nor:
      return "~(" + a + " | " + b + ")";
    case Op::xnor:
      return "~(" + a + " ^ " + b + ")";
    case Op::not_b:
      return "~" + b;
    case Op::a_or_not_b:
      return a + " | ~" + b;
    case Op::not_a:
      return "~" + a;
    case Op::not_a_or_b:
      return "~" + a + " | " + b;
    case Op::nand:
      return "~(" + a + " & " + b + ")";
    case Op::always_true:
      break;
  }
  return std::string(spelling.one);
}

Error Cursor::wrong(std::string_view expected) const {
  return {ErrorCode::invalid_input,
          fmt::format("line {} was not written by this program: expected {}", line_, expected)};
}

std::optional<std::uint32_t> take_signal(Cursor& cursor, std::uint32_t inputs, std::uint64_t signals) {
  if (cursor.take("in[")) {
    const auto n = cursor.take_number();
    return n && *n < inputs && cursor.take("]") ? n : std::nullopt;
  }
  if (!cursor.take("s")) return std::nullopt;
  const auto n = cursor.take_number();
  return n && *n >= inputs && *n < signals ? n : std::nullopt;
}

std::optional<Gate> take_expression(Cursor& cursor, const Spelling& spelling, std::uint32_t inputs,
                                    std::uint64_t signals) {
  if (cursor.take(spelling.one)) return Gate{Op::always_true, 0, 0};
  if (cursor.take(spelling.zero)) return Gate{Op::always_false, 0, 0};
  const bool around = cursor.take("~("), invert_a = !around && cursor.take("~");
  const auto a = take_signal(cursor, inputs, signals);
  if (!a) return std::nullopt;
  Op op = Op::a;
  if (cursor.take(" & "))
    op = Op::a_and_b;
  else if (cursor.take(" | "))
    op = Op::a_or_b;
  else if (cursor.take(" ^ "))
    op = Op::a_xor_b;
  if (op == Op::a) return around ? std::nullopt : std::optional(Gate{invert_a ? Op::not_a : Op::a, *a, *a});
  const bool invert_b = !around && !invert_a && op != Op::a_xor_b && cursor.take("~");
  const auto b = take_signal(cursor, inputs, signals);
  if (!b || (around && !cursor.take(")")) || (invert_a && op == Op::a_xor_b)) return std::nullopt;
  if (around) op = static_cast<Op>(15 - static_cast<unsigned>(op));
  if (invert_a) op = op == Op::a_and_b ? Op::not_a_and_b : Op::not_a_or_b;
  if (invert_b) op = op == Op::a_and_b ? Op::a_and_not_b : Op::a_or_not_b;
  return Gate{op, *a, *b};
}

}  // namespace gradloom::circuit::netlist
