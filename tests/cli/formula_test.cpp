// Formulas and pruning, as commands.
#include <cmath>
#include <sstream>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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
  EXPECT_FALSE(trained.contains("finished_before"));
  EXPECT_EQ(json_of({"resume", "run"})["finished_before"], true);
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

TEST_F(FormulaCommand, ARunWithoutAFormulaReportsSharesAndEdges) {
  write_table("t.csv", 120);
  json_of(train_ + Words{"--set", "formula.search=false"});
  const std::string report = bytes_of(scratch_ / "run" / "report.html");
  EXPECT_THAT(report.substr(report.find("Inputs"), 600), HasSubstr(">rooms<"));
  EXPECT_THAT(report, HasSubstr("The function on each edge over its input values"));
  EXPECT_THAT(report, Not(HasSubstr("function of the library")));
}

TEST_F(FormulaCommand, ManyEdgesAreAnsweredWithinTheEffort) {
  write_table("t.csv", 120, 0.01);
  json_of(train_ + Words{"--set", "formula.search=false", "--set", "model.hidden=[32,32]", "--set", "epochs=1", "--set",
                         "model.refit=[]"});
  const auto f = json_of({"formula", "run", "--effort", "3000", "--threads", "1"});
  EXPECT_LT(f["work"].get<double>(), 3 * 3000.0);
  EXPECT_EQ(f["edges"].size(), 3u * 32 + 32 * 32 + 32);
}

TEST_F(FormulaCommand, AFormulaOfCategoriesReadsTheirColumn) {
  write("f.json", R"({"target": "price", "inputs": [{"name": "area"}, {"name": "city=Bonn"}, {"name": "city=Kiel"}],
                      "text": "2*area + 40*city_Kiel"})");
  write("new.csv", "area,city\n1,Kiel\n2,Bonn\n3,Rome\n");
  json_of({"predict", "f.json", "--data", "new.csv", "--out", "p.csv"});
  EXPECT_EQ(bytes_of(scratch_ / "p.csv"), "price_predicted\n42\n4\n6\n");
  write("coded.csv", "area,city=Kiel\n1,1\n2,0\n");
  json_of({"predict", "f.json", "--data", "coded.csv", "--out", "p.csv"});
  EXPECT_EQ(bytes_of(scratch_ / "p.csv"), "price_predicted\n42\n4\n");
}

TEST_F(FormulaCommand, AFormulaInAFilePredictsAndIsFittedToOtherRows) {
  write_table("t.csv", 300);
  json_of(train_);
  json_of({"formula", "run", "--out", "f.json"});
  write("new.csv", "area,id,rooms,price\n3.5,7,1.5,2.625\n4,8,3,6\n");
  const auto asked = json_of({"predict", "f.json", "--data", "new.csv", "--out", "p.csv"});
  EXPECT_EQ(asked["rows"], 2);
  EXPECT_EQ(asked["data"]["rmse"], 0.0);
  EXPECT_EQ(bytes_of(scratch_ / "p.csv"), "price_predicted\n2.625\n6\n");
  write("features.csv", "rooms,area,noise\n1,2,0\n");
  EXPECT_TRUE(json_of({"predict", "f.json", "--data", "features.csv", "--out", "q.npy"})["data"].is_null());
  // Its numbers fitted to a third of the price.
  write("third.csv", "rooms,area,noise,price\n1,2,0,0.3333333\n2,3,0,1\n3,5,0,2.5\n");
  const auto fitted = json_of({"formula", "f.json", "--data", "third.csv", "--out", "g.json"});
  EXPECT_EQ(fitted["status"], "fitted");
  EXPECT_LT(fitted["rmse_formula"].get<double>(), 1e-6);
  EXPECT_EQ(json_of({"formula", "g.json"})["text"], fitted["text"]);
  EXPECT_EQ(json_of({"formula", "f.json", "--data", "new.csv"})["text"], "rooms*area/2");
  expect_error({"formula", "f.json", "--functions", "sin"}, 2, "invalid_input", {"nothing is searched"});
  expect_error({"predict", "f.json", "--data", "p.csv", "--out", "r.csv"}, 2, "invalid_input", {"no column 'rooms'"});
  write("bad.json", "{\"inputs\":[{\"name\":\"x\"}],\"target\":\"y\",\"text\":\"x +* 2\"}");
  expect_error({"predict", "bad.json", "--data", "new.csv", "--out", "r.csv"}, 2, "invalid_input", {"cannot be read"});
  write("none.json", "{}");
  expect_error({"formula", "none.json"}, 2, "invalid_input", {"contains no formula"});
}

