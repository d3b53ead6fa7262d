// Similarity of graphs, and rewriting, from the command line.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

class GraphTasks : public ProgramTest {
 protected:
  // Paths of 2 to 13 nodes: the distance is twice the difference, a node and an edge for each.
  void write_paths() {
    std::ofstream graphs(scratch_ / "paths.txt"), distances(scratch_ / "distances.txt");
    constexpr int kGraphs = 24;
    distances << kGraphs << '\n';
    for (int g = 0; g < kGraphs; ++g) distances << "g" << g << ' ';
    distances << '\n';
    for (int g = 0; g < kGraphs; ++g) {
      const int nodes = 2 + g / 2;
      graphs << "t g" << g << " all\n";
      for (int v = 0; v < nodes; ++v) graphs << "v " << v << " C\n";
      for (int v = 1; v < nodes; ++v) graphs << "e " << v - 1 << ' ' << v << " 1\n";
      for (int h = 0; h < g; ++h) distances << 2 * (nodes - (2 + h / 2)) << ' ';
      distances << '\n';
    }
  }
  std::vector<std::string> with_paths(std::vector<std::string> arguments) {
    for (const std::string& s :
         {"data.path=" + (scratch_ / "paths.txt").string(), "data.distances=" + (scratch_ / "distances.txt").string(),
          std::string("train.batch=32"), std::string("model.hidden=[16,16]")}) {
      arguments.push_back("--set");
      arguments.push_back(s);
    }
    return arguments;
  }
};

TEST_F(GraphTasks, SimilarityOfPathsIsLearnedForUnseenOnes) {
  write_paths();
  const auto r =
      json_of(with_paths({"train", "ged-regression", "--set", "epochs=60", "--threads", "2", "--out", "run"}));
  EXPECT_GT(r["test"]["spearman_mean"].get<double>(), 0.9);
  EXPECT_GT(r["unseen"]["spearman"].get<double>(), 0.8);
  for (const char* key : {"mse", "mae", "distance_mae", "spearman", "spearman_mean", "precision_at_10"})
    EXPECT_TRUE(r["test"][key].is_number()) << key;
  const auto again = json_of({"eval", "run"});
  EXPECT_EQ(again["test"]["mse"], r["test"]["mse"]);
  EXPECT_EQ(again["study"]["unseen"]["spearman"], r["unseen"]["spearman"]);
}

TEST_F(GraphTasks, NumbersWithAnOffsetAreLearnedMeasuredAndPredicted) {
  nlohmann::json graphs = nlohmann::json::array();
  for (int g = 0; g < 40; ++g) {
    nlohmann::json nodes = nlohmann::json::array(), edges = nlohmann::json::array();
    for (int v = 0; v < 3 + g % 4; ++v) nodes.push_back({{"features", {g % 5 / 4.0 - 0.5}}});
    for (int v = 1; v < 3 + g % 4; ++v) edges.push_back({v - 1, v});
    graphs.push_back({{"id", std::to_string(g)}, {"target", 1e9 + g % 5 / 4.0}, {"nodes", nodes}, {"edges", edges}});
  }
  write("g.json", graphs.dump());
  const auto r =
      json_of({"train", "graph-classify", "--set", "data.path=g.json", "--set", "loss.kind=mse", "--set",
               "train.batch=8", "--set", "epochs=60", "--set", "model.hidden=[8]", "--threads", "1", "--out", "run"});
  EXPECT_GT(r["test"]["r2"].get<double>(), 0.5) << r;
  EXPECT_TRUE(r["warnings"].empty()) << r["warnings"];
  // The whole file, from the run and from its model file.
  const auto all = json_of({"eval", "run", "--data", "g.json"})["data"];
  EXPECT_LT(all["rmse"].get<double>(), 0.3);
  EXPECT_EQ(json_of({"predict", "run/model.safetensors", "--data", "g.json", "--out", "p.csv"})["data"], all);
  std::istringstream table(bytes_of(scratch_ / "p.csv"));
  std::string line;
  std::getline(table, line);
  EXPECT_EQ(line, "id,target,target_predicted,outside");
  double sum = 0.0;
  for (int g = 0; g < 40; ++g) {
    std::getline(table, line, ',');
    std::getline(table, line, ',');
    const double truth = std::stod(line);
    EXPECT_EQ(truth, 1e9 + g % 5 / 4.0);
    std::getline(table, line, ',');
    sum += std::abs(std::stod(line) - truth);
    std::getline(table, line);
  }
  EXPECT_NEAR(sum / 40, all["mae"].get<double>(), 1e-6);
}

TEST_F(GraphTasks, GraphsThatCarryDifferentThingsAreRefusedBeforeTraining) {
  write("mixed.json", R"([{"id": "a", "nodes": ["C", "O"], "edges": [[0, 1]], "class": "x"},
                          {"id": "b", "nodes": ["C", "O"], "edges": [[0, 1]], "class": "x"},
                          {"id": "c", "nodes": 2, "edges": [[0, 1]], "class": "y"},
                          {"id": "d", "nodes": 2, "edges": [[0, 1]], "class": "y"}])");
  write("mixed.txt", "4\na b c d\n0\n0 0\n2 2 2\n");
  for (const char* recipe : {"tu", "ged-regression"}) {
    Words words = {"train", recipe, "--set", "data.path=mixed.json", "--set", "data.test=0"};
    if (recipe == std::string("tu")) words = words + Words{"--set", "data.folds=0"};
    if (recipe != std::string("tu")) words = words + Words{"--set", "data.distances=mixed.txt"};
    expect_error(words, 2, "invalid_input", {"graph 'c'", "graph 'a'", "labels", "data.features"});
  }
}

