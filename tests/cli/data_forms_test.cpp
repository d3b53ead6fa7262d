// Data as they come, from the command line: tables of graphs, distances as matrices, images, rules, sweeps.
#include <signal.h>

#include <thread>

#include "gradloom/data/csv.h"
#include "gradloom/data/npy.h"
#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DataForms : public ProgramTest {
 protected:
  // Two groups of nodes that are told apart by a feature of large values.
  void write_tables() const {
    std::string nodes = ",id,height,width,class,split\n", edges = "source,target\n";
    for (int i = 0; i < 40; ++i) {
      const bool red = i % 2 == 0;
      nodes += std::to_string(i) + ",n" + std::to_string(i) + "," + std::to_string(red ? 5000 + i : 5200 + i) + "," +
               std::to_string(i % 7) + "," + (red ? "red" : "blue") + "," +
               (i < 20   ? "train"
                : i < 30 ? "validation"
                         : "test") +
               "\n";
      if (i >= 2) edges += "n" + std::to_string(i) + ",n" + std::to_string(i - 2) + "\n";
    }
    std::filesystem::create_directory(scratch_ / "own");
    write("own/nodes.csv", nodes);
    write("own/edges.csv", edges);
  }
};

TEST_F(DataForms, NodesOfTablesAreClassifiedAndPredictionsHaveTheirIds) {
  write_tables();
  const auto r = json_of({"train", "graph-nodes", "--set", "data.path=own", "--out", "run"});
  EXPECT_EQ(r["test"]["accuracy"], 1.0);
  EXPECT_TRUE(r["warnings"].empty()) << r["warnings"];
  json_of({"predict", "run", "--data", "own", "--out", "p.csv"});
  const CsvTable table = parse_csv(bytes_of(scratch_ / "p.csv"), {}, "p.csv").or_throw();
  EXPECT_EQ(table.rows(), 40u);
  EXPECT_EQ(table.cell(3, *find_column(table.columns, "id")), "n3");
  for (const char* layer : {"gcn", "gin", "gat", "sage-max", "mean"}) {
    const std::string set = std::string("model.layer=") + layer;
    json_of({"train", "graph-nodes", "--set", "data.path=own", "--set", set, "--set", "epochs=2", "--out", layer});
  }
}

TEST_F(DataForms, NewNodesNeedOnlyWhatTheModelReads) {
  write_tables();
  std::filesystem::create_directory(scratch_ / "new data");
  write("own/members.csv", bytes_of(scratch_ / "own/nodes.csv"));
  std::filesystem::remove(scratch_ / "own/nodes.csv");
  json_of({"train", "graph-nodes", "--set", "data.path=own/edges.csv", "--set", "data.nodes=own/members.csv", "--set",
           "data.class_column=class", "--set", "data.drop=[\"width\"]", "--set", "epochs=2", "--out", "run"});
  // Neither the class nor the column that was left out.
  write("new data/members.csv", ",height\na,5000\nb,5200\n");
  write("new data/links.csv", "source,target\na,b\n");
  const Words asked = {"--data", "new data/links.csv", "--nodes", "new data/members.csv"};
  EXPECT_EQ(json_of(Words{"predict", "run", "--out", "p.csv"} + asked)["rows"], 2);
  EXPECT_EQ(json_of(Words{"eval", "run", "--predictions", "e.csv"} + asked)["rows"], 2);
  EXPECT_EQ(bytes_of(scratch_ / "p.csv"), bytes_of(scratch_ / "e.csv"));
  const Words lacking = {"predict", "run", "--data", "new data/links.csv", "--out", "p.csv"};
  expect_error(lacking, 2, "invalid_input", {"0 node features", "data.nodes"});
  EXPECT_THAT(run(lacking).err, HasSubstr("\nhint: --nodes names"));
  expect_error(Words{"predict", "run", "--out", "new data/members.csv"} + asked, 2, "invalid_input", {"overwritten"});
  json_of({"train", "kan-hello", "--set", "epochs=1", "--out", "rows"});
  for (const char* command : {"predict", "eval"})
    expect_error(Words{command, "rows", command == std::string("eval") ? "--predictions" : "--out", "q.csv"} + asked, 2,
                 "invalid_input", {"models of graphs", "reads rows"});
}

