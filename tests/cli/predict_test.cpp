// Models that travel: trained in one folder, asked in another, where nothing else of the run is.
#include <signal.h>

#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "gradloom/io/safetensors.h"
#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using Table = std::vector<std::map<std::string, std::string>>;

class Predict : public ProgramTest {
 protected:
  // Two numbers, a word, a price and a kind; some cells of `b` are missing.
  void write_rows(const std::string& name, int rows, double scale, bool answers = true) const {
    std::ostringstream text;
    text << (answers ? "a,b,colour,price,kind\n" : "a,b,colour\n");
    for (int i = 0; i < rows; ++i) {
      const double a = scale * ((i * 37) % 100) / 100.0, b = ((i * 61) % 100) / 10.0;
      const char* colour = i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue";
      text << a << ',';
      if (i % 11 != 5) text << b;
      text << ',' << colour;
      if (answers) text << ',' << a * 2 + b << ',' << (a * 2 + b > 5 ? "dear" : "cheap");
      text << '\n';
    }
    write(name, text.str());
  }

  // The model file alone in a folder of its own, and nothing left of the run and its data.
  void move_away(const std::string& run, const Words& data) const {
    std::filesystem::create_directories(scratch_ / "away");
    std::filesystem::rename(scratch_ / run / "model.safetensors", scratch_ / "away" / "m.safetensors");
    std::filesystem::remove_all(scratch_ / run);
    for (const std::string& name : data) std::filesystem::remove_all(scratch_ / name);
  }

  // A table without quoted cells.
  Table table(const std::string& name) const {
    std::ifstream file(scratch_ / name);
    const auto cells = [](const std::string& line) {
      Words found(1);
      for (const char c : line)
        if (c == ',')
          found.emplace_back();
        else
          found.back().push_back(c);
      return found;
    };
    std::string line;
    std::getline(file, line);
    const Words names = cells(line);
    Table rows;
    while (std::getline(file, line)) {
      const Words values = cells(line);
      EXPECT_EQ(values.size(), names.size()) << line;
      auto& row = rows.emplace_back();
      for (std::size_t c = 0; c < std::min(names.size(), values.size()); ++c) row[names[c]] = values[c];
    }
    return rows;
  }
  std::string head(const std::string& name) const {
    std::ifstream file(scratch_ / name);
    std::string line;
    std::getline(file, line);
    return line;
  }

  const Words kan_ = {"train", "kan-tabular",    "--set", "data.path=old.csv", "--set", "data.target=price",
                      "--set", "data.drop=kind", "--set", "epochs=3",          "--out", "run"};
  const Words gates_ = {"train", "logic-classify",    "--set", "data.path=old.csv",
                        "--set", "data.test_path=",   "--set", "data.target=kind",
                        "--set", "data.drop=price",   "--set", "data.categorical=[]",
                        "--set", "data.missing=mean", "--set", "model.gates=[40,20]",
                        "--set", "epochs=30",         "--out", "run"};
};