TEST_F(GraphTasks, SimilarityEndsWithTheSameBitsOnAnyThreads) {
  write_paths();
  std::string first;
  for (const char* threads : {"1", "2", "3"}) {
    const std::string out = std::string("run") + threads;
    json_of(with_paths({"train", "ged-regression", "--set", "epochs=2", "--threads", threads, "--out", out}));
    const std::string bytes = bytes_of(scratch_ / out / "checkpoint/last.safetensors");
    ASSERT_FALSE(bytes.empty());
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads;
  }
}

TEST_F(GraphTasks, SimilarityPassesTheCheck) {
  write_paths();
  const auto r = json_of(with_paths({"check", "ged-regression"}));
  EXPECT_TRUE(r["passed"].get<bool>()) << r;
}

TEST_F(GraphTasks, WrongPairsAreRefusedBeforeTheyRun) {
  write_paths();
  expect_error(with_paths({"train", "ged-regression", "--set", "data.test=0.99"}), 2, "invalid_input", {"1"});
  expect_error(with_paths({"train", "ged-regression", "--set", "loss.kind=cross-entropy"}), 2, "invalid_input",
               {"cross-entropy", "mse"});
  expect_error(with_paths({"train", "ged-regression", "--set", "model.norm=batch"}), 2, "invalid_input", {"keep_best"});
  std::ofstream(scratch_ / "distances.txt") << "2\na b\n1\n";
  expect_error(with_paths({"train", "ged-regression"}), 2, "invalid_input", {"24 graphs", "between 2"});
  expect_error({"train", "ged-regression", "--set", "data.root=nowhere"}, 2, "not_found", {"nowhere"});
}

const Words kFewExpressions = {"--set", "data.samples=80",      "--set", "data.validation_samples=10",
                               "--set", "data.test_samples=40", "--set", "data.large_samples=5",
                               "--set", "data.most_nodes=9",    "--set", "model.width=32"};

TEST_F(GraphTasks, RewritingIsLearnedAndReported) {
  const auto r = json_of(Words{"train", "rewrite", "--threads", "2", "--out", "run"} + kFewExpressions +
                         Words{"--set", "data.samples=400", "--set", "epochs=20"});
  EXPECT_LE(r["test"]["keep_everything"].get<double>(), 0.1);
  // A few hundred expressions do not teach all rules.
  EXPECT_GT(r["test"]["exact_match"].get<double>(), 0.3);
  for (const char* key : {"exact_match", "ged", "ged_exact", "pass_match", "edit_accuracy", "settled"})
    EXPECT_TRUE(r["test"][key].is_number()) << key;
  EXPECT_TRUE(r["large"]["exact_match"].is_number());
  EXPECT_GT(r["paths"]["exact"].get<int>(), 80);
  const auto again = json_of({"eval", "run"});
  EXPECT_EQ(again["test"]["exact_match"], r["test"]["exact_match"]);
  EXPECT_EQ(again["study"]["large"]["ged"], r["large"]["ged"]);
  EXPECT_THAT(bytes_of(scratch_ / "run/report.html"), testing::HasSubstr("<dt>test exact match</dt>"));
}

TEST_F(GraphTasks, RewritingEndsWithTheSameBitsOnAnyThreads) {
  for (const char* threads : {"1", "2", "3"})
    json_of(
        Words{"train", "rewrite", "--set", "epochs=2", "--threads", threads, "--out", std::string("run") + threads} +
        kFewExpressions);
  ASSERT_FALSE(checkpoint("run1").empty());
  EXPECT_EQ(checkpoint("run2"), checkpoint("run1"));
  EXPECT_EQ(checkpoint("run3"), checkpoint("run1"));
}

TEST_F(GraphTasks, RewritingPassesTheCheck) {
  const auto r = json_of(Words{"check", "rewrite"} + kFewExpressions);
  EXPECT_TRUE(r["passed"].get<bool>()) << r;
}

TEST_F(GraphTasks, WrongRewritingIsRefusedBeforeItRuns) {
  expect_error({"train", "rewrite", "--set", "data.least_nodes=30"}, 2, "invalid_input", {"30", "25"});
  expect_error({"train", "rewrite", "--set", "data.least_nodes=1", "--set", "data.most_nodes=2"}, 2, "invalid_input",
               {"different expressions"});
  expect_error({"train", "rewrite", "--set", "loss.kind=mse"}, 2, "invalid_input", {"cross-entropy"});
  expect_error({"train", "rewrite", "--set", "model.width=20"}, 2, "invalid_input", {"20", "multiple of 16"});
  expect_error({"train", "rewrite", "--set", "loss.soft_weight=-1"}, 2, "invalid_input", {"soft_weight"});
}

}  // namespace
}  // namespace gradloom::test
