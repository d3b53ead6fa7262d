// Exports say what the circuit says: read back, compiled, simulated.
#include "gradloom/circuit/export.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <fstream>

#include "gradloom/base/error.h"
#include "gradloom/circuit/minimise.h"
#include "gradloom/circuit/netlist.h"
#include "gradloom/circuit/subprocess.h"
#include "tests/circuit/support.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using circuit::Circuit;
using circuit::Op;
using testing::HasSubstr;

// Every op, dead gates, outputs that are inputs, repeated outputs.
Circuit all_ops() {
  Circuit c{3, {}, {1, 3, 3}};
  for (unsigned op = 0; op < 16; ++op) {
    c.gates.push_back({static_cast<Op>(op), op % 3, (op + 1) % 3});
    if (op != 5) c.outputs.push_back(3 + op);
  }
  return c;
}

// A classifier whose names try to end comments, quotes and lines.
Circuit described_circuit() {
  Circuit c{2, {{Op::a_and_b, 0, 1}, {Op::a_or_b, 0, 1}, {Op::a, 0, 1}}, {2, 3, 4}};
  c.meaning.inputs = {{"age", 30.25}, {"a \"*/ b\\\n?\?/ \\", -1e-3}};
  c.meaning.outputs = {"yes", "yes", "no */ \"maybe\" <&"};
  return c;
}

std::vector<Circuit> samples() {
  std::vector<Circuit> all = {
      all_ops(), {0, {{Op::always_true, 0, 0}}, {0}}, {2, {}, {}}, {1, {{Op::not_a, 0, 0}}, {1}}, described_circuit()};
  for (std::uint32_t seed = 0; seed < 12; ++seed)
    all.push_back(random_circuit(seed, 1 + seed, 10 * seed, 1 + seed % 3));
  return all;
}

TEST(Export, WhatIsWrittenReadsBackAsTheSameFunction) {
  for (const Circuit& c : samples()) {
    EXPECT_TRUE(same_function(c, circuit::parse_c(circuit::to_c(c, "f")).or_throw()));
    EXPECT_TRUE(same_function(c, circuit::parse_verilog(circuit::to_verilog(c, "f")).or_throw()));
    EXPECT_TRUE(same_function(c, circuit::parse_dot(circuit::to_dot(c, "f")).or_throw()));
  }
}

TEST(Export, SaysWhatInputsAndOutputsStandFor) {
  const Circuit c = described_circuit();
  EXPECT_THAT(circuit::to_c(c, "f"), HasSubstr("/* in[0]: age > 30.25 */\n"));
  EXPECT_THAT(circuit::to_c(c, "f"), HasSubstr("/* out[0] to out[1]: votes for yes */\n"));
  EXPECT_THAT(circuit::to_verilog(c, "f"), HasSubstr("// in[0]: age > 30.25\n"));
  EXPECT_THAT(circuit::to_verilog(c, "f"), HasSubstr("// The class with the most votes wins"));
  EXPECT_THAT(circuit::to_dot(c, "f"), HasSubstr("label=\"in 0: age > 30.25\""));
  EXPECT_THAT(circuit::to_dot(c, "f"), HasSubstr("label=\"out 1: yes\""));
  EXPECT_THAT(circuit::to_svg(c, "f"), HasSubstr("<title>age > 30.25</title>"));
  EXPECT_THAT(circuit::to_svg(c, "f"), HasSubstr("<title>no * / 'maybe' &lt;&amp;</title>"));
}

TEST(Export, ReadersRefuseWhatIsNotTheirs) {
  const Circuit c = random_circuit(3, 5, 30, 2);
  const std::string texts[] = {circuit::to_c(c, "f"), circuit::to_verilog(c, "f"), circuit::to_dot(c, "f")};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    (void)circuit::parse_c(mutate(texts[0], 1, i)).ok();
    (void)circuit::parse_verilog(mutate(texts[1], 1, i)).ok();
    (void)circuit::parse_dot(mutate(texts[2], 1, i)).ok();
  }
  EXPECT_THAT(circuit::parse_c("int main() {}\n").error().message, HasSubstr("line 1"));
  std::string changed = texts[0];
  changed.insert(changed.rfind('}'), "  out[0] = in[0];\n");
  EXPECT_FALSE(circuit::parse_c(changed).ok()) << "an output that is written twice";
  EXPECT_THROW(circuit::to_c(c, "1st"), Exception);
  EXPECT_THROW(circuit::to_verilog(c, "a b"), Exception);
}