// Columns a, b and what f makes of them, in all digits.
class BadInput : public ProgramTest {
 protected:
  template <class F>
  void write_rows(const std::string& header, int rows, F&& f) const {
    std::ostringstream text;
    text.precision(17);
    text << header << '\n';
    for (int i = 0; i < rows; ++i) f(text, -2 + (i * 37 % 101) / 25.0 + 0.01, -1 + (i * 61 % 103) / 50.0, i);
    write("t.csv", text.str());
  }

  Words train(const Words& more = {}) const {
    return Words{"train", "kan-formula",         "--set", "data.formula=", "--set",     "data.path=t.csv",
                 "--set", "data.target=y",       "--set", "epochs=6",      "--set",     "model.refit=[]",
                 "--set", "formula.effort=2000", "--out", "run",           "--threads", "1"} +
           more;
  }

  // A finished run has all that belongs to it, and its formula is finite everywhere.
  nlohmann::json formula_of_run(const Words& more = {}) const {
    const auto trained = json_of(train(more));
    EXPECT_TRUE(trained.contains("formula")) << trained;
    for (const char* file : {"model.safetensors", "report.html", "formula.json"})
      EXPECT_TRUE(std::filesystem::exists(scratch_ / "run" / file)) << file;
    const auto f = trained.value("formula", nlohmann::json::object());
    EXPECT_TRUE(f.value("rmse_formula", nlohmann::json()).is_number()) << f;
    EXPECT_TRUE(f.value("rmse_network", nlohmann::json()).is_number()) << f;
    return f;
  }
};

TEST_F(BadInput, APoleInsideTheDataIsNoObstacle) {
  write_rows("a,b,y", 150, [](auto& to, double a, double b, int) { to << a << ',' << b << ',' << b / a << '\n'; });
  EXPECT_EQ(formula_of_run()["text"], "b/a");
  EXPECT_TRUE(json_of({"prune", "run", "--out", "s.safetensors"}).contains("change"));
}

TEST_F(BadInput, APoleUnderNoiseGetsAPlainAnswer) {
  write_rows("a,b,y", 150, [](auto& to, double a, double b, int i) {
    to << a << ',' << b << ',' << b / a + 0.3 * (i * 7919 % 101 - 50) / 50.0 << '\n';
  });
  const auto f = formula_of_run();
  EXPECT_NE(f["status"], "exact");
  EXPECT_NE(f["note"], "");
}

TEST_F(BadInput, AConstantTargetIsANumber) {
  write_rows("a,b,y", 80, [](auto& to, double a, double b, int) { to << a << ',' << b << ",3.5\n"; });
  const auto f = formula_of_run();
  EXPECT_EQ(f["text"], "7/2");
  EXPECT_EQ(f["status"], "exact");
}

TEST_F(BadInput, ATargetThatIsNoiseIsNotExplained) {
  write_rows("a,b,y", 80, [](auto& to, double, double, int i) { to << "1,2," << i * 7919 % 101 << '\n'; });
  const auto f = formula_of_run();
  EXPECT_EQ(f["status"], "approximate");
  EXPECT_THAT(f["note"].get<std::string>(), HasSubstr("better than its mean"));
}

