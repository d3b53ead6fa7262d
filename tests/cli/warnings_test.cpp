// Answers that would be wrong without a word: they are refused, or named among the warnings.
#include <sstream>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Warnings : public ProgramTest {
 protected:
  // y = a + b, with so many rows; `comma` for decimals and ; between cells.
  void write_sums(const std::string& name, int rows, bool comma = false) const {
    std::ostringstream text;
    text << (comma ? "a;b;y\n" : "a,b,y\n");
    for (int i = 0; i < rows; ++i) {
      std::ostringstream row;
      const double a = i * 37 % 100 / 8.0, b = i * 61 % 100 / 16.0;
      row << a << (comma ? ';' : ',') << b << (comma ? ';' : ',') << a + b << '\n';
      std::string line = row.str();
      if (comma) std::replace(line.begin(), line.end(), '.', ',');
      text << line;
    }
    write(name, text.str());
  }
  // Graphs of two nodes with the features `mass` and `charge`, and a target.
  std::string pairs(int count, double offset, const char* first = "mass", const char* second = "charge",
                    bool directed = false) const {
    nlohmann::json graphs = nlohmann::json::array();
    for (int g = 0; g < count; ++g) {
      const double mass = offset + g % 7 / 8.0, charge = g % 5 / 4.0 + 0.125;
      graphs.push_back(
          {{"directed", directed},
           {"multigraph", false},
           {"graph", {{"name", "g" + std::to_string(g)}, {"target", offset + mass + charge}}},
           {"nodes",
            {{{"id", 0}, {first, mass}, {second, charge}}, {{"id", 1}, {first, mass + 0.0625}, {second, charge}}}},
           {"links", {{{"source", 0}, {"target", 1}}}}});
    }
    return graphs.dump();
  }
  Words warned(const nlohmann::json& result) const { return result.at("warnings").get<Words>(); }

  const Words rows_ = {"train",     "kan-tabular",
                       "--set",     "data.path=t.csv",
                       "--set",     "model.size=given",
                       "--set",     "model.knots=uniform",
                       "--set",     "train.batch=0",
                       "--set",     "epochs=4",
                       "--threads", "1",
                       "--out",     "run"};
  const Words graphs_ = {"train",     "tu",
                         "--set",     "data.path=g.json",
                         "--set",     "data.features=given",
                         "--set",     "data.folds=0",
                         "--set",     "model.norm=none",
                         "--set",     "epochs=3",
                         "--set",     "train.ged_sample=0",
                         "--set",     "loss.kind=mse",
                         "--set",     "data.curve=false",
                         "--set",     "train.batch=4",
                         "--set",     "model.hidden=[8]",
                         "--threads", "1",
                         "--out",     "run"};
};

TEST_F(Warnings, FeaturesOfNodesMustHaveTheNamesOfTheTrainingData) {
  write("g.json", pairs(20, 1.0));
  json_of(graphs_);
  write("same.json", pairs(4, 1.0));
  EXPECT_EQ(json_of({"predict", "run", "--data", "same.json", "--out", "p.csv"})["rows"], 4);
  write("other.json", pairs(4, 1.0, "radius"));
  expect_error({"predict", "run", "--data", "other.json", "--out", "p.csv"}, 2, "invalid_input",
               {"other.json", "feature 2 of nodes is 'radius'", "'mass'"});
  write("bare.json", R"({"nodes": [{"features": [0.5, 1]}, {"features": [0.25, 1]}], "edges": [[0, 1]]})");
  EXPECT_EQ(json_of({"predict", "run", "--data", "bare.json", "--out", "p.csv"})["rows"], 1) << "no names: by position";
}

TEST_F(Warnings, ColumnsOfNodesMustHaveTheOrderOfTheTrainingData) {
  for (const char* folder : {"old", "new"}) {
    std::filesystem::create_directory(scratch_ / folder);
    std::ostringstream nodes, edges;
    nodes << (folder[0] == 'o' ? "id,class,mass,charge\n" : "id,class,charge,mass\n");
    edges << "from,to\n";
    for (int v = 0; v < 12; ++v)
      nodes << v << ',' << (v % 2 ? "odd" : "even") << ',' << v / 4.0 << ',' << v % 2 << '\n';
    for (int v = 1; v < 12; ++v) edges << v - 1 << ',' << v << '\n';
    write(std::string(folder) + "/nodes.csv", nodes.str());
    write(std::string(folder) + "/edges.csv", edges.str());
  }
  json_of({"train", "karate", "--set", "data.path=old", "--set", "data.train_nodes=[0,1,2]", "--set",
           "data.features=given", "--set", "epochs=2", "--threads", "1", "--out", "run"});
  EXPECT_EQ(json_of({"predict", "run", "--data", "old", "--out", "p.csv"})["rows"], 12);
  expect_error({"predict", "run", "--data", "new", "--out", "p.csv"}, 2, "invalid_input",
               {"feature 1 of nodes is 'charge'", "'mass'"});
}