TEST_F(DataForms, NewCollectionsMayListFilesThatLieElsewhere) {
  std::filesystem::create_directory(scratch_ / "far away");
  std::string list = "<GraphCollection>\n";
  for (int g = 0; g < 20; ++g) {
    const std::string name = "g" + std::to_string(g) + ".gxl", x = std::to_string(g % 2 == 0 ? 1.5 : 3.5);
    std::string graph = "<gxl><graph id=\"g\" edgemode=\"undirected\">";
    for (const char* node : {"a", "b"})
      graph += std::string("<node id=\"") + node + "\"><attr name=\"x\"><float>" + x + "</float></attr></node>";
    write("far away/" + name, graph + "<edge from=\"a\" to=\"b\"/></graph></gxl>");
    list += "<graph file=\"" + name + "\" class=\"" + (g % 2 == 0 ? "low" : "high") + "\"/>\n";
  }
  write("set.xml", list + "</GraphCollection>");
  json_of({"train", "graph-classify", "--set", "data.path=set.xml", "--set", "data.graph_folder=far away", "--set",
           "train.batch=0", "--set", "epochs=2", "--out", "run"});
  const Words command = {"predict", "run", "--data", "set.xml", "--out", "p.csv"};
  expect_error(command, 2, "invalid_input", {"data.graph_folder"});
  EXPECT_THAT(run(command).err, HasSubstr("\nhint: --folder names"));
  EXPECT_EQ(json_of(command + Words{"--folder", "far away"})["rows"], 20);
}

TEST_F(DataForms, GraphsOfTablesAreClassified) {
  std::filesystem::create_directory(scratch_ / "many");
  std::string nodes = "graph,id,x\n", edges = "graph,from,to\n", graphs = "graph,class\n";
  for (int g = 0; g < 60; ++g) {
    const std::string name = "g" + std::to_string(g);
    for (int v = 0; v < 4; ++v)
      nodes += name + "," + std::to_string(v) + "," + std::to_string((g % 2 == 0 ? 10 : 20) + v + g % 3) + "\n";
    for (int v = 1; v < 4; ++v) edges += name + ",0," + std::to_string(v) + "\n";
    graphs += name + (g % 2 == 0 ? ",low\n" : ",high\n");
  }
  write("many/nodes.csv", nodes);
  write("many/edges.csv", edges);
  write("many/graphs.csv", graphs);
  const auto r = json_of({"train", "graph-classify", "--set", "data.path=many", "--set", "epochs=60", "--out", "run"});
  EXPECT_EQ(r["test"]["accuracy"], 1.0);
  EXPECT_TRUE(r["warnings"].empty()) << r["warnings"];
}

TEST_F(DataForms, DistancesAreWrittenAsTheNameAsks) {
  write("a.txt", "t a\nv 0 C\nv 1 C\ne 0 1 1\nt b\nv 0 O\n");
  write("b.txt", "t x\nv 0 C\nt y\nv 0 C\nv 1 C\ne 0 1 1\nt z,1\nv 0 N\n");
  json_of({"ged", "a.txt", "--all-pairs", "--out", "d.csv"});
  EXPECT_EQ(bytes_of(scratch_ / "d.csv"), "id,a,b\na,0,3\nb,3,0\n");
  const auto r = json_of({"ged", "a.txt", "--against", "b.txt", "--out", "d.csv"});
  EXPECT_EQ(r["graphs"], 2);
  EXPECT_EQ(r["against"], 3);
  EXPECT_EQ(r["pairs"], 6);
  EXPECT_EQ(bytes_of(scratch_ / "d.csv"), "id,x,y,\"z,1\"\na,2,0,3\nb,1,3,1\n");
  json_of({"ged", "a.txt", "--against", "b.txt", "--out", "d.npy"});
  const NpyArray array = parse_npy(bytes_of(scratch_ / "d.npy"), "d.npy").or_throw();
  EXPECT_THAT(array.shape, testing::ElementsAre(2u, 3u));
  EXPECT_THAT(array.to_doubles(), testing::ElementsAre(2, 0, 3, 1, 3, 1));
  expect_error({"ged", "a.txt", "--against", "b.txt", "--out", "d.txt"}, 2, "invalid_input", {".csv or .npy"});
  expect_error({"ged", "a.txt", "b.txt", "--against", "b.txt"}, 2, "invalid_input", {"compares one file with another"});
}

