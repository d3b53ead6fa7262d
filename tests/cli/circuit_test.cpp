// The commands on hard circuits.
#include "gradloom/circuit/json.h"
#include "gradloom/circuit/rle.h"
#include "gradloom/circuit/subprocess.h"
#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using circuit::Op;
using testing::HasSubstr;

// Conway's rule, built from adders as in a textbook.
circuit::CellRule life() {
  circuit::CellRule rule{1, circuit::Boundary::periodic, {9, {}, {}}};
  circuit::Circuit& c = rule.circuit;
  const auto add = [&](Op op, std::uint32_t a, std::uint32_t b) {
    c.gates.push_back({op, a, b});
    return static_cast<std::uint32_t>(c.signals() - 1);
  };
  // Unary counting: bit n says whether at least n + 1 neighbours live.
  std::vector<std::uint32_t> least;
  for (const std::uint32_t cell : {0u, 1u, 2u, 3u, 5u, 6u, 7u, 8u}) {
    std::vector<std::uint32_t> next;
    for (std::size_t n = 0; n <= least.size() && n < 4; ++n) {
      const std::uint32_t carry = n == 0 ? cell : add(Op::a_and_b, least[n - 1], cell);
      next.push_back(n < least.size() ? add(Op::a_or_b, least[n], carry) : carry);
    }
    least = next;
  }
  const std::uint32_t three = add(Op::a_and_not_b, least[2], least[3]), two = add(Op::a_and_not_b, least[1], least[2]);
  c.outputs = {add(Op::a_or_b, three, add(Op::a_and_b, two, 4))};
  return rule;
}

class Circuits : public ProgramTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(circuit::save_circuit(scratch_ / "life.json", life()).ok());
    write("glider.rle", "x = 3, y = 3, rule = B3/S23\nbob$2bo$3o!\n");
  }
};

TEST_F(Circuits, AGliderComesBackAfterItCrossedATorus) {
  const auto r = json_of({"run-circuit", "life.json", "--pattern", "glider.rle", "--width", "10", "--height", "10",
                          "--steps", "40", "--out", "end.rle"});
  EXPECT_EQ(r["population"]["end"][0], 5);
  EXPECT_LT(r["gates_run"], r["gates"]);
  json_of({"run-circuit", "life.json", "--pattern", "glider.rle", "--width", "10", "--height", "10", "--steps", "0",
           "--out", "start.rle"});
  EXPECT_EQ(bytes_of(scratch_ / "end.rle"), bytes_of(scratch_ / "start.rle"));
  EXPECT_THAT(run({"run-circuit", "life.json", "--pattern", "glider.rle"}).out, HasSubstr("cells alive"));
}

TEST_F(Circuits, RulesOfPatternsAreComparedWithTheCircuit) {
  const Words on_life = {"run-circuit", "life.json", "--out", "end.rle", "--pattern"};
  const auto same = json_of(on_life + Words{"glider.rle"});
  EXPECT_EQ(same["rule"], "B3/S23");
  EXPECT_TRUE(same["warnings"].empty());
  EXPECT_THAT(bytes_of(scratch_ / "end.rle"), HasSubstr("rule = B3/S23"));
  write("other.rle", "x = 3, y = 3, rule = B36/S23\nbob$2bo$3o!\n");
  EXPECT_THAT(run(on_life + Words{"other.rle"}).err, HasSubstr("for the rule B36/S23; the circuit computes B3/S23"));
  EXPECT_THAT(bytes_of(scratch_ / "end.rle"), HasSubstr("rule = B3/S23"));
  write("torus.rle", "x = 3, y = 3, rule = 23/3:T12,9\nbob$2bo$3o!\n");
  const auto torus = json_of(on_life + Words{"torus.rle"});
  EXPECT_EQ(torus["width"], 12);
  EXPECT_EQ(torus["height"], 9);
  EXPECT_TRUE(torus["warnings"].empty());

  // A shift has no such name: it has that of its circuit, by which Golly finds its rule.
  ASSERT_TRUE(
      circuit::save_circuit(scratch_ / "shift.json", circuit::CellRule{1, circuit::Boundary::periodic, {9, {}, {3}}})
          .ok());
  const auto shift = json_of({"run-circuit", "shift.json", "--pattern", "glider.rle", "--out", "end.rle"});
  EXPECT_FALSE(shift.contains("rule"));
  EXPECT_EQ(shift["warnings"].size(), 1u);
  EXPECT_THAT(bytes_of(scratch_ / "end.rle"), HasSubstr("rule = shift\n"));
  const auto again = json_of({"run-circuit", "./shift.json", "--pattern", "end.rle"});
  EXPECT_TRUE(again["warnings"].empty()) << again["warnings"];
  json_of({"export", "shift.json", "--format", "golly", "--out", "shift.rule"});
  EXPECT_THAT(bytes_of(scratch_ / "shift.rule"), HasSubstr("@RULE shift\n"));
  json_of({"run-circuit", "checkerboard", "--width", "8", "--height", "8", "--out", "end.rle"});
  EXPECT_THAT(bytes_of(scratch_ / "end.rle"), HasSubstr("rule = checkerboard\n"));
}