TEST_F(Predict, SplineNetworksPredictRowsInAnyFolderWithoutTheirData) {
  write_rows("old.csv", 120, 1.0);
  write_rows("new.csv", 30, 3.0);
  json_of(kan_);
  const auto before = json_of({"eval", "run", "--data", "new.csv", "--predictions", "before.csv"});
  move_away("run", {"old.csv"});
  const auto r = json_of({"predict", "away/m.safetensors", "--data", "new.csv", "--out", "p.csv"});
  EXPECT_EQ(r["family"], "kan");
  EXPECT_EQ(r["epochs"], 3);
  EXPECT_EQ(r["finished"], true);
  EXPECT_EQ(r["rows"], 30);
  EXPECT_EQ(r["data"], before["data"]);
  EXPECT_EQ(head("p.csv"), "row,price,price_predicted,outside");
  const Table rows = table("p.csv"), known = table("before.csv");
  ASSERT_EQ(rows.size(), 30u);
  std::size_t outside = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("row"), std::to_string(i + 1));
    EXPECT_EQ(rows[i].at("price_predicted"), known[i].at("price"));
    outside += rows[i].at("outside") != "0";
  }
  EXPECT_GT(outside, 10u);
  EXPECT_EQ(r["outside"], outside);
  EXPECT_THAT(r["warnings"].dump(), testing::HasSubstr("outside of their range"));
  EXPECT_EQ(before["outside"], outside);
  EXPECT_THAT(before["warnings"].dump(), testing::HasSubstr("of 30 rows have features outside of their range"));

  write_rows("bare.csv", 5, 1.0, false);
  const auto bare = json_of({"predict", "away/m.safetensors", "--data", "bare.csv", "--out", "p.npy"});
  EXPECT_TRUE(bare["data"].is_null());
  const std::string bytes = bytes_of(scratch_ / "p.npy");
  EXPECT_THAT(bytes, testing::HasSubstr("'descr': '<f4', 'fortran_order': False, 'shape': (5, 1,)"));
  EXPECT_EQ(bytes.size(), 128u + 5 * 4);
}

TEST_F(Predict, TrainAndEvalCountRowsOutsideForClassifiersOfGates) {
  write_rows("old.csv", 120, 1.0);
  write_rows("new.csv", 30, 3.0);
  const auto trained = json_of(gates_ + Words{"--set", "data.test_path=new.csv"});
  const auto r = json_of({"eval", "run", "--data", "new.csv"});
  EXPECT_GT(r["outside"], 10);
  EXPECT_EQ(trained["rows_outside"]["test"], r["outside"]);
  EXPECT_EQ(trained["rows_outside"], r["rows_outside"]);
}

TEST_F(Predict, TrainAndEvalCountGraphsOutside) {
  nlohmann::json graphs = nlohmann::json::array();
  for (int g = 0; g < 20; ++g)
    graphs.push_back({{"id", std::to_string(g)},
                      {"class", g % 2 ? "odd" : "even"},
                      {"nodes", {{{"features", {g + 0.5}}}, {{"features", {10}}}}},
                      {"edges", {{0, 1}}}});
  write("g.json", graphs.dump());
  const Words one = {"--set", "train.batch=0",
                     "--set", "data.path=g.json",
                     "--set", "data.features=given",
                     "--set", "data.test=0.8",
                     "--set", "epochs=1",
                     "--set", "data.validation=0",
                     "--out", "run"};
  const auto trained = json_of(Words{"train", "graph-classify"} + one);
  json_of({"eval", "run", "--predictions", "p.csv"});
  std::set<int> test;
  for (const auto& row : table("p.csv")) test.insert(std::stoi(row.at("id")));
  int low = 20, high = 0, outside = 0;
  for (int g = 0; g < 20; ++g)
    if (!test.contains(g)) low = std::min(low, g), high = std::max(high, g);
  for (const int g : test) outside += g < low || g > high;
  EXPECT_GT(outside, 0) << "the seed splits the graphs so";
  EXPECT_EQ(trained["rows_outside"], (nlohmann::json{{"test", outside}}));
  EXPECT_EQ(json_of({"eval", "run", "--data", "g.json"})["outside"], outside);
}

TEST_F(Predict, EvalMeasuresAModelFile) {
  write_rows("old.csv", 120, 1.0);
  json_of(kan_);
  const auto whole = json_of({"eval", "run", "--data", "old.csv"});
  move_away("run", {});
  const auto r = json_of({"eval", "away/m.safetensors", "--data", "old.csv", "--predictions", "p.csv"});
  EXPECT_EQ(r["data"], whole["data"]);
  EXPECT_EQ(table("p.csv").size(), 120u);
  expect_error({"eval", "away/m.safetensors"}, 2, "invalid_input", {"no data"});
}