TEST_F(DataForms, ImagesOfIdxAreTrainedOn) {
  std::string images{'\0', '\0', '\x08', '\x03', '\0', '\0', '\0', '\x50',
                     '\0', '\0', '\0',   '\x02', '\0', '\0', '\0', '\x02'};
  std::string labels{'\0', '\0', '\x08', '\x01', '\0', '\0', '\0', '\x50'};
  for (int i = 0; i < 80; ++i) {
    for (int p = 0; p < 4; ++p) images += static_cast<char>(i % 2 == 0 ? 10 + p : 200 - p);
    labels += static_cast<char>(i % 2);
  }
  write("train-images-idx3-ubyte", images);
  write("train-labels-idx1-ubyte", labels);
  const auto r = json_of({"train", "kan-tabular", "--set", "task=classification", "--set",
                          "data.path=train-images-idx3-ubyte", "--set", "epochs=5", "--out", "run"});
  EXPECT_EQ(r["test"]["accuracy"], 1.0);
}

TEST_F(DataForms, ARuleMayHaveAnyName) {
  expect_error({"train", "game-of-life", "--set", "data.rule=B3S23", "--out", "x"}, 2, "invalid_input",
               {"'B3S23'", "B36/S23", "data.rule_table"});
  const auto r = json_of(
      {"train", "game-of-life-small", "--set", "data.rule=B/S012345678", "--set", "epochs=200", "--out", "still"});
  EXPECT_EQ(r["success"], true) << "cells that stay what they are";
  const auto ran = json_of({"run-circuit", "still", "--random", "0.3", "--width", "8", "--height", "8"});
  EXPECT_EQ(ran["rule"], "B/S012345678");
  json_of({"export", "still", "--format", "golly", "--name", "still", "--out", "still.rule"});
  EXPECT_THAT(bytes_of(scratch_ / "still.rule"), AllOf(HasSubstr("@RULE still"), HasSubstr("num_nodes=9\n")));
}

TEST_F(DataForms, ATableOfARuleTrainsLikeItsName) {
  std::string table;
  for (int patch = 0; patch < 512; ++patch) {
    int neighbours = 0;
    for (int bit = 8; bit >= 0; --bit) {
      table += patch >> bit & 1 ? "1," : "0,";
      if (bit != 4) neighbours += patch >> bit & 1;
    }
    const bool lives = neighbours == 3 || neighbours == ((patch >> 4 & 1) ? 2 : 6);
    table += lives ? "1\n" : "0\n";
  }
  write("highlife.csv", table);
  const Words train = {"train", "game-of-life-small", "--set", "epochs=2",
                       "--set", "data.samples=4",     "--set", "train.search=0"};
  const auto named = json_of(train + Words{"--set", "data.rule=B36/S23", "--out", "named"});
  const auto listed = json_of(train + Words{"--set", "data.rule_table=highlife.csv", "--out", "listed"});
  for (const char* key : {"loss", "stages", "test", "circuit"}) EXPECT_EQ(listed[key], named[key]) << key;
}

TEST_F(DataForms, PicturesWithCornersOutOfReachAreRefused) {
  expect_error({"train", "picture", "--set", "model.steps=4", "--out", "x"}, 2, "invalid_input",
               {"20 x 20", "model.steps is 4", "10 or more"});
}

