#include <fmt/format.h>

#include "gradloom/circuit/export.h"
#include "gradloom/circuit/netlist.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

constexpr std::string_view kAbout =
    "Bit k of every word belongs to assignment k; in and out must not overlap. Written by gradloom.";

}  // namespace

std::string to_c(const Circuit& c, std::string_view name) {
  netlist::check_name(name);
  validate(c).or_throw();
  std::string text =
      fmt::format("/* {} inputs, {} gates, {} outputs. {} */\n", c.inputs, c.gates.size(), c.outputs.size(), kAbout);
  for (const std::string& line : netlist::meaning_lines(c.meaning)) text += fmt::format("/* {} */\n", line);
  text += "#include <stdint.h>\n\n";
  text += fmt::format(
      "void {0}(const uint64_t *in, uint64_t *out);\n\nvoid {0}(const uint64_t *in, uint64_t *out) {{\n", name);
  text += "  (void)in;\n  (void)out;\n";
  for (std::size_t g = 0; g < c.gates.size(); ++g)
    text += fmt::format("  const uint64_t s{} = {};\n", c.inputs + g, netlist::expression(c, c.gates[g], netlist::kC));
  // A compiler that warns of variables nobody reads would warn of dead gates.
  std::vector<bool> read(c.signals(), false);
  for (const Gate& gate : c.gates) {
    if (reads_a(gate.op)) read[gate.a] = true;
    if (reads_b(gate.op)) read[gate.b] = true;
  }
  for (const std::uint32_t o : c.outputs) read[o] = true;
  for (std::uint32_t s = c.inputs; s < c.signals(); ++s)
    if (!read[s]) text += fmt::format("  (void)s{};\n", s);
  for (std::size_t o = 0; o < c.outputs.size(); ++o)
    text += fmt::format("  out[{}] = {};\n", o, netlist::signal_name(c, c.outputs[o]));
  return text + "}\n";
}

Result<Circuit> parse_c(std::string_view text) {
  netlist::Cursor cursor(text);
  Circuit c;
  if (!cursor.take("/* ")) return cursor.wrong("a comment with the number of inputs");
  const auto inputs = cursor.take_number();
  if (!inputs || *inputs > kMaxInputs || !cursor.take(" inputs, ")) return cursor.wrong("the number of inputs");
  c.inputs = *inputs;
  cursor.take_until("\n");
  while (cursor.take("\n/* ")) cursor.take_until("\n");
  if (!cursor.take("\n#include <stdint.h>\n\nvoid ")) return cursor.wrong("#include <stdint.h> and a function");
  const std::string name(cursor.take_until("("));
  if (!cursor.take(
          fmt::format("(const uint64_t *in, uint64_t *out);\n\nvoid {}(const uint64_t *in, uint64_t *out) {{\n", name)))
    return cursor.wrong("a prototype and the function");
  if (!cursor.take("  (void)in;\n  (void)out;\n")) return cursor.wrong("(void)in");
  while (cursor.take("  const uint64_t s")) {
    const auto s = cursor.take_number();
    if (!s || *s != c.signals() || !cursor.take(" = ")) return cursor.wrong(fmt::format("s{} =", c.signals()));
    const auto gate = netlist::take_expression(cursor, netlist::kC, c.inputs, c.signals());
    if (!gate || !cursor.take(";\n")) return cursor.wrong("an expression of earlier signals");
    c.gates.push_back(*gate);
  }
  while (cursor.take("  (void)s"))
    if (!cursor.take_number() || !cursor.take(";\n")) return cursor.wrong("a signal");
  while (cursor.take("  out[")) {
    const auto o = cursor.take_number();
    if (!o || *o != c.outputs.size() || !cursor.take("] = "))
      return cursor.wrong(fmt::format("out[{}] =", c.outputs.size()));
    const auto signal = netlist::take_signal(cursor, c.inputs, c.signals());
    if (!signal || !cursor.take(";\n")) return cursor.wrong("a signal");
    c.outputs.push_back(*signal);
  }
  if (!cursor.take("}\n") || !cursor.ended()) return cursor.wrong("the end");
  if (auto r = validate(c); !r) return r.error();
  return c;
}

}  // namespace gradloom::circuit