TEST_F(Predict, ClassesHaveNamesAndProbabilities) {
  write_rows("old.csv", 120, 1.0);
  write_rows("new.csv", 12, 1.0);
  json_of(gates_);
  move_away("run", {"old.csv"});
  const auto r = json_of({"predict", "away/m.safetensors", "--data", "new.csv", "--out", "p.csv"});
  EXPECT_EQ(head("p.csv"), "row,kind,kind_predicted,p(cheap),p(dear),outside");
  double right = 0;
  for (const auto& row : table("p.csv")) {
    const double cheap = std::stod(row.at("p(cheap)")), dear = std::stod(row.at("p(dear)"));
    EXPECT_NEAR(cheap + dear, 1.0, 1e-6);
    EXPECT_EQ(row.at("kind_predicted"), cheap >= dear ? "cheap" : "dear");
    right += row.at("kind") == row.at("kind_predicted");
  }
  EXPECT_EQ(r["data"]["accuracy"], right / 12);
  EXPECT_TRUE(r["data"].contains("hard_accuracy"));
}

TEST_F(Predict, WhatAModelDoesNotKnowIsNamed) {
  write_rows("old.csv", 120, 1.0);
  json_of(kan_);
  write("word.csv", "a,b,colour\n1,2,red\n1,2,pink\n");
  write("column.csv", "a,colour\n1,red\n");
  write("more.csv", "a,b,colour,d\n1,2,red,3\n");
  const auto refused = [&](const std::string& file, const Words& said) {
    expect_error({"predict", "run", "--data", file, "--out", "p.csv"}, 2, "invalid_input", said);
  };
  refused("word.csv", {"word.csv", "'pink'", "'red'"});
  refused("column.csv", {"no column 'b'"});
  refused("more.csv", {"'d'"});
  expect_error({"predict", "run", "--data", "none.csv", "--out", "p.csv"}, 2, "not_found", {"none.csv"});
  expect_error({"predict", "run", "--data", "word.csv", "--out", "p.txt"}, 2, "invalid_input", {".csv or .npy"});
  expect_error({"predict", "run", "--data", "word.csv", "--out", "word.csv"}, 2, "invalid_input", {"word.csv"});
  expect_error({"predict", "run/model.safetensors", "--data", "word.csv", "--out", "run/model.safetensors"}, 2,
               "invalid_input", {"model.safetensors"});
  expect_error({"predict", "run", "--data", "word.csv", "--out", "p.csv", "--distances", "old.csv"}, 2, "invalid_input",
               {"pairs"});
  expect_error({"predict", "nowhere", "--data", "word.csv", "--out", "p.csv"}, 2, "not_found", {"nowhere"});
}

TEST_F(Predict, AStoppedRunIsPredictedWithAndExported) {
  write_rows("old.csv", 120, 1.0);
  Words words = gates_;
  words[std::find(words.begin(), words.end(), "epochs=30") - words.begin()] = "epochs=100000";
  Process process(launch(words));
  while (log("run").size() < 2000) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  const auto r = json_of({"predict", "run", "--data", "old.csv", "--out", "p.csv"});
  EXPECT_EQ(r["finished"], false);
  EXPECT_GT(r["epochs"], 0);
  EXPECT_THAT(r["warnings"].dump(), testing::HasSubstr("was stopped after"));
  json_of({"export", "run", "--format", "c", "--out", "c.c", "--verify"});
  const auto whole = json_of({"eval", "run", "--data", "old.csv"});
  EXPECT_EQ(whole["data"], r["data"]);
  // A run that was killed has a checkpoint alone.
  std::filesystem::remove(scratch_ / "run" / "model.safetensors");
  EXPECT_EQ(json_of({"predict", "run", "--data", "old.csv", "--out", "q.csv"})["data"], r["data"]);
  EXPECT_EQ(bytes_of(scratch_ / "p.csv"), bytes_of(scratch_ / "q.csv"));
}