TEST_F(DataForms, ASweepTrainsEveryCombination) {
  const auto r = json_of(Words{"train", "kan-hello", "--sweep", "optimizer.lr=0.5,0.1", "--sweep",
                               "model.hidden=[2],[3,2]", "--seeds", "2", "--out", "s"} +
                         kTiny);
  ASSERT_EQ(r["runs"].size(), 8u);
  EXPECT_EQ(r["runs"][2]["set"], (Words{"optimizer.lr=0.5", "model.hidden=[3,2]"}));
  EXPECT_EQ(r["runs"][3]["seed"], 1);
  const CsvTable table = parse_csv(bytes_of(scratch_ / "s/sweep.csv"), {}, "sweep.csv").or_throw();
  EXPECT_EQ(table.rows(), 4u);
  EXPECT_TRUE(find_column(table.columns, "test rmse"));
  EXPECT_THAT(bytes_of(scratch_ / "s/report.html"), HasSubstr("model.hidden"));
  // The same bits as a run by itself.
  json_of(Words{"train", "kan-hello", "--set", "optimizer.lr=0.1", "--set", "model.hidden=[2]", "--seed", "1", "--out",
                "one"} +
          kTiny);
  EXPECT_EQ(checkpoint("one"), checkpoint("s/optimizer.lr=0.1,model.hidden=[2]/seed-1"));
  expect_error({"train", "kan-hello", "--sweep", "optimizer.lr", "--out", "t"}, 2, "invalid_input", {"KEY=VALUE"});
  expect_error({"train", "kan-hello", "--sweep", "optimizer.xx=1,2", "--out", "t"}, 2, "invalid_input", {"optimizer"});
  expect_error({"train", "kan-hello", "--sweep", "seed=0,1", "--out", "t"}, 2, "invalid_input",
               {"seed cannot be swept"});
}

TEST_F(DataForms, ASweepGoesOnBesideACombinationThatFails) {
  const Words train = Words{"train", "kan-hello", "--set", "optimizer.kind=adam"} + kTiny;
  const auto r = json_of(train + Words{"--sweep", "train.batch=100000,10,0", "--out", "s"}, 1);
  EXPECT_EQ(r["failed"], 1);
  ASSERT_EQ(r["runs"].size(), 3u);
  EXPECT_EQ(r["runs"][0]["error"]["code"], "invalid_input");
  EXPECT_TRUE(r["runs"][1]["test"].is_object());
  const CsvTable table = parse_csv(bytes_of(scratch_ / "s/sweep.csv"), {}, "sweep.csv").or_throw();
  ASSERT_EQ(table.rows(), 3u);
  const auto failed = find_column(table.columns, "failed"), rmse = find_column(table.columns, "test rmse");
  ASSERT_TRUE(failed && rmse);
  EXPECT_EQ(table.cell(0, *failed), "1");
  EXPECT_EQ(table.cell(0, *rmse), "");
  EXPECT_EQ(table.cell(1, *failed), "0");
  EXPECT_NE(table.cell(2, *rmse), "");
  EXPECT_THAT(bytes_of(scratch_ / "s/report.html"), AllOf(HasSubstr("Runs that failed"), HasSubstr("batch of 100000")));
  // A mistake of all is that of the command.
  expect_error(train + Words{"--sweep", "train.batch=100000,200000", "--out", "t"}, 2, "invalid_input", {"batch of"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "t/sweep.csv"));
}

TEST_F(DataForms, AStoppedSweepHasTheTableOfWhatEnded) {
  Process process(launch(Words{"train", "kan-hello", "--json", "--sweep", "epochs=1,100000000,2", "--out", "s",
                               "--threads", std::to_string(std::thread::hardware_concurrency())} +
                         kTiny));
  while (log("s/epochs=100000000").size() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  process.send(SIGINT);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 130);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("gradloom resume s/epochs=100000000"), HasSubstr("not started: epochs=2")));
  const auto r = parsed(ended);
  EXPECT_EQ(r["interrupted"], true);
  EXPECT_EQ(r["runs"].size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / r.value("report", "none")));
  const CsvTable table = parse_csv(bytes_of(scratch_ / "s/sweep.csv"), {}, "sweep.csv").or_throw();
  ASSERT_EQ(table.rows(), 1u) << "only what has ended";
  EXPECT_EQ(table.cell(0, 0), "1");
}