TEST_F(BadInput, OfTwoEqualColumnsTheFirstIsUsed) {
  write_rows("a,copy,b,y", 120,
             [](auto& to, double a, double b, int) { to << a << ',' << a << ',' << b << ',' << 1 + a * b << '\n'; });
  EXPECT_EQ(formula_of_run()["text"], "1 + a*b");
}

TEST_F(BadInput, CategoriesAreNumbersInAFormulaAndCannotBePruned) {
  write_rows("a,color,y", 120, [](auto& to, double a, double, int i) {
    to << a << ',' << (i % 3 ? "red" : "green") << ',' << (i % 3 ? 2 : 1) * a * a << '\n';
  });
  const auto f = formula_of_run();
  EXPECT_EQ(f["status"], "exact");
  EXPECT_THAT(f["text"].get<std::string>(), HasSubstr("color_"));
  expect_error({"prune", "run", "--out", "s.safetensors"}, 2, "unsupported", {"categories"});
}

TEST_F(BadInput, AColumnOfCategoriesHasTheScoreOfItsInputsTogether) {
  write_rows("a,color,y", 120, [](auto& to, double a, double, int i) {
    to << a << ',' << (i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue") << ',' << a + 2 * (i % 3) << '\n';
  });
  const auto f = formula_of_run();
  ASSERT_EQ(f["inputs"].size(), 4u);
  ASSERT_EQ(f["columns"].size(), 2u);
  EXPECT_EQ(f["columns"][0], f["inputs"][0]);
  EXPECT_EQ(f["columns"][1]["name"], "color");
  double sum = 0;
  for (std::size_t i = 1; i < 4; ++i) sum += f["inputs"][i]["score"].get<double>();
  EXPECT_DOUBLE_EQ(f["columns"][1]["score"].get<double>(), sum);
  // Two columns share 1: what one wins the other loses, and their errors are the same.
  EXPECT_NEAR(f["columns"][1]["error"].get<double>(), f["columns"][0]["error"].get<double>(), 1e-12);
  EXPECT_THAT(run({"formula", "run"}).out, HasSubstr(", color "));
  const std::string report = bytes_of(scratch_ / "run" / "report.html");
  EXPECT_THAT(report.substr(report.find("Inputs"), 600), HasSubstr(">color<"));
}

TEST_F(BadInput, ANetworkWithoutHiddenLayersHasAFormula) {
  write_rows("a,b,y", 120, [](auto& to, double a, double b, int) { to << a << ',' << b << ',' << a + b * b << '\n'; });
  EXPECT_EQ(formula_of_run({"--set", "model.hidden=[]"})["text"], "a + b^2");
  const auto alone = json_of({"formula", "run/model.safetensors", "--threads", "1"});
  EXPECT_EQ(alone["status"], "approximate");
  EXPECT_LT(alone["rmse_formula"].get<double>(), 0.1);
  EXPECT_EQ(json_of({"prune", "run", "--out", "s.safetensors"})["widths"], nlohmann::json({2, 1}));
}

TEST_F(BadInput, AnUntrainedNetworkDoesNotSpoilTheSearch) {
  write_rows("a,b,y", 120, [](auto& to, double a, double b, int) { to << a << ',' << b << ',' << a * b << '\n'; });
  EXPECT_EQ(formula_of_run({"--set", "epochs=0"})["text"], "a*b");
  EXPECT_EQ(json_of({"formula", "run/model.safetensors", "--threads", "1"})["status"], "approximate");
}

TEST_F(BadInput, FewRowsAreApproximated) {
  write_rows("a,b,y", 14, [](auto& to, double a, double b, int) { to << a << ',' << b << ',' << a * b << '\n'; });
  const auto f = formula_of_run();
  EXPECT_EQ(f["status"], "approximate");
  EXPECT_THAT(f["note"].get<std::string>(), HasSubstr("at least 20 rows"));
}

TEST_F(BadInput, FunctionsAreReadBeforeTraining) {
  write_rows("a,b,y", 80, [](auto& to, double a, double b, int) { to << a << ',' << b << ',' << a * b << '\n'; });
  const auto refused = [&](const std::string& setting, const Words& said) {
    expect_error(train({"--set", setting}), 2, "invalid_input", said);
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "run"));
  };
  refused("formula.functions=[\"sine\"]", {"'sine'", "there are"});
  refused("formula.define=[\"hill = x^2/(1 + \"]", {"hill", "at the end"});
  refused("formula.fix=[\"0.7.0 sin\"]", {"no edge 0.7.0", "2, 5, 1"});
  refused("formula.forbid=[\"0.0 sin\"]", {"LAYER.FROM.TO"});
}