TEST_F(Predict, CircuitsOfClassifiersSayWhatTheyReadAndVoteFor) {
  write_rows("old.csv", 120, 1.0);
  json_of(gates_);
  const auto circuit = nlohmann::json::parse(bytes_of(scratch_ / "run" / "circuit.json"));
  ASSERT_TRUE(circuit.contains("meaning"));
  EXPECT_EQ(circuit["meaning"]["inputs"].size(), circuit["inputs"]);
  EXPECT_EQ(circuit["meaning"]["outputs"].size(), circuit["outputs"].size());
  EXPECT_EQ(circuit["meaning"]["inputs"][0]["column"], "a");
  EXPECT_EQ(circuit["meaning"]["outputs"].front(), "cheap");
  EXPECT_EQ(circuit["meaning"]["outputs"].back(), "dear");
  move_away("run", {"old.csv"});
  for (const char* format : {"c", "verilog", "json", "dot"}) {
    const std::string file = std::string("x.") + (format == std::string("verilog") ? "v" : format);
    const auto r = json_of({"export", "away/m.safetensors", "--format", format, "--out", file, "--verify"});
    EXPECT_EQ(r["proved"], true) << format;
    const std::string text = bytes_of(scratch_ / file);
    EXPECT_THAT(text, testing::HasSubstr("cheap")) << format;
    EXPECT_THAT(text, testing::HasSubstr(format == std::string("json") ? "\"column\":\"a\"" : "a > 0.")) << format;
  }
  json_of({"export", "away/m.safetensors", "--format", "svg", "--out", "x.svg"});
  EXPECT_THAT(bytes_of(scratch_ / "x.svg"), testing::HasSubstr("<title>cheap</title>"));
}

// Rings and paths, with letters for labels.
std::string small_graphs(int count, int first, bool split) {
  std::ostringstream text;
  text << "[";
  for (int g = 0; g < count; ++g) {
    const int nodes = 3 + (g + first) % 5;
    const bool ring = g % 2 == 0;
    text << (g == 0 ? "" : ",") << R"({"id": "g)" << first + g << "\", ";
    if (split) text << R"("split": "later", )";
    text << R"("class": ")" << (ring ? "ring" : "path") << R"(", "nodes": [)";
    for (int v = 0; v < nodes; ++v) text << (v == 0 ? "" : ",") << R"({"label": ")" << (v % 2 ? "C" : "N") << "\"}";
    text << R"(], "edges": [)";
    for (int v = 1; v < nodes; ++v) text << (v == 1 ? "" : ",") << "[" << v - 1 << "," << v << "]";
    if (ring) text << ",[" << nodes - 1 << ",0]";
    text << "]}";
  }
  return text.str() + "]";
}

TEST_F(Predict, GraphModelsClassifyNewGraphs) {
  write("old.json", small_graphs(40, 0, false));
  json_of({"train", "tu", "--set", "data.path=old.json", "--set", "epochs=10", "--set", "train.ged_sample=0", "--set",
           "model.hidden=[8,8]", "--out", "run"});
  write("new.json", small_graphs(7, 100, true));
  move_away("run", {"old.json"});
  const auto r = json_of({"predict", "away/m.safetensors", "--data", "new.json", "--out", "p.csv"});
  EXPECT_EQ(r["rows"], 7);
  EXPECT_EQ(r["outside"], 0);
  EXPECT_TRUE(r["data"]["accuracy"].is_number());
  EXPECT_EQ(head("p.csv"), "id,split,class,class_predicted,p(path),p(ring),outside");
  const Table rows = table("p.csv");
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[0].at("id"), "g100");
  EXPECT_EQ(rows[0].at("split"), "later");
  double right = 0;
  for (const auto& row : rows) right += row.at("class") == row.at("class_predicted");
  EXPECT_EQ(r["data"]["accuracy"], right / 7);

  // One graph at a time is the same as all at once.
  write("one.json", small_graphs(1, 100, true));
  json_of({"predict", "away/m.safetensors", "--data", "one.json", "--out", "one.csv"});
  EXPECT_EQ(table("one.csv")[0], rows[0]);

  std::string strange = small_graphs(2, 0, false);
  strange.replace(strange.find("\"N\""), 3, "\"Xe\"");
  write("strange.json", strange);
  expect_error({"predict", "away/m.safetensors", "--data", "strange.json", "--out", "p.csv"}, 2, "invalid_input",
               {"graph 'g0'", "node label 'Xe'"});
}

