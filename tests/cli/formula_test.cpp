// Formulas and pruning, as commands.
#include <sstream>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FormulaCommand : public ProgramTest {
 protected:
  // rooms * area / 2 in all digits, and a column that says nothing.
  void write_table(const std::string& name, int rows, double rounding = 0) const {
    std::ostringstream text;
    text.precision(17);
    text << "rooms,area,noise,price\n";
    for (int i = 0; i < rows; ++i) {
      const double rooms = 1 + (i * 37 % 101) / 25.0, area = 2 + (i * 61 % 103) / 20.0, noise = (i * 17 % 97) / 97.0;
      text << rooms << ',' << area << ',' << noise << ',' << rooms * area / 2 + rounding * ((i * 7919 % 101) - 50)
           << '\n';
    }
    write(name, text.str());
  }

  const Words train_ = {"train",     "kan-formula",
                        "--set",     "data.formula=",
                        "--set",     "data.path=t.csv",
                        "--set",     "data.target=price",
                        "--set",     "data.test=0.2",
                        "--set",     "epochs=15",
                        "--out",     "run",
                        "--threads", "1"};
};

TEST_F(FormulaCommand, ARunOfTheRecipeFindsTheFormulaAndStoresIt) {
  write_table("t.csv", 300);
  const auto trained = json_of(train_);
  ASSERT_TRUE(trained.contains("formula"));
  EXPECT_EQ(trained["formula"]["text"], "rooms*area/2");
  EXPECT_EQ(trained["formula"]["status"], "exact");
  EXPECT_LT(trained["formula"]["rmse_formula"].get<double>(), 1e-12);
  std::filesystem::remove(scratch_ / "t.csv");  // the stored one needs no data
  const auto stored = json_of({"formula", "run"});
  EXPECT_EQ(stored, trained["formula"]);
  EXPECT_THAT(run({"formula", "run"}).out, HasSubstr("price = rooms*area/2"));
}

TEST_F(FormulaCommand, AModelFileAloneIsApproximatedEdgeByEdge) {
  write_table("t.csv", 300);
  json_of(train_);
  const auto f = json_of({"formula", "run/model.safetensors", "--threads", "1"});
  EXPECT_EQ(f["status"], "approximate");
  EXPECT_THAT(f["note"].get<std::string>(), HasSubstr("no data"));
  EXPECT_FALSE(f["edges"].empty());
  for (const auto& edge : f["edges"]) EXPECT_TRUE(!edge["kept"] || !edge["candidates"].empty());
}

TEST_F(FormulaCommand, APrunedModelIsSmallerAndStillPredicts) {
  write_table("t.csv", 300);
  json_of(train_);
  const auto pruned = json_of({"prune", "run", "--threshold", "0.005", "--out", "small.safetensors", "--threads", "1"});
  EXPECT_EQ(pruned["removed"], nlohmann::json({"noise"}));
  EXPECT_LT(pruned["parameters"].get<int>(), pruned["parameters_before"].get<int>());
  EXPECT_EQ(pruned["widths"][0], 2);
  write("new.csv", "rooms,area,noise,price\n1.5,3.5,0.5,2.625\n3,4,0.1,6\n");
  const auto asked = json_of({"predict", "small.safetensors", "--data", "new.csv", "--out", "p.csv"});
  EXPECT_EQ(asked["rows"], 2);
  EXPECT_LT(asked["data"]["rmse"].get<double>(), 0.1 + 2 * pruned["change"].get<double>());
}

TEST_F(FormulaCommand, NamesWhatIsWrong) {
  write_table("t.csv", 60);
  json_of({"train", "kan-hello", "--set", "epochs=1", "--set", "data.samples=40", "--set", "data.test_samples=10",
           "--out", "hello"});
  expect_error({"formula", "hello", "--functions", "sine"}, 2, "invalid_input", {"sine", "there are"});
  expect_error({"formula", "nowhere"}, 2, "not_found", {"nowhere"});
  expect_error({"formula", "hello", "--effort", "-1"}, 2, "invalid_input", {"--effort"});
  json_of({"train", "karate", "--set", "epochs=2", "--out", "karate"});
  expect_error({"formula", "karate"}, 2, "unsupported", {"spline networks"});
  expect_error({"prune", "karate", "--out", "k.safetensors"}, 2, "unsupported", {"spline networks"});
}

}  // namespace
}  // namespace gradloom::test