TEST_F(Circuits, CircuitsThatShipHaveNames) {
  const auto r = json_of({"run-circuit", "game-of-life", "--pattern", "glider.rle", "--width", "9", "--height", "9",
                          "--steps", "36", "--out", "end.rle"});
  EXPECT_EQ(r["rule"], "B3/S23");
  EXPECT_EQ(r["population"]["end"][0], 5);
  EXPECT_EQ(json_of({"run-circuit", "checkerboard", "--width", "8", "--height", "8"})["channels"], 4);
}

TEST_F(Circuits, SmallGridsAreShown) {
  const Words glider = {"run-circuit", "life.json", "--pattern", "glider.rle", "--width", "5", "--height", "5"};
  const std::string cells = "\n.....\n.....\n.O.O.\n..OO.\n..O..\n";
  const Ended shown = run(glider);
  EXPECT_THAT(shown.out, testing::EndsWith(cells));
  EXPECT_THAT(shown.out, HasSubstr(": 1 step on 5 x 5 cells"));
  EXPECT_THAT(run(glider + Words{"--quiet"}).out, testing::Not(HasSubstr(cells)));
  EXPECT_THAT(run({"run-circuit", "life.json", "--pattern", "glider.rle", "--width", "65", "--height", "5"}).out,
              testing::Not(HasSubstr("\n.....")));
}

TEST_F(Circuits, RunsAreTheSameForAnyThreadsAndMinimiser) {
  const Words words = {"run-circuit", "life.json", "--random", "0.4",        "--width", "333",    "--height",
                       "200",         "--steps",   "9",        "--boundary", "zero",    "--seed", "4"};
  json_of(words + Words{"--out", "a.rle", "--threads", "1"});
  json_of(words + Words{"--out", "b.rle", "--threads", "3", "--minimise", "off"});
  json_of(words + Words{"--out", "c.rle", "--fire", "0.5"});
  EXPECT_EQ(bytes_of(scratch_ / "a.rle"), bytes_of(scratch_ / "b.rle"));
  EXPECT_NE(bytes_of(scratch_ / "a.rle"), bytes_of(scratch_ / "c.rle"));
}

TEST_F(Circuits, EveryExportIsProved) {
  for (const char* format : {"c", "verilog", "json", "dot"}) {
    const auto r =
        json_of({"export", "life.json", "--format", format, "--out", std::string("x.") + format, "--verify"});
    EXPECT_EQ(r["proved"], true) << format;
    EXPECT_EQ(r["outputs"][0]["method"], "exhaustive");
    EXPECT_EQ(r["outputs"][0]["assignments"], 512);
    EXPECT_LT(r["gates"], r["steps"][0]["gates"]);
  }
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "x_test.verilog"));
  EXPECT_TRUE(circuit::load_circuit(scratch_ / "x.json").ok());
  const Ended text = run({"export", "life.json", "--format", "c", "--verify"});
  EXPECT_THAT(text.out, testing::StartsWith("/* 9 inputs"));
  EXPECT_THAT(text.err, HasSubstr("1 of 1 output proved equal (exhaustive 1)"));
  EXPECT_THAT(run({"export", "life.json", "--format", "svg"}).out, testing::StartsWith("<svg"));
}