TEST_F(Warnings, DirectedGraphsAreRefusedByModelsOfUndirectedOnes) {
  write("g.json", pairs(20, 1.0));
  json_of(graphs_);
  write("new.json", pairs(2, 1.0, "mass", "charge", true));
  expect_error({"predict", "run", "--data", "new.json", "--out", "p.csv"}, 2, "invalid_input",
               {"graph 'g0'", "directed edges", "undirected ones"});
}

TEST_F(Warnings, NumbersOfGraphsThatWouldOverflowAreRefused) {
  write("g.json", pairs(20, 1.0));
  json_of(graphs_);
  write("new.json", pairs(2, 1e25));
  expect_error({"predict", "run", "--data", "new.json", "--out", "p.csv"}, 2, "invalid_input",
               {"1e+25", "too large for float32"});
}

TEST_F(Warnings, WhatFloat32CannotHoldOfGraphsIsNamed) {
  write("g.json", pairs(20, 1e9));
  const Words said = warned(json_of(graphs_));
  EXPECT_THAT(said, testing::Contains(AllOf(HasSubstr("node feature 'mass'"), HasSubstr("float64"))));
  EXPECT_THAT(said, Not(testing::Contains(HasSubstr("'charge'"))));
  EXPECT_THAT(said, Not(testing::Contains(HasSubstr("'target'")))) << "targets are centred";
  // Two offsets: no centre serves both.
  nlohmann::json two = nlohmann::json::parse(pairs(20, 1.0));
  for (std::size_t g = 0; g < two.size(); ++g)
    two[g]["graph"]["target"] = (g % 2 ? 1e9 : -1e9) + static_cast<double>(g);
  write("g.json", two.dump());
  std::filesystem::remove_all(scratch_ / "run");
  EXPECT_THAT(warned(json_of(graphs_)), testing::Contains(AllOf(HasSubstr("graph 'target'"), HasSubstr("float64"))));
}

TEST_F(Warnings, LossesAndMetricsThatAreNotFiniteAreNamedEverywhere) {
  write_sums("t.csv", 60);
  json_of(rows_);
  write("far.csv", "a,b,y\n1,1,3e25\n");
  const Words asked{"run", "--data", "far.csv"};
  for (const Words& words : {Words{"predict"} + asked + Words{"--out", "p.csv"}, Words{"eval"} + asked}) {
    const auto r = json_of(words);
    EXPECT_TRUE(r["data"]["loss"].is_null()) << r;
    EXPECT_TRUE(r["data"]["rmse"].is_number()) << r;
    EXPECT_THAT(warned(r), testing::Contains(AllOf(HasSubstr("not finite on new data: loss;"), HasSubstr("float32"),
                                                   HasSubstr("precision = \"float64\""))));
  }
  std::filesystem::remove_all(scratch_ / "run");
  const Words tested = rows_ + Words{"--set", "data.test_path=far.csv"};
  EXPECT_THAT(warned(json_of(tested)), testing::Contains(HasSubstr("not finite on test data: loss;")));
  write("f.json", R"({"inputs": [{"name": "a"}], "target": "y", "text": "a"})");
  write("far.csv", "a,y\n1,1e200\n2,1e100\n");
  EXPECT_THAT(warned(json_of({"predict", "f.json", "--data", "far.csv", "--out", "p.csv"})),
              testing::Contains(HasSubstr("not finite on new data: loss, r2, rmse;")));
}

TEST_F(Warnings, AFewHiddenValuesBesideTheGridAreNoReasonToWarn) {
  write_sums("t.csv", 100);
  const Words small{"train", "kan-rows", "--set", "data.path=t.csv", "--threads", "1"};
  for (const char* seed : {"0", "1", "2"})
    EXPECT_THAT(warned(json_of(small + Words{"--seed", seed, "--out", std::string("run") + seed})),
                Not(testing::Contains(HasSubstr("of its grid"))));
  const Words narrow{"--set", "model.refit=[]", "--set", "model.lo=-0.01", "--set", "model.hi=0.01"};
  EXPECT_THAT(warned(json_of(small + narrow + Words{"--set", "epochs=5", "--out", "narrow"})),
              AllOf(testing::Contains(HasSubstr("of the inputs of layer 0 lie outside of its grid")),
                    testing::Contains(HasSubstr("of the inputs of layer 1 lie outside of its grid"))));
}

