// The commands `ged` and `bench ged`.
#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class GedCommand : public ProgramTest {
 protected:
  void SetUp() override {
    write("set.txt",
          "t a train\nv 0 C\nv 1 C\nv 2 O\ne 0 1 1\ne 1 2 2\n"
          "t b train\nv 0 O\nv 1 C\ne 0 1 1\n"
          "t c test\nv 0 N\nv 1 N\nv 2 N\nv 3 N\ne 0 1 1\ne 1 2 1\ne 2 3 1\ne 3 0 1\n");
    write("one.json", "{\"nodes\": [\"C\", \"O\"], \"edges\": [[0, 1, \"1\"]]}");
  }
};

TEST_F(GedCommand, PrintsTheDistanceTheMappingAndTheEdits) {
  const auto r = json_of({"ged", "set.txt:a", "set.txt#1"});
  for (const char* key : {"lower", "upper", "exact", "mapping", "path", "expanded", "seconds"})
    EXPECT_TRUE(r.contains(key)) << key;
  EXPECT_EQ(r["upper"], 3.0) << "one node and its edge are deleted, the other edge gets another label";
  EXPECT_EQ(r["lower"], r["upper"]);
  EXPECT_EQ(r["exact"], true);
  EXPECT_EQ(r["mapping"].size(), 3u);
  double total = 0.0;
  for (const auto& edit : r["path"]) total += edit["cost"].get<double>();
  EXPECT_EQ(total, 3.0);
  const Ended people = run({"ged", "set.txt:a", "set.txt:b"});
  EXPECT_EQ(people.code, 0) << people.err;
  for (const char* word : {"edit distance 3", "node_delete", "mapping"}) EXPECT_THAT(people.out, HasSubstr(word));
}

TEST_F(GedCommand, SaysWhetherTheDistanceIsWithinAThreshold) {
  const auto no = json_of({"ged", "set.txt:a", "set.txt:b", "--threshold", "2.5"});
  EXPECT_EQ(no["within"], false);
  EXPECT_EQ(no["threshold"], 2.5);
  EXPECT_EQ(json_of({"ged", "set.txt:a", "set.txt:b", "--threshold", "3"})["within"], true);
  EXPECT_THAT(run({"ged", "set.txt:a", "set.txt:b", "--threshold", "3"}).out, HasSubstr("within 3"));
  EXPECT_THAT(run({"ged", "set.txt:a", "set.txt:b", "--threshold", "2"}).out, HasSubstr("not within 2"));
  EXPECT_EQ(run({"ged", "set.txt:a", "set.txt:b", "--threshold", "-1"}).code, 2);
  EXPECT_EQ(run({"ged", "set.txt", "--all-pairs", "--threshold", "1"}).code, 2);
}

TEST_F(GedCommand, ComparesFilesOfDifferentForms) {
  EXPECT_EQ(json_of({"ged", "set.txt:b", "one.json"})["upper"], 0.0) << "the same labels, by name";
}

TEST_F(GedCommand, TakesCostsByNumbersPresetAndFile) {
  EXPECT_EQ(json_of({"ged", "set.txt:a", "set.txt:b", "--preset", "topology"})["upper"], 2.0);
  EXPECT_EQ(json_of({"ged", "set.txt:a", "set.txt:b", "--costs", "1,0.5,0.25,2"})["upper"], 2.75);
  write("c.json", "{\"node_indel\": 3, \"edge_pairs\": [[\"1\", \"2\", 0]]}");
  EXPECT_EQ(json_of({"ged", "set.txt:a", "set.txt:b", "--costs", "c.json"})["upper"], 4.0);
  EXPECT_EQ(json_of({"ged", "set.txt:a", "set.txt:c", "--solver", "best-first"})["upper"],
            json_of({"ged", "set.txt:a", "set.txt:c"})["upper"]);
}