TEST_F(Circuits, YosysMinimisesWhereItIsInstalled) {
  if (circuit::find_program("yosys").empty()) GTEST_SKIP() << "yosys is not installed";
  const auto r = json_of({"export", "life.json", "--format", "verilog", "--minimise", "yosys", "--verify"});
  EXPECT_EQ(r["proved"], true);
  EXPECT_THAT(r["text"].get<std::string>(), HasSubstr("module circuit"));
}

TEST_F(Circuits, RunFoldersHaveACircuit) {
  std::filesystem::create_directory(scratch_ / "run");
  std::filesystem::copy(scratch_ / "life.json", scratch_ / "run/circuit.json");
  EXPECT_EQ(json_of({"export", "run", "--format", "json", "--minimise", "off"})["gates"], life().circuit.gates.size());
}

TEST_F(Circuits, BenchChecksAndMeasures) {
  const auto r =
      json_of({"bench", "circuit", "--circuit", "life.json", "--width", "512", "--height", "128", "--seconds", "0.01"});
  EXPECT_GT(r["gcells_per_s"]["life"].get<double>(), 0.0);
  EXPECT_EQ(r["circuits"][0]["channels"], 1);
}

TEST_F(Circuits, MistakesAreNamed) {
  expect_error({"run-circuit", "none.json", "--random", "0.5"}, 2, "not_found", {"none.json"});
  expect_error({"run-circuit", "life.json"}, 2, "invalid_input", {"--pattern", "--random", "--width"});
  expect_error({"run-circuit", "life.json", "--pattern", "glider.rle", "--width", "2"}, 2, "invalid_input",
               {"does not fit"});
  expect_error({"run-circuit", "life.json", "--pattern", "none.rle"}, 2, "not_found", {"none.rle"});
  expect_error({"run-circuit", "life.json", "--random", "0.5", "--width", "99999999", "--height", "99999999"}, 2,
               "invalid_input", {"2^32"});
  expect_error({"run-circuit", "life.json", "--random", "2"}, 2, "invalid_input", {"--random"});
  expect_error({"export", "life.json", "--format", "vhdl"}, 2, "invalid_input", {"--format", "vhdl"});
  expect_error({"export", "life.json", "--format", "svg", "--verify"}, 2, "unsupported", {"SVG"});
  expect_error({"export", "life.json", "--format", "c", "--name", "2 x"}, 2, "invalid_input", {"2 x"});
  expect_error({"export", "life.json", "--format", "c", "--observe", "3"}, 2, "invalid_input", {"channel 3"});
  circuit::CellRule still{9, circuit::Boundary::periodic, {81, {}, {}}};
  for (std::uint32_t channel = 0; channel < 9; ++channel) still.circuit.outputs.push_back(9 * channel + 4);
  circuit::save_circuit(scratch_ / "nine.json", still).or_throw();
  EXPECT_THAT(run({"export", "nine.json", "--format", "golly"}).err, HasSubstr("\nhint: --observe keeps"));
  write("bad.rle", "x = 3, y = 3\n9o!\n");
  expect_error({"run-circuit", "life.json", "--pattern", "bad.rle"}, 2, "invalid_input", {"bad.rle", "line 2"});
  write("bad.json", "{\"format\": 3}");
  expect_error({"export", "bad.json", "--format", "c"}, 2, "invalid_input", {"bad.json", "format"});
  write("plain.json", circuit::to_json(circuit::Circuit{2, {{Op::a_and_b, 0, 1}}, {2}}));
  expect_error({"run-circuit", "plain.json", "--random", "0.5"}, 2, "invalid_input", {"cell_rule"});
  expect_error({"bench", "circuit", "--circuit", "plain.json"}, 2, "invalid_input", {"plain.json"});
}

TEST_F(Circuits, BenchMeasuresTheShippedOnesWhenNoneIsNamed) {
  const auto r = json_of({"bench", "circuit", "--width", "512", "--height", "128", "--seconds", "0.01"});
  EXPECT_GT(r["gcells_per_s"]["game-of-life"].get<double>(), 0.0);
  EXPECT_GT(r["gcells_per_s"]["checkerboard"].get<double>(), 0.0);
}

}  // namespace
}  // namespace gradloom::test
