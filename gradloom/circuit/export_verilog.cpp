#include <fmt/format.h>

#include <algorithm>

#include "gradloom/base/random.h"
#include "gradloom/circuit/export.h"
#include "gradloom/circuit/netlist.h"
#include "gradloom/circuit/simulate.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

constexpr std::uint32_t kExhaustiveInputs = 9, kRandomVectors = 256;

std::size_t width(std::size_t bits) { return std::max<std::size_t>(bits, 1); }

std::string ports(const Circuit& c) {
  return fmt::format("(input wire [{}:0] in, output wire [{}:0] out);\n", width(c.inputs) - 1,
                     width(c.outputs.size()) - 1);
}

}  // namespace

std::string to_verilog(const Circuit& c, std::string_view name) {
  netlist::check_name(name);
  validate(c).or_throw();
  std::string text = fmt::format("// {} inputs, {} gates, {} outputs. Written by gradloom.\n", c.inputs, c.gates.size(),
                                 c.outputs.size());
  for (const std::string& line : netlist::meaning_lines(c.meaning)) text += fmt::format("// {}\n", line);
  text += fmt::format("module {}", name);
  text += ports(c);
  for (std::size_t g = 0; g < c.gates.size(); ++g)
    text += fmt::format("  wire s{} = {};\n", c.inputs + g, netlist::expression(c, c.gates[g], netlist::kVerilog));
  for (std::size_t o = 0; o < c.outputs.size(); ++o)
    text += fmt::format("  assign out[{}] = {};\n", o, netlist::signal_name(c, c.outputs[o]));
  return text + "endmodule\n";
}

Result<Circuit> parse_verilog(std::string_view text) {
  netlist::Cursor cursor(text);
  Circuit c;
  if (!cursor.take("// ")) return cursor.wrong("a comment with the number of inputs");
  const auto inputs = cursor.take_number();
  if (!inputs || *inputs > kMaxInputs || !cursor.take(" inputs, ") || !cursor.take_number() || !cursor.take(" gates, "))
    return cursor.wrong("the number of inputs");
  c.inputs = *inputs;
  const auto outputs = cursor.take_number();
  if (!outputs || *outputs > kMaxOutputs) return cursor.wrong("the number of outputs");
  cursor.take_until("\n");
  while (cursor.take("\n// ")) cursor.take_until("\n");
  if (!cursor.take("\nmodule ")) return cursor.wrong("a module");
  cursor.take_until("(");
  c.outputs.resize(*outputs);
  if (!cursor.take(ports(c))) return cursor.wrong("the ports");
  c.outputs.clear();
  while (cursor.take("  wire s")) {
    const auto s = cursor.take_number();
    if (!s || *s != c.signals() || !cursor.take(" = ")) return cursor.wrong(fmt::format("s{} =", c.signals()));
    const auto gate = netlist::take_expression(cursor, netlist::kVerilog, c.inputs, c.signals());
    if (!gate || !cursor.take(";\n")) return cursor.wrong("an expression of earlier signals");
    c.gates.push_back(*gate);
  }
  while (cursor.take("  assign out[")) {
    const auto o = cursor.take_number();
    if (!o || *o != c.outputs.size() || !cursor.take("] = "))
      return cursor.wrong(fmt::format("out[{}] =", c.outputs.size()));
    const auto signal = netlist::take_signal(cursor, c.inputs, c.signals());
    if (!signal || !cursor.take(";\n")) return cursor.wrong("a signal");
    c.outputs.push_back(*signal);
  }
  if (c.outputs.size() != *outputs || !cursor.take("endmodule\n") || !cursor.ended()) return cursor.wrong("the end");
  if (auto r = validate(c); !r) return r.error();
  return c;
}

std::string to_verilog_test(const Circuit& c, std::string_view name, std::uint64_t seed) {
  netlist::check_name(name);
  validate(c).or_throw();
  const bool all = c.inputs <= kExhaustiveInputs;
  const std::uint32_t vectors = all ? 1u << c.inputs : kRandomVectors;
  const std::size_t in = width(c.inputs), out = width(c.outputs.size());
  std::string text = fmt::format(
      "// Feeds {} vectors to {}. Written by gradloom.\n`timescale 1ns/1ns\nmodule {}_test;\n"
      "  reg [{}:0] in;\n  wire [{}:0] out;\n  reg [{}:0] expected;\n  reg [{}:0] vectors [0:{}];\n"
      "  integer i, errors;\n  {} dut(.in(in), .out(out));\n  initial begin\n    errors = 0;\n",
      vectors, name, name, in - 1, out - 1, out - 1, in + out - 1, vectors - 1, name);
  std::vector<std::uint64_t> words(c.inputs);
  for (std::uint32_t block = 0; block * 64 < vectors; ++block) {
    const RandomStream random(seed, RandomUse::check, 0, block);
    for (std::uint32_t i = 0; i < c.inputs; ++i) words[i] = all ? variable_word(i, block) : random.bits(i);
    const std::vector<std::uint64_t> results = outputs_for(c, words);
    for (std::uint32_t k = 0; k < 64 && block * 64 + k < vectors; ++k) {
      std::string bits;
      for (std::size_t i = in; i-- > 0;) bits += i < c.inputs && (words[i] >> k & 1) ? '1' : '0';
      // An output that means nothing is driven by nobody.
      if (results.empty()) bits += 'z';
      for (std::size_t o = results.size(); o-- > 0;) bits += results[o] >> k & 1 ? '1' : '0';
      text += fmt::format("    vectors[{}] = {}'b{};\n", block * 64 + k, in + out, bits);
    }
  }
  text += fmt::format(
      "    for (i = 0; i < {}; i = i + 1) begin\n      {{in, expected}} = vectors[i];\n      #1;\n"
      "      if (out !== expected) begin\n        errors = errors + 1;\n"
      "        $display(\"FAIL: in %b gives %b, not %b\", in, out, expected);\n      end\n    end\n"
      "    if (errors == 0) $display(\"PASS: {} vectors\");\n    $finish;\n  end\nendmodule\n",
      vectors, vectors);
  return text;
}

}  // namespace gradloom::circuit