TEST_F(BadInput, AnEdgeKeepsTheFunctionThatItIsFixedTo) {
  write_rows("a,b,y", 120, [](auto& to, double a, double b, int) { to << a << ',' << b << ',' << a + b * b << '\n'; });
  json_of(train({"--set", "model.hidden=[]"}));
  const auto edge = [](const nlohmann::json& f, std::size_t from) { return f["edges"][from]["candidates"]; };
  const auto fixed =
      json_of({"formula", "run", "--fix", "0.1.0 hump", "--define", "hump = x^2*(1 + x^2/1000)", "--threads", "1"});
  EXPECT_EQ(fixed["status"], "approximate");
  EXPECT_THAT(fixed["note"].get<std::string>(), HasSubstr("edge by edge"));
  ASSERT_EQ(edge(fixed, 1).size(), 1u);
  EXPECT_EQ(edge(fixed, 1)[0]["function"], "hump");
  EXPECT_LT(fixed["rmse_formula"].get<double>(), 0.1);
  const auto forbidden = json_of({"formula", "run", "--forbid", "0.1.0 x^2", "--threads", "1"});
  for (const auto& candidate : edge(forbidden, 1)) EXPECT_NE(candidate["function"], "x^2");
  expect_error({"formula", "run", "--fix", "0.9.0 sin"}, 2, "invalid_input", {"0.9.0"});
}

TEST_F(BadInput, AFunctionThatIsForbiddenIsNotFound) {
  write_rows("a,b,y", 120,
             [](auto& to, double a, double b, int) { to << a << ',' << b << ',' << b + std::sin(a) << '\n'; });
  EXPECT_THAT(formula_of_run()["text"].get<std::string>(), HasSubstr("sin(a)"));
  const auto without = json_of({"formula", "run", "--forbid", "sin", "--forbid", "cos", "--effort", "2000"});
  EXPECT_THAT(without["text"].get<std::string>(), Not(HasSubstr("sin(")));
  EXPECT_THAT(without["text"].get<std::string>(), Not(HasSubstr("cos(")));
}

TEST_F(BadInput, AForbiddenPowerIsInNoFormula) {
  write_rows("a,b,y", 120, [](auto& to, double a, double b, int) { to << a << ',' << b << ',' << a + b * b << '\n'; });
  EXPECT_EQ(formula_of_run()["text"], "a + b^2");
  const auto without = json_of({"formula", "run", "--forbid", "x^2", "--effort", "500", "--threads", "1"});
  EXPECT_EQ(without["status"], "approximate");
  EXPECT_THAT(without["text"].get<std::string>(), Not(HasSubstr("^2")));
  for (const auto& e : without["edges"])
    for (const auto& candidate : e["candidates"])
      EXPECT_THAT(candidate["text"].get<std::string>(), Not(HasSubstr("^2")));
  expect_error({"formula", "run", "--forbid", "x"}, 2, "invalid_input", {"forbid \"x\"", "single edges"});
}