TEST_F(Predict, NodeModelsClassifyNodesOfNewGraphs) {
  const auto graph = [](int nodes, bool classes) {
    std::ostringstream text;
    text << R"({"nodes": [)";
    for (int v = 0; v < nodes; ++v) {
      text << (v == 0 ? "" : ",") << R"({"features": [)" << v % 2 << "," << (v * 7 % 5) / 5.0 << "]";
      if (classes) text << R"(, "class": ")" << (v % 2 ? "odd" : "even") << '"';
      text << "}";
    }
    text << R"(], "edges": [)";
    for (int v = 2; v < nodes; ++v) text << (v == 2 ? "" : ",") << "[" << v - 2 << "," << v << "]";
    return text.str() + "]}";
  };
  write("old.json", graph(40, true));
  write("new.json", graph(9, true));
  write("bare.json", graph(5, false));
  json_of({"train", "karate", "--set", "data.path=old.json", "--set", "data.features=given", "--set",
           "data.train_nodes=[]", "--set", "epochs=60", "--out", "run"});
  move_away("run", {"old.json"});
  const auto r = json_of({"predict", "away/m.safetensors", "--data", "new.json", "--out", "p.csv"});
  EXPECT_EQ(r["rows"], 9);
  EXPECT_GT(r["data"]["accuracy"].get<double>(), 0.9);
  EXPECT_EQ(head("p.csv"), "id,graph,class,class_predicted,p(even),p(odd),outside");
  // Each row tells of the node that its id names, in the order of the file.
  const Table rows = table("p.csv");
  int right = 0;
  for (std::size_t v = 0; v < rows.size(); ++v) {
    EXPECT_EQ(rows[v].at("id"), std::to_string(v));
    EXPECT_EQ(rows[v].at("class"), v % 2 ? "odd" : "even");
    right += rows[v].at("class") == rows[v].at("class_predicted");
  }
  EXPECT_NEAR(r["data"]["accuracy"].get<double>(), right / 9.0, 1e-12);
  EXPECT_TRUE(json_of({"predict", "away/m.safetensors", "--data", "bare.json", "--out", "p.csv"})["data"].is_null());
  write("wide.json", R"({"nodes": [{"features": [1, 2, 3]}], "edges": []})");
  expect_error({"predict", "away/m.safetensors", "--data", "wide.json", "--out", "p.csv"}, 2, "invalid_input",
               {"3 node features", "trained with 2"});
}