TEST(Export, CCompilesWithoutWarningsAndGivesTheSameBits) {
  const std::filesystem::path compiler = circuit::find_program("cc");
  if (compiler.empty()) GTEST_SKIP() << "there is no C compiler in /usr/bin";
  const Scratch scratch;
  std::vector<Circuit> all = samples();
  for (std::size_t n = 0; n < all.size(); ++n) {
    std::ofstream(scratch / "f.c") << circuit::to_c(all[n], "f");
    const std::string library = "f" + std::to_string(n) + ".so";
    const auto end = circuit::run_program(compiler,
                                          {"-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC",
                                           "f.c", "-o", library},
                                          scratch.path(), 60)
                         .or_throw();
    ASSERT_EQ(end.code, 0) << end.output;
    void* handle = ::dlopen((scratch / library).c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr) << ::dlerror();
    const auto f = reinterpret_cast<void (*)(const std::uint64_t*, std::uint64_t*)>(::dlsym(handle, "f"));
    ASSERT_NE(f, nullptr);
    const RandomStream random(n, RandomUse::user);
    std::vector<std::uint64_t> in(all[n].inputs + 1), out(all[n].outputs.size() + 1);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = random.bits(static_cast<std::uint32_t>(i));
    f(in.data(), out.data());
    out.pop_back();
    in.pop_back();
    EXPECT_EQ(out, circuit::outputs_for(all[n], in));
    ::dlclose(handle);
  }
}

std::string simulated(const Circuit& module, const Circuit& expected) {
  const Scratch scratch;
  std::ofstream(scratch / "f.v") << circuit::to_verilog(module, "f");
  std::ofstream(scratch / "t.v") << circuit::to_verilog_test(expected, "f");
  const auto built =
      circuit::run_program(circuit::find_program("iverilog"), {"-Wall", "-o", "sim", "f.v", "t.v"}, scratch.path(), 60)
          .or_throw();
  EXPECT_EQ(built.code, 0) << built.output;
  return circuit::run_program(circuit::find_program("vvp"), {"sim"}, scratch.path(), 60).or_throw().output;
}

TEST(Export, VerilogPassesItsOwnTestAndFailsThatOfAnother) {
  if (circuit::find_program("iverilog").empty()) GTEST_SKIP() << "iverilog is not installed";
  for (const Circuit& c : {all_ops(), random_circuit(4, 9, 60, 3), random_circuit(5, 20, 90, 4)}) {
    EXPECT_THAT(simulated(c, c), HasSubstr("PASS"));
    Circuit broken = c;
    broken.gates.push_back({Op::not_a, c.outputs[0], c.outputs[0]});
    broken.outputs[0] = static_cast<std::uint32_t>(broken.signals() - 1);
    EXPECT_THAT(simulated(broken, c), testing::AllOf(HasSubstr("FAIL"), testing::Not(HasSubstr("PASS"))));
  }
}

TEST(Export, DrawingsNameEveryGate) {
  const circuit::CellRule rule = random_rule(4, 2, 30);
  const std::string svg = circuit::to_svg(rule, "rule");
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  std::size_t gates = 0;
  for (std::size_t at = 0; (at = svg.find("class=\"gate\"", at)) != svg.npos; ++at) ++gates;
  EXPECT_EQ(gates, rule.circuit.gates.size());
  EXPECT_THAT(circuit::to_svg(Circuit{2, {}, {}}, "empty"), HasSubstr("</svg>"));
}

TEST(Export, WordsOfTheLanguageAreNoNames) {
  for (const char* name : {"int", "module", "main", "", "9a", "a-b", "uint64_t", "UINT64_MAX", "printf"})
    EXPECT_THROW(circuit::netlist::check_name(name), Exception) << name;
  EXPECT_NO_THROW(circuit::netlist::check_name("life"));
}

TEST(Subprocess, EndsWhatTakesTooLongAndNamesWhatIsMissing) {
  const Scratch scratch;
  const auto slow = circuit::run_program("/bin/sleep", {"30"}, scratch.path(), 0.2).or_throw();
  EXPECT_TRUE(slow.timed_out);
  EXPECT_FALSE(circuit::run_program(scratch / "nothing", {}, scratch.path(), 1).ok());
  EXPECT_EQ(circuit::run_program("/bin/sh", {"-c", "echo hi; exit 3"}, scratch.path(), 10).or_throw().code, 3);
  EXPECT_TRUE(circuit::find_program("no-such-program-here").empty());
}

}  // namespace
}  // namespace gradloom::test
