// The JSON of circuits: round trips, and files that nobody should trust.
#include "gradloom/circuit/json.h"

#include <gmock/gmock.h>

#include "tests/circuit/support.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using circuit::AnyCircuit;
using circuit::CellRule;
using circuit::Circuit;
using testing::HasSubstr;

bool equal(const Circuit& a, const Circuit& b) {
  return a.inputs == b.inputs && a.gates == b.gates && a.outputs == b.outputs;
}

std::string message_of(const std::string& text) {
  const auto r = circuit::parse_circuit_json(text);
  return r ? "" : r.error().message;
}

// A valid circuit with one piece of its text replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = circuit::to_json(
      CellRule{1, circuit::Boundary::zero, {9, {{circuit::Op::nand, 0, 4}, {circuit::Op::a, 9, 1}}, {10}}});
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

Circuit described() {
  Circuit c{2, {{circuit::Op::a_and_b, 0, 1}, {circuit::Op::a_or_b, 0, 1}, {circuit::Op::a, 0, 1}}, {2, 3, 4}};
  c.meaning.inputs = {{"age", 30.25}, {"a \"*/ b\\\n?\?/", -1e-3}};
  c.meaning.outputs = {"yes", "yes", "no */ \"maybe\""};
  return c;
}

TEST(CircuitJson, KeepsWhatInputsAndOutputsStandFor) {
  const Circuit c = described();
  const Circuit back = std::get<Circuit>(circuit::parse_circuit_json(circuit::to_json(c)).or_throw());
  EXPECT_TRUE(equal(back, c));
  EXPECT_EQ(back.meaning, c.meaning);
  // One line, so that it can be left out.
  std::string text = circuit::to_json(c);
  const std::size_t at = text.find("  \"meaning\": ");
  ASSERT_NE(at, text.npos);
  text.erase(at, text.find('\n', at) + 1 - at);
  Circuit plain = c;
  plain.meaning = {};
  EXPECT_EQ(text, circuit::to_json(plain));
}

TEST(CircuitJson, RefusesAMeaningThatDoesNotFit) {
  const auto refusal = [](const std::string& meaning) {
    std::string text = circuit::to_json(Circuit{2, {{circuit::Op::a_and_b, 0, 1}}, {2}});
    return message_of(text.replace(text.find("  \"inputs\""), 0, "  \"meaning\": " + meaning + ",\n"));
  };
  EXPECT_EQ(refusal(R"({"inputs": [], "outputs": []})"), "");
  EXPECT_THAT(refusal("3"), HasSubstr("\"meaning\" must be an object"));
  EXPECT_THAT(refusal(R"({"inputs": []})"), HasSubstr("needs \"outputs\""));
  EXPECT_THAT(refusal(R"({"inputs": [], "outputs": ["a", "b"]})"), HasSubstr("an array of 1 or none"));
  EXPECT_THAT(refusal(R"({"inputs": [{"column": "a", "threshold": 1}], "outputs": []})"), HasSubstr("an array of 2"));
  EXPECT_THAT(refusal(R"({"inputs": [1, 2], "outputs": []})"), HasSubstr("has the input 1"));
  EXPECT_THAT(refusal(R"({"inputs": [], "outputs": [1]})"), HasSubstr("has the output 1"));
  EXPECT_THAT(refusal(R"({"inputs": [], "outputs": [], "more": 1})"), HasSubstr("a key other than"));
}

TEST(CircuitJson, RoundTripGivesTheSameCircuit) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Circuit c = random_circuit(seed, seed % 7 + 1, seed * 3, seed % 4);
    const AnyCircuit back = circuit::parse_circuit_json(circuit::to_json(c)).or_throw();
    ASSERT_TRUE(std::holds_alternative<Circuit>(back));
    EXPECT_TRUE(equal(std::get<Circuit>(back), c));
  }
  CellRule rule = random_rule(5, 3, 60);
  rule.boundary = circuit::Boundary::zero;
  const CellRule back = std::get<CellRule>(circuit::parse_circuit_json(circuit::to_json(rule)).or_throw());
  EXPECT_EQ(back.channels, 3u);
  EXPECT_EQ(back.boundary, circuit::Boundary::zero);
  EXPECT_TRUE(equal(back.circuit, rule.circuit));
}