TEST_F(Predict, PairModelsCompareNewGraphs) {
  const auto write_paths = [&](int graphs, int first, const std::string& name) {
    std::ofstream text(scratch_ / (name + ".txt")), distances(scratch_ / (name + "-d.txt"));
    distances << graphs << '\n';
    for (int g = 0; g < graphs; ++g) distances << "g" << g << ' ';
    distances << '\n';
    for (int g = 0; g < graphs; ++g) {
      const int nodes = first + g;
      text << "t g" << g << " all\n";
      for (int v = 0; v < nodes; ++v) text << "v " << v << " C\n";
      for (int v = 1; v < nodes; ++v) text << "e " << v - 1 << ' ' << v << " 1\n";
      for (int h = 0; h < g; ++h) distances << 2 * (g - h) << ' ';
      distances << '\n';
    }
  };
  write_paths(16, 2, "old");
  write_paths(4, 5, "new");
  json_of({"train", "ged-regression", "--set", "data.path=old.txt", "--set", "data.distances=old-d.txt", "--set",
           "epochs=5", "--set", "model.hidden=[16]", "--set", "train.batch=16", "--out", "run"});
  move_away("run", {"old.txt", "old-d.txt"});
  const auto bare = json_of({"predict", "away/m.safetensors", "--data", "new.txt", "--out", "p.csv"});
  EXPECT_EQ(bare["rows"], 6);
  EXPECT_TRUE(bare["data"].is_null());
  EXPECT_EQ(head("p.csv"), "id,other,similarity_predicted,distance_predicted,outside");
  const auto r =
      json_of({"predict", "away/m.safetensors", "--data", "new.txt", "--distances", "new-d.txt", "--out", "p.csv"});
  EXPECT_TRUE(r["data"]["mse"].is_number());
  EXPECT_EQ(head("p.csv"), "id,other,similarity,similarity_predicted,distance,distance_predicted,outside");
  const Table rows = table("p.csv");
  EXPECT_EQ(rows[1].at("id") + rows[1].at("other") + rows[1].at("distance"), "g0g24");
  double squares = 0;
  for (const auto& row : rows)
    squares += std::pow(std::stod(row.at("similarity")) - std::stod(row.at("similarity_predicted")), 2) / 6;
  EXPECT_NEAR(squares, r["data"]["mse"].get<double>(), 1e-6);
}

TEST_F(Predict, AutomataRunNewStarts) {
  json_of({"train", "game-of-life-small", "--set", "model.update=[16,8,4,2,1]", "--set", "model.kernels=8", "--set",
           "epochs=2", "--out", "run"});
  json_of({"export", "run", "--format", "json", "--out", "circuit.json"});
  move_away("run", {});
  // A blinker on a grid that was not trained, twice.
  std::string start(2 * 5 * 7, '\0');
  for (const int at : {15, 16, 17, 35 + 15, 35 + 16, 35 + 17}) start[static_cast<std::size_t>(at)] = 1;
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 5, 7), }";
  header.resize(117, ' ');
  write("start.npy", std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + start);
  const auto r = json_of({"predict", "away/m.safetensors", "--data", "start.npy", "--out", "p.csv"});
  EXPECT_EQ(r["rows"], 70);
  EXPECT_TRUE(r["data"]["hard_accuracy"].is_number());
  EXPECT_EQ(head("p.csv"), "row,y,x,c1,c1_predicted");
  const Table rows = table("p.csv");
  EXPECT_EQ(rows[16].at("c1"), "1");  // the blinker turns
  EXPECT_EQ(rows[9].at("c1"), "1");
  EXPECT_EQ(rows[15].at("c1"), "0");
  double right = 0;
  for (const auto& row : rows) right += row.at("c1") == row.at("c1_predicted");
  EXPECT_NEAR(r["data"]["hard_accuracy"].get<double>(), right / 70, 1e-9);
  json_of({"predict", "away/m.safetensors", "--data", "start.npy", "--out", "p.npy"});
  EXPECT_THAT(bytes_of(scratch_ / "p.npy"), testing::HasSubstr("'shape': (2, 1, 5, 7,)"));
  // The circuit of the file is the one that was exported.
  json_of({"export", "away/m.safetensors", "--format", "json", "--out", "again.json"});
  EXPECT_EQ(bytes_of(scratch_ / "again.json"), bytes_of(scratch_ / "circuit.json"));
  write("start.csv", "1,0\n0,1\n");
  expect_error({"predict", "away/m.safetensors", "--data", "start.csv", "--out", "p.csv"}, 2, "invalid_input",
               {".npy", "(1, height, width)"});
}