TEST_F(GedCommand, GivesABracketAtALimit) {
  std::string text = "t x\n", other = "t y\n";
  for (int i = 0; i < 24; ++i) text += "v " + std::to_string(i) + " C\n";
  for (int i = 0; i < 26; ++i) other += "v " + std::to_string(i) + " C\n";
  for (int i = 0; i < 24; ++i)
    for (int step : {1, 7}) text += "e " + std::to_string(i) + " " + std::to_string((i + step) % 24) + "\n";
  for (int i = 0; i < 26; ++i)
    for (int step : {1, 5}) other += "e " + std::to_string(i) + " " + std::to_string((i + step) % 26) + "\n";
  write("hard.txt", text + other);
  const auto r = json_of({"ged", "hard.txt:x", "hard.txt:y", "--expand", "3000", "--threads", "1"});
  EXPECT_EQ(r["exact"], false);
  EXPECT_LT(r["lower"].get<double>(), r["upper"].get<double>());
  auto again = json_of({"ged", "hard.txt:x", "hard.txt:y", "--expand", "3000", "--threads", "3"});
  again["seconds"] = r["seconds"];
  EXPECT_EQ(again, r);
  EXPECT_EQ(json_of({"ged", "hard.txt:x", "hard.txt:y", "--time", "0.05"})["exact"], false);
}

TEST_F(GedCommand, WritesAllPairs) {
  const auto r = json_of({"ged", "set.txt", "--all-pairs", "--costs", "1,1,1,1", "--out", "d.txt"});
  EXPECT_EQ(r["pairs"], 3);
  EXPECT_EQ(r["exact_share"], 1.0);
  EXPECT_EQ(bytes_of(scratch_ / "d.txt"), "3\na b c\n3\n7 7\n");
  const Ended people = run({"ged", "set.txt", "--all-pairs", "--threads", "2"});
  EXPECT_EQ(people.code, 0) << people.err;
  EXPECT_THAT(people.out, HasSubstr("3 pairs of 3 graphs"));
  EXPECT_THAT(people.err, Not(HasSubstr("\x1b")));
}

TEST_F(GedCommand, SaysWhatIsWrong) {
  expect_error({"ged", "set.txt", "one.json"}, 2, "invalid_input", {"holds 3 graphs", "set.txt:a"});
  expect_error({"ged", "set.txt:z", "one.json"}, 2, "not_found", {"there is no graph 'z'"});
  expect_error({"ged", "set.txt#3", "one.json"}, 2, "invalid_input", {"#2"});
  expect_error({"ged", "none.txt", "one.json"}, 2, "not_found", {"none.txt"});
  expect_error({"ged", "none.txt#0", "one.json"}, 2, "not_found", {"there is no file 'none.txt'"});
  expect_error({"ged", "one.json"}, 2, "invalid_input", {"ged needs two graphs"});
  expect_error({"ged", "one.json", "--all-pairs"}, 2, "invalid_input", {"at least two"});
  expect_error({"ged", "set.txt:a", "set.txt:b", "--out", "x"}, 2, "invalid_input", {"--all-pairs"});
  expect_error({"ged", "set.txt:a", "set.txt:b", "--costs", "1,2"}, 2, "invalid_input", {"four numbers"});
  expect_error({"ged", "set.txt:a", "set.txt:b", "--format", "xml"}, 2, "invalid_input", {"xml"});
  write("bad.txt", "t a\nv 0 C\ne 0 4 1\n");
  expect_error({"ged", "bad.txt", "one.json"}, 2, "invalid_input", {"bad.txt:3"});
  write("what", "what is this\n");
  EXPECT_THAT(run({"ged", "what", "one.json"}).err, HasSubstr("\nhint: --format sets data.format"));
  write("list.gxl", "<GraphCollection><fingerprints><print file='a.gxl'/></fingerprints></GraphCollection>");
  EXPECT_THAT(run({"ged", "list.gxl#0", "one.json"}).err, HasSubstr("\nhint: --folder sets data.graph_folder"));
}

TEST_F(GedCommand, BenchChecksThenMeasures) {
  const auto r = json_of({"bench", "ged", "--graphs", "8", "--nodes", "6", "--seconds", "0.01", "--threads", "2"});
  EXPECT_GT(r["pairs_per_s"].get<double>(), 0.0);
  EXPECT_EQ(r["exact_share"], 1.0);
  EXPECT_EQ(r["pairs"], 28);
  EXPECT_GT(r["checked"].get<int>(), 0);
  EXPECT_EQ(json_of({"bench", "ged", "--file", "set.txt", "--seconds", "0.01"})["pairs"], 3);
}

}  // namespace
}  // namespace gradloom::test