TEST_F(Warnings, AMixOfWholeAndRealNumbersIsNamed) {
  write("g.json", R"({"nodes": [{"id": 0, "x": 1}, {"id": 1, "x": 1.5}], "links": [{"source": 0, "target": 1}]})");
  expect_error(graphs_, 2, "invalid_input", {"attribute 'x'", "a number with a fraction here", "1.0 instead of 1"});
}

TEST_F(Warnings, PredictionsOfGraphsSayWhichGraphsAndOutputsTheyAreOf) {
  write("g.json", pairs(20, 1.0));
  json_of(graphs_);
  json_of({"eval", "run", "--predictions", "p.csv"});
  EXPECT_THAT(bytes_of(scratch_ / "p.csv"), testing::StartsWith("id,target\ng"));
}

TEST_F(Warnings, AModelReadsDecimalsAsItsTrainingDataHadThem) {
  write_sums("t.csv", 60, true);
  json_of(rows_);
  // 1.234 is a number of thousands where commas are decimals; nothing in this file tells.
  write("new.csv", "a;b\n1.234;2\n");
  json_of({"predict", "run", "--data", "new.csv", "--out", "dots.csv"});
  write("plain.csv", "a;b\n1234;2\n");
  json_of({"predict", "run", "--data", "plain.csv", "--out", "plain-p.csv"});
  EXPECT_EQ(bytes_of(scratch_ / "dots.csv"), bytes_of(scratch_ / "plain-p.csv"));
  json_of({"eval", "run", "--data", "new.csv", "--predictions", "eval.csv"});
  std::filesystem::rename(scratch_ / "run/model.safetensors", scratch_ / "m.safetensors");
  json_of({"predict", "m.safetensors", "--data", "new.csv", "--out", "dots.csv"});
  EXPECT_EQ(bytes_of(scratch_ / "dots.csv"), bytes_of(scratch_ / "plain-p.csv"));
  write("points.csv", "a;b\n1.5;2\n");
  EXPECT_EQ(json_of({"predict", "m.safetensors", "--data", "points.csv", "--out", "p.csv"})["outside"], 0);
}

TEST_F(Warnings, ARowThatFloat32CannotHoldIsNamed) {
  write_sums("t.csv", 60);
  json_of(rows_);
  write("new.csv", "a,b\n1,2\n1,1e39\n");
  for (const Words& asked :
       {Words{"predict", "run", "--data", "new.csv", "--out", "p.csv"}, Words{"eval", "run", "--data", "new.csv"}})
    expect_error(asked, 2, "invalid_input", {"new.csv: row 2: 'b' is 1e+39", "the precision of the model"});
}

TEST_F(Warnings, AnEditedRecipeAndLostLinesAreNamedWhenARunGoesOn) {
  write_sums("t.csv", 60);
  json_of(rows_);
  EXPECT_TRUE(warned(json_of({"resume", "run"})).empty());
  write("run/log.jsonl", "");
  EXPECT_THAT(warned(json_of({"resume", "run"})), testing::ElementsAre(HasSubstr("has lost lines")));
  std::string recipe = bytes_of(scratch_ / "run/recipe.toml");
  const std::size_t at = recipe.find("epochs = 4");
  ASSERT_NE(at, std::string::npos);
  write("run/recipe.toml", recipe.replace(at, 10, "epochs = 6"));
  EXPECT_THAT(warned(json_of({"resume", "run"})), testing::Contains(HasSubstr("recipe.toml was edited")));
}

TEST_F(Warnings, RestartingAnOptimizerThatCouldGoOnIsRefused) {
  write_sums("t.csv", 60);
  json_of(rows_);
  expect_error({"resume", "run", "--restart-optimizer"}, 2, "invalid_input",
               {"earlier contract", "gradloom resume run"});
}

