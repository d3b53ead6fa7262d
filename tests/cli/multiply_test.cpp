// Spline networks with multiplication nodes, as commands.
#include <sstream>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;

class Multiply : public ProgramTest {
 protected:
  // a * b with a column that says nothing.
  void write_table() const {
    std::ostringstream text;
    text.precision(17);
    text << "a,b,noise,y\n";
    for (int i = 0; i < 300; ++i) {
      const double a = -1 + (i * 37 % 101) / 50.5, b = -1 + (i * 61 % 103) / 51.5, noise = (i * 17 % 97) / 97.0;
      text << a << ',' << b << ',' << noise << ',' << a * b << '\n';
    }
    write("t.csv", text.str());
  }
  const Words train_ = {"train", "kan-formula",          "--set",     "data.formula=",
                        "--set", "data.path=t.csv",      "--set",     "data.target=y",
                        "--set", "data.test=0.2",        "--set",     "epochs=20",
                        "--set", "formula.search=false", "--set",     "model.hidden=[2]",
                        "--set", "model.multiply=[1]",   "--threads", "1"};
};

TEST_F(Multiply, ATrainedProductIsDrawnPrunedPredictedAndWrittenAsAFormula) {
  write_table();
  const auto trained = json_of(train_ + Words{"--out", "run"});
  EXPECT_LT(trained["test"]["rmse"].get<double>(), 0.01) << trained;
  const std::string report = bytes_of(scratch_ / "run/report.html");
  EXPECT_THAT(report, HasSubstr("h1.2, a product"));
  EXPECT_THAT(bytes_of(scratch_ / "run/recipe.toml"), HasSubstr("multiply = [1]"));

  const auto pruned = json_of({"prune", "run", "--worse", "1", "--out", "small.safetensors", "--threads", "1"});
  EXPECT_EQ(pruned["removed"], nlohmann::json({"noise"})) << pruned;
  const auto asked = json_of({"predict", "small.safetensors", "--data", "t.csv", "--out", "p.csv"});
  EXPECT_LT(asked["data"]["rmse"].get<double>(), 0.02);

  const auto f = json_of({"formula", "small.safetensors", "--data", "t.csv", "--fix", "0.0.1 x", "--threads", "1"});
  EXPECT_EQ(f["status"], "approximate");
  EXPECT_LT(f["rmse_formula"].get<double>(), 0.02) << f;
  EXPECT_EQ(json_of({"check", "kan-hello", "--set", "model.hidden=[3]", "--set", "model.multiply=[2]"})["passed"],
            true);
}

TEST_F(Multiply, ThreadsAndTheReferenceTrainToTheSameBits) {
  const Words train = {"train", "kan-hello",           "--set", "epochs=3",           "--set", "data.samples=700",
                       "--set", "model.hidden=[5]",    "--set", "model.multiply=[3]", "--set", "model.refit=[0,2]",
                       "--set", "optimizer.kind=adam", "--set", "train.batch=600"};
  json_of(train + Words{"--out", "one", "--threads", "1"});
  json_of(train + Words{"--out", "three", "--threads", "3"});
  json_of(train + Words{"--out", "reference", "--exec", "reference"});
  EXPECT_TRUE(checkpoint("one") == checkpoint("three"));
  EXPECT_TRUE(checkpoint("one") == checkpoint("reference"));
}

TEST_F(Multiply, ExportsWhatOtherFormatsHave) {
  json_of(Words{"train", "kan-hello", "--set", "model.multiply=[2]", "--out", "run"} + kTiny);
  EXPECT_THAT(run({"export", "run", "--format", "c"}).out, HasSubstr("for (i = 3; i < 5; ++i)"));
  json_of({"export", "run", "--format", "onnx", "--out", "a.onnx"});
  EXPECT_THAT(bytes_of(scratch_ / "a.onnx"), HasSubstr("Concat"));
  expect_error({"export", "run", "--format", "efficient-kan", "--out", "a.safetensors"}, 2, "unsupported",
               {"efficient-kan", "model.multiply"});
}

TEST_F(Multiply, NumbersThatDoNotFitAreRefusedByName) {
  const auto train = [](const std::string& multiply) {
    return Words{"train", "kan-hello", "--set", "model.multiply=" + multiply, "--out", "run"} + kTiny;
  };
  expect_error(train("[1, 1]"), 2, "invalid_input", {"model.multiply has 2 numbers"});
  expect_error(train("[6]"), 2, "invalid_input", {"model.multiply asks for 6", "which has 5"});
  expect_error(train("[-1]"), 2, "invalid_input", {"model.multiply"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run"));
  write_table();
  expect_error({"train", "kan-tabular", "--set", "data.path=t.csv", "--set", "model.multiply=[1]", "--out", "run"}, 2,
               "invalid_input", {"model.multiply", "model.hidden"});
}

}  // namespace
}  // namespace gradloom::test
