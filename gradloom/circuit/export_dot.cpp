#include <fmt/format.h>

#include <map>

#include "gradloom/circuit/export.h"
#include "gradloom/circuit/netlist.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

const char* shape_of(Op op) {
  const auto t = static_cast<unsigned>(op);
  if (t == 6 || t == 9) return "diamond";
  return t == 0 || t == 15 ? "plaintext" : "box";
}

}  // namespace

// One line per signal and per edge, in a fixed form, so that it can be read back.
std::string to_dot(const AnyCircuit& any, std::string_view name) {
  netlist::check_name(name);
  const Circuit& c = circuit_of(any);
  validate(c).or_throw();
  const bool cells = std::holds_alternative<CellRule>(any);
  constexpr const char* kPlaces[] = {"NW", "N", "NE", "W", "centre", "E", "SW", "S", "SE"};
  std::string text =
      fmt::format("digraph {} {{\n  rankdir=LR;\n  node [fontname=\"Helvetica\", style=rounded];\n  // inputs {}\n",
                  name, c.inputs);
  std::vector<bool> shown(c.inputs, false);
  for (const Gate& gate : c.gates) {
    if (reads_a(gate.op) && gate.a < c.inputs) shown[gate.a] = true;
    if (reads_b(gate.op) && gate.b < c.inputs) shown[gate.b] = true;
  }
  for (const std::uint32_t o : c.outputs)
    if (o < c.inputs) shown[o] = true;
  for (std::uint32_t i = 0; i < c.inputs; ++i) {
    if (!shown[i]) continue;
    std::string label = cells ? fmt::format("{}.{}", i / 9, kPlaces[i % 9]) : fmt::format("in {}", i);
    if (i < c.meaning.inputs.size()) label += ": " + netlist::input_text(c.meaning.inputs[i]);
    text += fmt::format("  s{} [label=\"{}\", shape=ellipse];\n", i, label);
  }
  for (std::size_t g = 0; g < c.gates.size(); ++g) {
    const Gate& gate = c.gates[g];
    text +=
        fmt::format("  s{} [label=\"{}\", shape={}];\n", c.inputs + g, netlist::op_name(gate.op), shape_of(gate.op));
    if (reads_a(gate.op)) text += fmt::format("  s{} -> s{} [headlabel=\"A\"];\n", gate.a, c.inputs + g);
    if (reads_b(gate.op)) text += fmt::format("  s{} -> s{} [headlabel=\"B\"];\n", gate.b, c.inputs + g);
  }
  for (std::size_t o = 0; o < c.outputs.size(); ++o) {
    const bool known = o < c.meaning.outputs.size();
    const std::string label =
        known ? fmt::format("label=\"out {}: {}\", ", o, netlist::safe_text(c.meaning.outputs[o])) : "";
    text += fmt::format("  out{} [{}shape=doublecircle];\n  s{} -> out{};\n", o, label, c.outputs[o], o);
  }
  return text + "}\n";
}

Result<Circuit> parse_dot(std::string_view text) {
  netlist::Cursor cursor(text);
  Circuit c;
  cursor.take_until("  // inputs ");
  const auto inputs = cursor.take("  // inputs ") ? cursor.take_number() : std::nullopt;
  if (!inputs || *inputs > kMaxInputs || !cursor.take("\n")) return cursor.wrong("the number of inputs");
  c.inputs = *inputs;
  std::map<std::string, Op, std::less<>> ops;
  for (unsigned op = 0; op < 16; ++op) ops[netlist::op_name(static_cast<Op>(op))] = static_cast<Op>(op);
  while (cursor.take("  s")) {
    const auto s = cursor.take_number();
    if (!s || !cursor.take(" [label=\"")) return cursor.wrong("a signal");
    const std::string label(cursor.take_until("\""));
    cursor.take_until("\n");
    cursor.take("\n");
    if (*s < c.inputs) continue;
    const auto op = ops.find(label);
    if (*s != c.signals() || op == ops.end()) return cursor.wrong(fmt::format("gate s{}", c.signals()));
    Gate gate{op->second, 0, 0};
    const auto edge = [&](std::uint32_t& operand, std::string_view end) {
      const auto from = cursor.take("  s") ? cursor.take_number() : std::nullopt;
      if (!from || !cursor.take(fmt::format(" -> s{} [headlabel=\"{}\"];\n", *s, end))) return false;
      operand = *from;
      return true;
    };
    if (reads_a(gate.op) && !edge(gate.a, "A")) return cursor.wrong("the edge of operand A");
    if (reads_b(gate.op) && !edge(gate.b, "B")) return cursor.wrong("the edge of operand B");
    c.gates.push_back(gate);
  }
  while (cursor.take(fmt::format("  out{} [", c.outputs.size()))) {
    if (cursor.take("label=\"")) {
      cursor.take_until("\"");
      if (!cursor.take("\", ")) return cursor.wrong("the end of a label");
    }
    if (!cursor.take("shape=doublecircle];\n  s")) return cursor.wrong("the shape of an output");
    const auto from = cursor.take_number();
    if (!from || !cursor.take(fmt::format(" -> out{};\n", c.outputs.size())))
      return cursor.wrong("the edge of an output");
    c.outputs.push_back(*from);
  }
  if (!cursor.take("}\n") || !cursor.ended()) return cursor.wrong("the end");
  if (auto r = validate(c); !r) return r.error();
  return c;
}

}  // namespace gradloom::circuit