TEST_F(Warnings, SettingsThatDoNothingAreNamedOrRefused) {
  write_sums("t.csv", 60);
  expect_error(rows_ + Words{"--set", "train.freeze=[\"*\"]"}, 2, "invalid_input", {"leaves no parameter to train"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run"));
  write("recipe.toml",
        "family = \"kan\"\nepochs = 2\n[data]\npath = \"t.csv\"\nlabels = \"l.csv\"\n[model]\nhidden = "
        "[2]\n[train]\nbatch = 0\n");
  EXPECT_THAT(warned(json_of({"train", "recipe.toml", "--threads", "1", "--out", "run"})),
              testing::Contains(AllOf(HasSubstr("data.labels"), HasSubstr("IDX"))));
}

TEST_F(Warnings, RunsAskedFromAnotherFolderSayWhereDataWereLookedFor) {
  write_sums("t.csv", 60);
  json_of(rows_);
  std::filesystem::create_directory(scratch_ / "elsewhere");
  for (const char* command : {"eval", "resume"}) {
    Launch away = launch({command, "../run", "--json"});
    away.folder = scratch_ / "elsewhere";
    const auto error = parsed(Process(away).wait())["error"];
    EXPECT_EQ(error["code"], "not_found");
    EXPECT_THAT(error["message"].get<std::string>(),
                AllOf(HasSubstr("t.csv"), HasSubstr("looked for from " + (scratch_ / "elsewhere").string()),
                      HasSubstr("the folder that it was trained in"), HasSubstr("gradloom predict ../run")));
  }
}

TEST_F(Warnings, ADashIsNoFile) {
  write_sums("t.csv", 60);
  json_of(rows_);
  for (const Words& asked : {Words{"predict", "run", "--data", "t.csv", "--out", "-"},
                             Words{"eval", "run", "--predictions", "-"}, Words{"train", "kan-hello", "--out", "-"}})
    expect_error(asked, 2, "invalid_input", {"./-"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "-"));
}

TEST_F(Warnings, EveryCommandNamesAnOlderCheckpointAndChangedData) {
  write_sums("t.csv", 60);
  json_of(rows_);
  const Words asked[] = {{"formula", "run", "--effort", "10"},
                         {"prune", "run", "--out", "small.safetensors"},
                         {"predict", "run", "--data", "t.csv", "--out", "p.csv"},
                         {"export", "run", "--format", "onnx", "--out", "run.onnx"}};
  std::filesystem::remove(scratch_ / "run/model.safetensors");
  const auto said = [&](const Words& words) {
    std::string all;
    for (const std::string& warning : warned(json_of(words))) all += warning + "\n";
    return all;
  };
  const auto changed = HasSubstr("the training data have changed"), older = HasSubstr("previous.safetensors");
  for (const Words& words : asked) EXPECT_THAT(said(words), AllOf(Not(changed), Not(older))) << words[0];
  const std::string good = bytes_of(scratch_ / "run/checkpoint/last.safetensors");
  write("run/checkpoint/previous.safetensors", good);
  write("run/checkpoint/last.safetensors", good.substr(0, good.size() / 2));
  for (const Words& words : asked) EXPECT_THAT(said(words), AllOf(Not(changed), older)) << words[0];
  write_sums("t.csv", 61);
  for (const Words& words : asked) {
    EXPECT_THAT(said(words), AllOf(changed, older)) << words[0];
    const Ended shown = run(words);
    const std::string text = shown.out + shown.err;
    EXPECT_THAT(text, AllOf(changed, older)) << words[0];
    EXPECT_EQ(text.find("previous.safetensors"), text.rfind("previous.safetensors")) << "a warning is shown once";
  }
}

TEST_F(Warnings, PruningWhatMattersIsNamed) {
  json_of({"train", "kan-hello", "--set", "epochs=5", "--threads", "1", "--out", "run"});
  const auto all = json_of({"prune", "run", "--inputs", "1", "--out", "one.safetensors"});
  EXPECT_THAT(warned(all), testing::ElementsAre(HasSubstr("too much was removed")));
  EXPECT_TRUE(warned(json_of({"prune", "run", "--worse", "0.1", "--out", "some.safetensors"})).empty());
}

// Paths of four atoms; those of class "with" have a nitrogen at one end.
std::string molecules(int count, const char* atom, bool unique = false) {
  nlohmann::json graphs = nlohmann::json::array();
  for (int g = 0; g < count; ++g) {
    nlohmann::json nodes = nlohmann::json::array(), links = nlohmann::json::array();
    for (int v = 0; v < 4; ++v) {
      const std::string label = unique ? std::to_string(g) + "-" + std::to_string(v) : v == 0 && g % 2 ? atom : "C";
      nodes.push_back({{"id", v}, {"atom", label}, {"charge", (g * 7 + v * 3) % 11 / 8.0 + 0.0625}});
      if (v > 0) links.push_back({{"source", v - 1}, {"target", v}});
    }
    graphs.push_back({{"graph", {{"name", "g" + std::to_string(g)}, {"class", g % 2 ? "with" : "without"}}},
                      {"nodes", nodes},
                      {"links", links}});
  }
  return graphs.dump();
}

TEST_F(Warnings, LabelsAreFeaturesBesideNumbersUnlessTheyAreNames) {
  write("m.json", molecules(60, "N"));
  const Words train{"train", "graph-classify", "--set", "epochs=40", "--threads", "1"};
  const auto r = json_of(train + Words{"--set", "data.path=m.json", "--out", "run"});
  EXPECT_EQ(r["train"]["accuracy"], 1.0);
  EXPECT_THAT(warned(r), Not(testing::Contains(HasSubstr("labels"))));
  write("new.json", molecules(2, "N"));
  EXPECT_EQ(json_of({"predict", "run", "--data", "new.json", "--out", "p.csv"})["data"]["accuracy"], 1.0);
  write("new.json", molecules(2, "Fe"));
  expect_error({"predict", "run", "--data", "new.json", "--out", "p.csv"}, 2, "invalid_input", {"node label 'Fe'"});
  write("m.json", molecules(60, "N", true));
  const Words names = train + Words{"--set", "data.path=m.json", "--set", "epochs=2"};
  EXPECT_THAT(warned(json_of(names + Words{"--out", "names"})), testing::Contains(HasSubstr("240 different labels")));
  EXPECT_THAT(warned(json_of(names + Words{"--set", "data.features=given", "--out", "given"})),
              Not(testing::Contains(HasSubstr("labels"))));
}

TEST_F(Warnings, NetworksThatLearnNothingAreNamed) {
  std::string nodes = "id,x,class\n", edges = "from,to\n";  // the same feature everywhere
  for (int v = 0; v < 60; ++v) nodes += std::to_string(v) + ",1," + (v % 3 ? "red" : "blue") + "\n";
  for (int v = 1; v < 60; ++v) edges += std::to_string(v - 1) + "," + std::to_string(v) + "\n";
  std::filesystem::create_directory(scratch_ / "same");
  write("same/nodes.csv", nodes);
  write("same/edges.csv", edges);
  EXPECT_THAT(
      warned(json_of({"train", "graph-nodes", "--set", "data.path=same", "--set", "epochs=20", "--out", "run"})),
      testing::Contains(HasSubstr("the model has learned nothing")));
}

TEST_F(Warnings, ColumnsAndTargetsWithAValueForEveryRowAreNamed) {
  std::string text = "sold,size,price\n";
  for (int i = 0; i < 120; ++i)
    text += "2024-" + std::to_string(i) + "," + std::to_string(i % 9) + "," + std::to_string(i * 3 + 1) + "\n";
  write("t.csv", text);
  const Words dates = warned(json_of(rows_));
  EXPECT_THAT(dates, testing::Contains(HasSubstr("column 'sold' has 120 values in 120 rows")));
  EXPECT_THAT(dates, Not(testing::Contains(HasSubstr("sold=")))) << "no spline is extended to a category";
  for (const char* recipe : {"kan-tabular", "logic-classify"}) {
    Words classes{"train",     recipe,
                  "--set",     "data.path=t.csv",
                  "--set",     "data.target=price",
                  "--set",     "data.drop=[sold]",
                  "--set",     "model.size=given",
                  "--set",     "epochs=2",
                  "--set",     "data.test=0",
                  "--set",     "data.validation=0",
                  "--threads", "1",
                  "--out",     std::string(recipe) + "-run"};
    if (recipe[0] == 'k') classes = classes + Words{"--set", "task=classification"};
    EXPECT_THAT(warned(json_of(classes)),
                testing::Contains(AllOf(HasSubstr("'price' has 120 classes in 120 rows"), HasSubstr("regression"))));
  }
}

TEST_F(Warnings, FilesThatCannotBeUsedAreRefusedBeforeTraining) {
  write("t.csv",
        "a,stra\xdf"
        "e\n1,2\n2,3\n");
  expect_error(rows_, 2, "invalid_input", {"line 1 is not UTF-8; save the file as UTF-8"});
  write("t.csv", "a,b,y\n");
  expect_error(rows_, 2, "invalid_input", {"there is a header, but no row follows it"});
  std::filesystem::remove(scratch_ / "t.csv");
  std::filesystem::create_directory(scratch_ / "t.csv");
  expect_error(rows_, 2, "invalid_input", {"'t.csv' is a folder"});
}

TEST_F(Warnings, AFinishedRunWithoutItsModelFileWasNotStopped) {
  write_sums("t.csv", 60);
  json_of(rows_);
  std::filesystem::remove(scratch_ / "run/model.safetensors");
  const auto r = json_of({"predict", "run", "--data", "t.csv", "--out", "p.csv"});
  EXPECT_EQ(r["finished"], true);
  EXPECT_THAT(warned(r), Not(testing::Contains(HasSubstr("was stopped"))));
}

}  // namespace
}  // namespace gradloom::test
