#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "gradloom/data/graph_source.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;

GraphSource named(const std::string& name) {
  GraphSource source;
  source.path = name;
  return source;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

GraphSet load(const std::filesystem::path& path) {
  GraphSource source;
  source.path = path;
  return load_graphs(source).or_throw();
}

std::string load_error(const std::filesystem::path& path) {
  GraphSource source;
  source.path = path;
  const auto result = load_graphs(source);
  return result.ok() ? "no error" : result.error().message;
}

const std::string kTve =
    "# two graphs\nt 4 train\nv 0 C\nv 1 N\ne 0 1 2\nt # 21\nv 0 C\nv 1 C\nv 2 S\ne 2 0 1\ne 1 2 1\n";
const std::string kGin = "2\n3 1\n0 1 1\n0 2 0 2\n5 1 1\n2 -1\n0 1 1\n0 1 0\n";
const std::string kGxl =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE gxl SYSTEM \"x.dtd\">\n<gxl>\n<graph id=\"g\" edgemode=\"undirected\">\n"
    "<node id=\"_1\"><attr name=\"chem\"><int>6</int> </attr><attr name=\"x\"><float>1.5</float></attr></node>\n"
    "<node id=\"_2\"><attr name=\"chem\"><int>7</int></attr><attr name=\"x\"><float>-2</float></attr></node>\n"
    "<edge from=\"_2\" to=\"_1\"><attr name=\"valence\"><int>1</int></attr></edge>\n</graph>\n</gxl>\n";
const std::string kJson =
    "{\"directed\": true,\n \"graphs\": [{\"id\": \"a\", \"class\": 1, \"nodes\": [\"C\", \"N\"], \"edges\": [[0, 1, "
    "\"s\"], [1, 0, \"d\"]]},\n {\"split\": \"test\", \"target\": 2.5, \"nodes\": [{\"features\": [1, 2]}, "
    "{\"features\": "
    "[3, 4]}], \"edges\": [{\"from\": 1, \"to\": 0, \"weight\": 0.5}]},\n {\"nodes\": 3}]}\n";
const std::string kCsv = "graph,from,to,label,weight\na,x,y,1,0.5\na,y,z,2,1\nb,10,9,1,2\n";

TEST(GraphReaders, ReadTveText) {
  const GraphSet set = parse_tve(kTve, named("g.txt")).or_throw();
  ASSERT_EQ(set.size(), 2u);
  EXPECT_THAT(set.ids, ElementsAre("4", "21"));
  EXPECT_THAT(set.splits, ElementsAre("train", ""));
  EXPECT_THAT(set.node_labels.names(), ElementsAre("C", "N", "S"));
  EXPECT_THAT(set.edge_labels.names(), ElementsAre("1", "2"));
  EXPECT_THAT(set.graphs[1].node_labels(), ElementsAre(0, 0, 2));
  EXPECT_THAT(set.graphs[0].edge_labels(), ElementsAre(1));
  EXPECT_EQ(set.graphs[1].arcs(), 4u);
}

TEST(GraphReaders, TveErrorsNameTheLine) {
  const auto error = [](const std::string& text) {
    const auto r = parse_tve(text, named("g.txt"));
    return r.ok() ? std::string("no error") : r.error().message;
  };
  EXPECT_EQ(error("\xef\xbb\xbft 1\nv 0 C\n"), "no error") << "a mark that editors put first";
  EXPECT_THAT(error(""), HasSubstr("there is no graph"));
  EXPECT_THAT(error("v 0 C\n"), HasSubstr("g.txt:1: there is a node or edge before"));
  EXPECT_THAT(error("t 1\nv 1 C\n"), HasSubstr("g.txt:2: node 1 is listed where node 0 is expected"));
  EXPECT_THAT(error("t 1\n\nv 0 C\ne 0 1 1\n"), HasSubstr("g.txt:4: the edge 0 - 1 has an end that does not exist"));
  EXPECT_THAT(error("t 1\nv 0 C\nv x C\n"), HasSubstr("the number of the node is 'x'"));
  EXPECT_THAT(error("t 1\nv 0 C\nv 1 C\ne 0 1\ne 1 0\n"), HasSubstr("g.txt:5: the edge 1 - 0 occurs twice"));
  EXPECT_THAT(error("t 1\nq\n"), HasSubstr("must start with t, v, e or #"));
  EXPECT_THAT(error("t\n"), HasSubstr("a graph starts with"));
}

TEST(GraphReaders, ReadGinText) {
  const GraphSet set = parse_gin(kGin, named("g.txt")).or_throw();
  ASSERT_EQ(set.size(), 2u);
  EXPECT_THAT(set.graph_classes.names(), ElementsAre("-1", "1"));
  EXPECT_EQ(set.graphs[0].graph_class(), 1u);
  EXPECT_EQ(set.graphs[0].edges(), 2u);
  EXPECT_THAT(set.node_labels.names(), ElementsAre("0", "5"));
  const auto error = [](const std::string& text) { return parse_gin(text, named("g.txt")).error().message; };
  EXPECT_THAT(error("1\n2 0\n0 1 1\n0 0\n"), HasSubstr("lists a neighbour that does not list it"));
  EXPECT_THAT(error("1\n2 0\n0 1 5\n0 0\n"), HasSubstr("g.txt:3: neighbour 5 does not exist"));
  EXPECT_THAT(error("1\n4000000000 0\n"), HasSubstr("the file ends before node 1"));
  EXPECT_THAT(error("1\n1 0\n0 9\n"), HasSubstr("9 neighbours are announced"));
}

TEST(GraphReaders, ReadGxlAndCollections) {
  const GraphSet set = parse_gxl(kGxl, named("g.gxl")).or_throw();
  ASSERT_EQ(set.size(), 1u);
  EXPECT_THAT(set.ids, ElementsAre("g"));
  EXPECT_THAT(set.node_labels.names(), ElementsAre("6", "7"));
  EXPECT_EQ(set.graphs[0].node_feature_width(), 1u);
  EXPECT_THAT(set.graphs[0].node_features(), ElementsAre(1.5, -2));
  Scratch scratch;
  write(scratch / "a.gxl", kGxl);
  write(scratch / "b.gxl", kGxl);
  write(scratch / "set.cxl",
        "<GraphCollection><fingerprints><print file=\"a.gxl\" class=\"x\"/><print file=\"b.gxl\" class=\"y\"/>"
        "</fingerprints></GraphCollection>");
  const GraphSet both = load(scratch / "set.cxl");
  EXPECT_THAT(both.ids, ElementsAre("a", "b"));
  EXPECT_THAT(both.graph_classes.names(), ElementsAre("x", "y"));
  write(scratch / "bad.cxl", "<GraphCollection>\n<print file=\"../a.gxl\"/></GraphCollection>");
  EXPECT_THAT(load_error(scratch / "bad.cxl"), HasSubstr("bad.cxl:2: the file '../a.gxl' is not a name inside"));
  write(scratch / "missing.cxl", "<GraphCollection>\n\n<print file=\"c.gxl\"/></GraphCollection>");
  EXPECT_THAT(load_error(scratch / "missing.cxl"), HasSubstr("missing.cxl:3"));
}

TEST(GraphReaders, GxlErrorsNameTheLine) {
  const auto error = [](const std::string& text) { return parse_gxl(text, named("g.gxl")).error().message; };
  EXPECT_THAT(error("<gxl><graph>\n<node id=\"a\"/>\n<edge from=\"a\" to=\"b\"/></graph></gxl>"),
              HasSubstr("g.gxl:3: the edge ends at the node 'b'"));
  EXPECT_THAT(error("<gxl>\n<graph></gxl>"), HasSubstr("g.gxl:2: this is not XML"));
  EXPECT_THAT(error("<a/>"), HasSubstr("no <gxl>"));
  EXPECT_THAT(error("<gxl/>"), HasSubstr("no <graph>"));
  EXPECT_THAT(error("<gxl><graph><node id=\"a\"/>\n<node id=\"a\"/></graph></gxl>"),
              HasSubstr("the node id 'a' occurs twice"));
}

TEST(GraphReaders, ReadJson) {
  const GraphSet set = parse_graph_json(kJson, named("g.json")).or_throw();
  ASSERT_EQ(set.size(), 3u);
  EXPECT_THAT(set.ids, ElementsAre("a", "1", "2"));
  EXPECT_EQ(set.graphs[0].direction(), Direction::directed);
  EXPECT_EQ(set.graphs[0].edges(), 2u);
  EXPECT_EQ(set.graphs[1].graph_target(), 2.5);
  EXPECT_THAT(set.graphs[1].node_features(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(set.graphs[1].edge_weights(), ElementsAre(0.5));
  EXPECT_EQ(set.graphs[2].nodes(), 3u);
  const auto error = [](const std::string& text) { return parse_graph_json(text, named("g.json")).error().message; };
  EXPECT_THAT(error("{\"nodes\": 2,\n \"edges\": [[0, 1]"), HasSubstr("g.json:2: this is not JSON"));
  EXPECT_THAT(error("{\"nodes\": 2, \"edges\": [[0, 2]]}"), HasSubstr("graphs[0].edges[0]: the edge 0 - 2"));
  EXPECT_THAT(error("{\"nodes\": 2, \"egdes\": []}"), HasSubstr("the nearest is 'edges'"));
  EXPECT_THAT(error("{\"nodes\": 99999999999}"), HasSubstr("more than"));
  EXPECT_THAT(error("{\"nodes\": -1}"), HasSubstr("graphs[0].nodes must be a whole number from 0"));
  EXPECT_THAT(error("{\"nodes\": 2, \"nodes\": 3}"), HasSubstr("g.json: the key 'nodes' appears twice"));
  EXPECT_THAT(error("7"), HasSubstr("must hold a graph"));
}

TEST(GraphReaders, KnowTheHeaderOfAnEdgeListByItsWords) {
  const Scratch scratch;
  const auto nodes = [&](const std::string& text) {
    std::ofstream(scratch / "e.csv") << text;
    return load_graphs({.path = scratch / "e.csv"}).or_throw().graphs[0].nodes();
  };
  EXPECT_EQ(nodes("from,to\na,b\n"), 2u);
  EXPECT_EQ(nodes("source,target,label\na,b,x\nb,c,y\n"), 3u);
  EXPECT_EQ(nodes("anna,to\nto,bert\n"), 3u);  // a name, not a header
  EXPECT_EQ(nodes("u,v\nv,w\n"), 3u);
}

TEST(GraphReaders, ReadEdgeLists) {
  const GraphSet set = parse_edge_list(kCsv, named("e.csv")).or_throw();
  ASSERT_EQ(set.size(), 2u);
  EXPECT_THAT(set.ids, ElementsAre("a", "b"));
  EXPECT_EQ(set.graphs[0].nodes(), 3u);
  EXPECT_THAT(set.graphs[0].edge_weights(), ElementsAre(0.5, 1));
  EXPECT_THAT(set.graphs[1].edge_from(), ElementsAre(1)) << "nodes are sorted by value: 9, 10";
  const GraphSet plain = parse_edge_list("0 1\n1 2\n", named("e.edges")).or_throw();
  EXPECT_EQ(plain.graphs[0].edges(), 2u);
  const auto error = [](const std::string& text) { return parse_edge_list(text, named("e.csv")).error().message; };
  EXPECT_THAT(error("from,to\n0,1\n1,0\n"), HasSubstr("e.csv:3: the edge 1 - 0 occurs twice"));
  EXPECT_THAT(error("from,to,weight\n0,1,x\n"), HasSubstr("the weight 'x' is not a number"));
  EXPECT_THAT(error("from,to,colour\n0,1,2\n"), HasSubstr("the column 'colour'"));
}

TEST(GraphReaders, ReadTuFolders) {
  Scratch scratch;
  write(scratch / "X_A.txt", "1, 2\n2, 1\n4, 3\n3, 4\n");
  write(scratch / "X_graph_indicator.txt", "1\n1\n2\n2\n");
  write(scratch / "X_graph_labels.txt", "1\n-1\n");
  write(scratch / "X_edge_labels.txt", "5\n5\n6\n6\n");
  write(scratch / "X_node_attributes.txt", "1.5, 2\n3, 4\n5, 6\n7, 8\n");
  const GraphSet set = load(scratch.path());
  ASSERT_EQ(set.size(), 2u);
  EXPECT_EQ(set.graphs[0].direction(), Direction::undirected);
  EXPECT_EQ(set.graphs[1].edges(), 1u);
  EXPECT_THAT(set.graph_classes.names(), ElementsAre("-1", "1"));
  EXPECT_THAT(set.graphs[1].node_features(), ElementsAre(5, 6, 7, 8));
  write(scratch / "X_A.txt", "1, 2\n2, 3\n4, 3\n3, 4\n");
  EXPECT_THAT(load_error(scratch / "X_A.txt"),
              HasSubstr("X_A.txt:2: the edge joins a node of graph 1 with a node of graph 2"));
  write(scratch / "X_A.txt", "1, 2\n4, 3\n3, 4\n");
  EXPECT_THAT(load_error(scratch.path()), HasSubstr("there are 4 lines, but 3 edges"));
  write(scratch / "X_graph_indicator.txt", "1\n3\n");
  EXPECT_THAT(load_error(scratch.path()), HasSubstr("graph 3 comes after graph 1"));
}

TEST(GraphReaders, ReadPlanetoidText) {
  Scratch scratch;
  write(scratch / "nodes.svm", "3 0:1 4:0.5\n-1\n2 1:1\n");
  write(scratch / "edges.txt", "0 1\n1 2\n");
  write(scratch / "split_public.txt", "train 0\ntest 2 1\n");
  const GraphSet set = load(scratch.path());
  const Graph& g = set.graphs.at(0);
  EXPECT_EQ(g.sparse_features().columns, 5u);
  EXPECT_THAT(g.sparse_features().row_ptr, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(g.node_classes(), ElementsAre(1, kUnlabelled, 0));
  ASSERT_EQ(set.node_splits.size(), 2u);
  EXPECT_THAT(set.node_splits[1].nodes, ElementsAre(1, 2));
  write(scratch / "nodes.svm", "3 4:1 0:0.5\n");
  EXPECT_THAT(load_error(scratch.path()), HasSubstr("nodes.svm:1: the indices must ascend"));
}

TEST(GraphReaders, TellFormatsApart) {
  Scratch scratch;
  write(scratch / "a.txt", kTve);
  write(scratch / "b.txt", kGin);
  write(scratch / "c.txt", kJson);
  write(scratch / "d.txt", kGxl);
  write(scratch / "e.csv", kCsv);
  write(scratch / "f.txt", "what is this\n");
  EXPECT_EQ(load(scratch / "a.txt").size(), 2u);
  EXPECT_EQ(load(scratch / "b.txt").size(), 2u);
  EXPECT_EQ(load(scratch / "c.txt").size(), 3u);
  EXPECT_EQ(load(scratch / "d.txt").size(), 1u);
  EXPECT_EQ(load(scratch / "e.csv").size(), 2u);
  EXPECT_THAT(load_error(scratch / "f.txt"), HasSubstr("set data.format (tve"));
  EXPECT_THAT(load_error(scratch.path()), HasSubstr("neither NAME_A.txt"));
  EXPECT_THAT(parse_graph_format("tvv").error().message, HasSubstr("the nearest is 'tve'"));
}

// Damaged files give an error with the name of the file, or graphs; never anything else.
TEST(GraphReaders, SurviveDamage) {
  for (std::uint32_t i = 0; i < 1500; ++i) {
    const auto check = [](const auto& result) {
      if (!result.ok()) {
        EXPECT_THAT(result.error().message, HasSubstr("g.x"));
        return;
      }
      for (const Graph& g : result->graphs)
        for (std::uint32_t label : g.node_labels()) EXPECT_LT(label, result->node_labels.size());
    };
    check(parse_tve(test::mutate(kTve, 1, i), named("g.x")));
    check(parse_gin(test::mutate(kGin, 2, i), named("g.x")));
    check(parse_gxl(test::mutate(kGxl, 3, i), named("g.x")));
    check(parse_graph_json(test::mutate(kJson, 4, i), named("g.x")));
    check(parse_edge_list(test::mutate(kCsv, 5, i), named("g.x")));
  }
}

TEST(GraphReaders, SurviveDamagedFolders) {
  Scratch scratch;
  const std::vector<std::pair<std::string, std::string>> tu = {{"X_A.txt", "1, 2\n2, 1\n4, 3\n3, 4\n"},
                                                               {"X_graph_indicator.txt", "1\n1\n2\n2\n"},
                                                               {"X_graph_labels.txt", "1\n-1\n"},
                                                               {"X_node_attributes.txt", "1.5, 2\n3, 4\n5, 6\n7, 8\n"}};
  const std::vector<std::pair<std::string, std::string>> planetoid = {{"nodes.svm", "3 0:1 4:0.5\n-1\n2 1:1\n"},
                                                                      {"edges.txt", "0 1\n1 2\n"},
                                                                      {"split_public.txt", "train 0\ntest 2 1\n"}};
  std::filesystem::create_directory(scratch / "tu");
  std::filesystem::create_directory(scratch / "planetoid");
  for (std::uint32_t i = 0; i < 300; ++i)
    for (const auto& [folder, files] : {std::pair("tu", tu), std::pair("planetoid", planetoid)}) {
      for (std::size_t f = 0; f < files.size(); ++f)
        write(scratch / folder / files[f].first,
              f == i % files.size() ? test::mutate(files[f].second, 6, i) : files[f].second);
      const std::string error = load_error(scratch / folder);
      if (error != "no error") {
        EXPECT_THAT(error, HasSubstr(folder));
      }
    }
}

class GraphData : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("GRADLOOM_DATA");
    if (root == nullptr || *root == '\0') GTEST_SKIP() << "GRADLOOM_DATA is not set";
    root_ = root;
    if (!std::filesystem::exists(root_ / "ged_aids700nef")) GTEST_SKIP() << "there are no graphs in " << root_;
  }
  void unpack(const std::filesystem::path& archive) const {
    const std::string command = "tar xzf '" + archive.string() + "' -C '" + scratch_.path().string() + "'";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  std::filesystem::path root_;
  Scratch scratch_;
};

TEST_F(GraphData, ReadsTheMolecules) {
  const GraphSet set = load(root_ / "ged_aids700nef" / "graphs.txt");
  EXPECT_EQ(set.size(), 560u);
  EXPECT_EQ(set.ids[1], "21");
  EXPECT_GT(load(root_ / "ged_tve" / "AIDS_query100.txt").size(), 90u);
}

TEST_F(GraphData, ReadsTheSameMutagTwice) {
  const GraphSet tu = load(root_ / "tu" / "MUTAG"), gin = load(root_ / "tu_gin_text" / "MUTAG.txt.gz");
  ASSERT_EQ(tu.size(), 188u);
  ASSERT_EQ(gin.size(), 188u);
  std::size_t edges_tu = 0, edges_gin = 0;
  for (std::size_t g = 0; g < 188; ++g) {
    edges_tu += tu.graphs[g].edges();
    edges_gin += gin.graphs[g].edges();
    EXPECT_EQ(tu.graphs[g].direction(), Direction::undirected);
  }
  EXPECT_EQ(edges_tu, edges_gin);
  EXPECT_EQ(tu.edge_labels.size(), 4u);
  unpack(root_ / "tu" / "PROTEINS.tar.gz");
  const GraphSet proteins = load(scratch_ / "PROTEINS");
  EXPECT_EQ(proteins.size(), 1113u);
  EXPECT_EQ(proteins.graphs[0].node_feature_width(), 1u);
}

TEST_F(GraphData, ReadsTheCollections) {
  unpack(root_ / "gxl" / "mao.tar.gz");
  unpack(root_ / "gxl" / "pah.tar.gz");
  const GraphSet mao = load(scratch_ / "data/datasets/mao/dataset.cxl");
  EXPECT_EQ(mao.size(), 68u);
  EXPECT_EQ(mao.graph_classes.size(), 1u);
  const GraphSet pah = load(scratch_ / "data/datasets/pah/dataset.cxl");
  EXPECT_EQ(pah.size(), 94u);
  EXPECT_EQ(pah.graph_classes.size(), 1u);
}

TEST_F(GraphData, ReadsCora) {
  const GraphSet set = load(root_ / "cora");
  const Graph& g = set.graphs.at(0);
  EXPECT_EQ(g.nodes(), 2708u);
  EXPECT_EQ(g.edges(), 5278u);
  EXPECT_EQ(g.sparse_features().columns, 1433u);
  EXPECT_EQ(g.sparse_features().value.size(), 49216u);
  EXPECT_EQ(set.node_classes.size(), 7u);
  ASSERT_EQ(set.node_splits.size(), 3u);
  EXPECT_EQ(set.node_splits[0].nodes.size(), 140u);
  EXPECT_EQ(set.node_splits[2].nodes.size(), 1000u);
}

}  // namespace
}  // namespace gradloom