TEST_F(Predict, RewritersRewriteNewExpressions) {
  json_of({"train", "rewrite",
           "--set", "data.samples=40",
           "--set", "data.validation_samples=5",
           "--set", "data.test_samples=5",
           "--set", "data.most_nodes=8",
           "--set", "model.passes=3",
           "--set", "data.large_samples=0",
           "--set", "epochs=1",
           "--set", "model.width=16",
           "--out", "run"});
  move_away("run", {});
  write("new.txt", "(x+0)\n\n(x*(y+z))\n");
  const auto r = json_of({"predict", "away/m.safetensors", "--data", "new.txt", "--out", "p.csv"});
  EXPECT_EQ(r["rows"], 2);
  EXPECT_TRUE(r["data"]["exact_match"].is_number());
  EXPECT_EQ(head("p.csv"), "row,expression,normal_form,normal_form_predicted,passes,settled,outside");
  EXPECT_EQ(table("p.csv")[0].at("normal_form"), "x");
  expect_error({"predict", "away/m.safetensors", "--data", "new.txt", "--out", "p.npy"}, 2, "unsupported", {".csv"});
  write("bad.txt", "(x+0)\n(x+\n");
  expect_error({"predict", "away/m.safetensors", "--data", "bad.txt", "--out", "p.csv"}, 2, "invalid_input",
               {"bad.txt: line 2"});
}

TEST_F(Predict, DamagedMetadataIsRefusedInEveryFamily) {
  write("old.json", small_graphs(40, 0, false));
  json_of({"train", "tu", "--set", "data.path=old.json", "--set", "epochs=1", "--set", "train.ged_sample=0", "--set",
           "model.hidden=[8]", "--out", "graph"});
  json_of({"train", "game-of-life-small", "--set", "model.update=[16,8,4,2,1]", "--set", "model.kernels=8", "--set",
           "epochs=1", "--out", "life"});
  json_of({"train", "rewrite",
           "--set", "data.samples=40",
           "--set", "data.validation_samples=5",
           "--set", "data.test_samples=5",
           "--set", "data.most_nodes=8",
           "--set", "model.passes=3",
           "--set", "data.large_samples=0",
           "--set", "epochs=1",
           "--set", "model.width=16",
           "--out", "rewrite"});
  const auto refused = [&](const std::string& run, const char* key, const std::string& pointer,
                           const nlohmann::json& value, const std::string& said) {
    const TensorFile file = read_safetensors(scratch_ / run / "model.safetensors").or_throw();
    std::vector<TensorView> tensors;
    for (const Tensor& t : file.tensors()) tensors.push_back({t.name, t.dtype, t.shape, t.bytes, 0});
    Metadata metadata = file.metadata();
    nlohmann::json entry = metadata.contains(key) ? nlohmann::json::parse(metadata[key]) : nlohmann::json();
    entry[nlohmann::json::json_pointer(pointer)] = value;
    metadata[key] = entry.dump();
    write_safetensors(scratch_ / "bad.safetensors", tensors, metadata).or_throw();
    expect_error({"predict", "bad.safetensors", "--data", "old.json", "--out", "p.csv"}, 2, "invalid_input",
                 {"bad.safetensors", said});
  };
  refused("graph", "input", "/nodes", "auto", "'nodes'");
  refused("graph", "input", "/node_features", 3000000000u, "names");
  refused("graph", "input", "/colour", 1, "no key 'colour'");
  refused("graph", "input", "/node_labels", {"C"}, "1 labels");
  refused("graph", "input", "/sparse", true, "sparse");
  refused("graph", "classes", "", {"a", "b", "c"}, "another shape");
  refused("graph", "ranges", "/0", {2, 1}, "[low, high]");
  refused("graph", "training", "/epochs", -1, "'epochs' is -1");
  refused("graph", "colour", "", 1, "'colour'");
  refused("graph", "options", "/model/hidden", {16}, "another shape");
  refused("life", "input", "/height", 0, "no cells");
  refused("life", "input", "/image", {"01"}, "image");
  refused("life", "circuit", "/gates/0/0", 20, "'circuit'");
  refused("rewrite", "input", "/most_nodes", 0, "'most_nodes'");
  refused("rewrite", "input", "/symbols/0", "plus", "'symbols'");
}

}  // namespace
}  // namespace gradloom::test