TEST_F(DataForms, ASweepCountsFailuresAsSeedsDo) {
  const Words train = {"train", "game-of-life-small", "--set", "epochs=1", "--set", "train.search=0", "--seeds", "2"};
  const auto seeds = json_of(train + Words{"--out", "seeds"});
  const auto sweep = json_of(train + Words{"--sweep", "data.damage=0.25", "--out", "sweep"});
  EXPECT_EQ(seeds["failed"], 0) << "a goal that is missed is no failure";
  EXPECT_EQ(seeds["success_rate"], 0.0);
  EXPECT_EQ(sweep["failed"], seeds["failed"]);
  const CsvTable table = parse_csv(bytes_of(scratch_ / "sweep/sweep.csv"), {}, "sweep.csv").or_throw();
  const auto failed = find_column(table.columns, "failed"), rate = find_column(table.columns, "success_rate");
  ASSERT_TRUE(failed && rate);
  EXPECT_EQ(table.cell(0, *failed), "0");
  EXPECT_EQ(table.cell(0, *rate), "0");
}

TEST_F(DataForms, KanTabularFitsItselfToSmallTables) {
  std::string text = ",x,y,word,target\n";
  for (int i = 0; i < 60; ++i) {
    const int x = i * 37 % 60, y = i * 23 % 60;
    text += std::to_string(i) + "," + std::to_string(x) + "," + std::to_string(y) + "," + (i % 3 == 0 ? "a" : "b") +
            "," + std::to_string(2 * x + y * y / 20) + "\n";
  }
  write("t.csv", text);
  const Words train{"train", "kan-tabular", "--set", "data.path=t.csv"};
  const auto r = json_of(train + Words{"--out", "a"});
  EXPECT_GT(r["test"]["r2"].get<double>(), 0.9) << r["settled"];
  EXPECT_EQ(r["settled"]["folds"], 5);
  EXPECT_TRUE(r["warnings"].empty()) << r["warnings"];
  EXPECT_THAT(bytes_of(scratch_ / "a/recipe.toml"), HasSubstr("size = \"given\""));
  // The same choice again, and a key that is set stays.
  json_of(train + Words{"--threads", "2", "--out", "b"});
  EXPECT_EQ(checkpoint("a"), checkpoint("b"));
  json_of(train + Words{"--set", "model.hidden=[3]", "--out", "c"});
  EXPECT_THAT(bytes_of(scratch_ / "c/recipe.toml"), HasSubstr("hidden = [3]"));
}

TEST_F(DataForms, LogicClassifyFitsItselfToTheTable) {
  // Whether exactly two of five bits are set.
  std::string text;
  for (int i = 0; i < 64; ++i) {
    const int row = i % 32;
    for (int b = 0; b < 5; ++b) text += std::to_string(row >> b & 1) + ",";
    text += __builtin_popcount(static_cast<unsigned>(row)) == 2 ? "yes\n" : "no\n";
  }
  write("t.csv", text);
  const Words train{"train", "logic-classify", "--set", "data.path=t.csv",
                    "--set", "data.header=no", "--set", "data.test=0.0"};
  const auto r = json_of(train + Words{"--out", "a"});
  EXPECT_EQ(r["train"]["hard_accuracy"], 1.0) << r["settled"];
  EXPECT_EQ(r["settled"]["folds"], 5);
  ASSERT_FALSE(r["settled"]["candidates"].empty());
  for (const auto& candidate : r["settled"]["candidates"]) EXPECT_LT(candidate["error"].get<double>(), 0.5);
  EXPECT_TRUE(r["warnings"].empty()) << r["warnings"];
  EXPECT_THAT(bytes_of(scratch_ / "a/recipe.toml"), HasSubstr("size = \"given\""));
  json_of(train + Words{"--threads", "2", "--out", "b"});
  EXPECT_EQ(checkpoint("a"), checkpoint("b"));
  // Given gates leave nothing to choose, and get no restarts.
  const auto given = json_of(train + Words{"--set", "model.gates=[20,10]", "--set", "epochs=5", "--out", "c"});
  EXPECT_EQ(given["settled"]["candidates"].size(), 1u);
  EXPECT_THAT(bytes_of(scratch_ / "c/recipe.toml"),
              testing::AllOf(HasSubstr("gates = [20, 10]"), HasSubstr("restarts = 1\n")));
}

}  // namespace
}  // namespace gradloom::test