// x2 and x4 do nothing.
const char* const kPruned =
    "family = \"kan\"\ntask = \"regression\"\nprecision = \"float64\"\nepochs = 12\n[data]\nformula = \"sin(3*x1) + "
    "0*x2 + x3^2 + 0*x4\"\nsamples = 300\ntest_samples = 100\nvalidation = 0.2\n[model]\nhidden = [4]\nnormalise = "
    "\"range\"\nsparsity = 1e-4\n[optimizer]\nkind = \"lbfgs\"\nlr = 1.0\n[[stage]]\n[[stage]]\nsparsity = "
    "0.0\nrefit = [0, 5]\n";

class PruneStage : public ProgramTest {
 protected:
  nlohmann::json train(const std::string& stage, const Words& more = {}) const {
    write("r.toml", kPruned + stage + "\n[[stage]]\ngrid = 8\nsparsity = 0.0\n");
    return json_of(Words{"train", "r.toml"} + more);
  }
};

TEST_F(PruneStage, TrainingGoesOnWithWhatIsLeft) {
  const auto trained = train("prune = 0.01", {"--out", "run", "--threads", "1"});
  EXPECT_EQ(trained["pruned"]["inputs"], nlohmann::json({"x1", "x3"}));
  EXPECT_EQ(trained["pruned"]["edges_before"], 20);
  EXPECT_LT(trained["pruned"]["edges"], 15);
  EXPECT_EQ(trained["stages"][1]["note"], "grid 5, pruned");
  EXPECT_LT(trained["stages"][2]["train"]["loss"], trained["stages"][1]["train"]["loss"]);
  EXPECT_LT(trained["test"]["rmse"].get<double>(), 0.05);
  // Only zeros are left to remove: the function stays.
  const auto small = json_of({"prune", "run", "--threshold", "0", "--out", "s.safetensors"});
  EXPECT_EQ(small["widths"][0], 2);
  EXPECT_EQ(small["edges"], trained["pruned"]["edges"]);
  EXPECT_LT(small["change"].get<double>(), 1e-12);
  train("prune = 0.01", {"--out", "again", "--threads", "3"});
  EXPECT_EQ(checkpoint("again"), checkpoint("run"));
}

TEST_F(PruneStage, OfANetworkThatPredictsClassesIsFollowedByASmallerFile) {
  std::ostringstream text;
  text << "a,b,c,kind\n";
  for (int i = 0; i < 200; ++i) {
    const double a = (i * 37 % 101) / 50.0 - 1, b = (i * 61 % 103) / 50.0 - 1, c = (i * 17 % 97) / 50.0 - 1;
    text << a << ',' << b << ',' << c << ',' << (a + b * b > 0.2 ? "in" : "out") << '\n';
  }
  write("t.csv", text.str());
  write("r.toml",
        "family = \"kan\"\ntask = \"classification\"\nepochs = 8\n[data]\npath = \"t.csv\"\ntarget = \"kind\"\ntest = "
        "0.2\n[model]\nhidden = [4]\nnormalise = \"range\"\nsparsity = 1e-3\n[optimizer]\nkind = \"lbfgs\"\nlr = "
        "1.0\n[[stage]]\n[[stage]]\nprune_inputs = 2\n");
  const auto trained = json_of({"train", "r.toml", "--out", "run", "--threads", "1"});
  const auto small = json_of({"prune", "run", "--threshold", "0", "--out", "s.safetensors"});
  EXPECT_EQ(small["edges"], trained["pruned"]["edges"]);
  EXPECT_EQ(small["removed"], nlohmann::json({"c"}));
  EXPECT_LT(small["parameters"], small["parameters_before"]);
  EXPECT_FALSE(small.contains("rmse"));
  EXPECT_NEAR(small["loss"].get<double>(), small["loss_before"].get<double>(), 1e-5);
  EXPECT_LT(json_of({"prune", "run", "--worse", "50", "--out", "w.safetensors"})["edges"], small["edges"]);
  const auto asked = json_of({"predict", "s.safetensors", "--data", "t.csv", "--out", "p.csv"});
  EXPECT_GT(asked["data"]["accuracy"].get<double>(), 0.8);
  expect_error({"formula", "run"}, 2, "unsupported", {"predicts classes"});
}