TEST(CircuitJson, NamesWhatIsWrong) {
  EXPECT_EQ(message_of(with("9,", "9,\n\"about\": {\"seed\": 3},")), "") << "about is free";
  EXPECT_THAT(message_of(""), HasSubstr("not JSON"));
  EXPECT_THAT(message_of("[1]"), HasSubstr("one JSON object"));
  EXPECT_THAT(message_of(with("gradloom-circuit", "other")), HasSubstr("\"format\""));
  EXPECT_THAT(message_of(with("\"version\": 1", "\"version\": 2")), HasSubstr("version 2"));
  EXPECT_THAT(message_of(with("\"cell_rule\"", "\"rule\"")), HasSubstr("\"kind\""));
  EXPECT_THAT(message_of(with("\"zero\"", "\"open\"")), HasSubstr("\"boundary\""));
  EXPECT_THAT(message_of(with("\"inputs\": 9", "\"inputs\": -9")), HasSubstr("\"inputs\""));
  EXPECT_THAT(message_of(with("\"inputs\": 9", "\"inputs\": 9.0")), HasSubstr("\"inputs\""));
  EXPECT_THAT(message_of(with("\"inputs\": 9", "\"inputs\": 99999999999")), HasSubstr("2^32"));
  EXPECT_THAT(message_of(with("\"inputs\": 9", "\"inputs\": 18")), HasSubstr("needs 9 inputs"));
  EXPECT_THAT(message_of(with("\"inputs\": 9,", "")), HasSubstr("\"inputs\" is missing"));
  EXPECT_THAT(message_of(with("\"inputs\": 9,", "\"inputs\": 9, \"inputs\": 9,")), HasSubstr("twice"));
  EXPECT_THAT(message_of(with("\"inputs\": 9,", "\"inputs\": 9, \"wires\": 9,")), HasSubstr("\"wires\""));
  EXPECT_THAT(message_of(with("[14, 0, 4]", "[14, 10, 4]")), HasSubstr("before their own")) << "a cycle";
  EXPECT_THAT(message_of(with("[14, 0, 4]", "[14, 9, 4]")), HasSubstr("before their own"))
      << "a gate that reads itself";
  EXPECT_THAT(message_of(with("[14, 0, 4]", "[14, 77, 4]")), HasSubstr("signal 77"));
  EXPECT_THAT(message_of(with("[14, 0, 4]", "[16, 0, 4]")), HasSubstr("op 16"));
  EXPECT_THAT(message_of(with("[14, 0, 4]", "[14, 0]")), HasSubstr("[op, a, b]"));
  EXPECT_THAT(message_of(with("[14, 0, 4]", "[14, 0, \"4\"]")), HasSubstr("gate 0"));
  EXPECT_THAT(message_of(with("[10]", "[11]")), HasSubstr("output 0"));
  EXPECT_THAT(message_of(with("[10]", "[10, 10]")), HasSubstr("it has 2"));
  EXPECT_THAT(message_of(with("\"channels\": 1", "\"channels\": 4294967295")), HasSubstr("needs 38654705655 inputs"));
  EXPECT_NE(message_of(std::string(100000, '[')), "");
}

TEST(CircuitJson, DamagedFilesAreRefusedOrValid) {
  const std::string text = circuit::to_json(random_rule(3, 2, 40));
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const auto r = circuit::parse_circuit_json(mutate(text, 11, i));
    if (!r) continue;
    const Circuit& c = circuit::circuit_of(*r);
    EXPECT_EQ(circuit::outputs_for(c, std::vector<std::uint64_t>(c.inputs)).size(), c.outputs.size());
  }
}

TEST(CircuitJson, LoadsFilesAndRunFolders) {
  const Scratch scratch;
  const AnyCircuit any = random_rule(3, 1, 20);
  ASSERT_TRUE(circuit::save_circuit(scratch / "circuit.json", any).ok());
  EXPECT_TRUE(circuit::load_circuit(scratch / "circuit.json").ok());
  EXPECT_TRUE(circuit::load_circuit(scratch.path()).ok());
  EXPECT_EQ(circuit::load_circuit(scratch / "none.json").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gradloom::test