TEST_F(PruneStage, KeepsSoManyInputsOrSoGoodALoss) {
  EXPECT_EQ(train("prune_inputs = 2")["pruned"]["inputs"], nlohmann::json({"x1", "x3"}));
  const auto worse = train("prune_worse = 0.5");
  EXPECT_EQ(worse["pruned"]["inputs"], nlohmann::json({"x1", "x3"}));
  EXPECT_LT(worse["test"]["rmse"].get<double>(), 0.05);
}

TEST_F(PruneStage, OptionsThatCannotBeAreNamed) {
  write("r.toml", std::string(kPruned) + "prune = 0.01\nprune_inputs = 2\n");
  expect_error({"train", "r.toml"}, 2, "invalid_input", {"exclude each other"});
  expect_error(Words{"train", "kan-formula", "--set", "model.prune=0.1"} + kTiny, 2, "invalid_input", {"[[stage]]"});
  write("r.toml", std::string(kPruned) + "prune = 0.01\n");
  expect_error({"train", "r.toml", "--set", "model.bias=false"}, 2, "invalid_input", {"model.bias"});
}

TEST_F(FormulaCommand, EffortBoundsTheWorkAndThreadsDoNotChangeTheAnswer) {
  write_table("t.csv", 200, 0.002);
  json_of(train_ + Words{"--set", "formula.search=false"});
  const Words asked = {"formula", "run", "--effort", "400"};
  const auto one = json_of(asked + Words{"--threads", "1"});
  EXPECT_EQ(json_of(asked + Words{"--threads", "3"}), one);
  EXPECT_GT(one["work"].get<double>(), 0);
  EXPECT_LT(one["work"].get<double>(), 3 * 400.0);  // of two searches, each of which ends a step that it has begun
  EXPECT_NE(one["status"], "exact");
  EXPECT_THAT(run(asked).err, HasSubstr("% of the effort"));
}

TEST_F(FormulaCommand, NamesWhatIsWrong) {
  write_table("t.csv", 60);
  json_of({"train", "kan-hello", "--set", "epochs=1", "--set", "data.samples=40", "--set", "data.test_samples=10",
           "--out", "hello"});
  expect_error({"formula", "hello", "--functions", "sine"}, 2, "invalid_input", {"sine", "there are"});
  const std::size_t levels = 100'000;
  write("hello/formula.json", std::string(levels, '[') + std::string(levels, ']'));
  expect_error({"formula", "hello"}, 2, "invalid_input", {"formula.json", "more than 64 levels", "--again"});
  write("hello/formula.json", "[]");
  expect_error({"formula", "hello"}, 2, "invalid_input", {"contains no formula", "--again"});
  expect_error({"formula", "nowhere"}, 2, "not_found", {"nowhere"});
  expect_error({"formula", "hello", "--effort", "-1"}, 2, "invalid_input", {"--effort"});
  for (const Words& two : {Words{"--threshold", "0.2", "--inputs", "3"}, Words{"--threshold", "0.2", "--worse", "0.1"},
                           Words{"--inputs", "3", "--worse", "0.1"}})
    expect_error(Words{"prune", "hello", "--out", "h.safetensors"} + two, 2, "invalid_input",
                 {"threshold, inputs and worse exclude each other"});
  EXPECT_EQ(json_of({"prune", "hello", "--out", "h.safetensors"})["threshold"], 0.01);
  EXPECT_EQ(json_of({"prune", "hello", "--threshold", "0", "--out", "h.safetensors"})["threshold"], 0.0);
  json_of({"train", "karate", "--set", "epochs=2", "--out", "karate"});
  expect_error({"formula", "karate"}, 2, "unsupported", {"spline networks"});
  expect_error({"prune", "karate", "--out", "k.safetensors"}, 2, "unsupported", {"spline networks"});
}

}  // namespace
}  // namespace gradloom::test
