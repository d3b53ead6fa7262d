// GraphML, GML, node-link JSON, tables of nodes and edges, archives and collections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "gradloom/data/archive.h"
#include "gradloom/data/graph_source.h"
#include "gradloom/data/text_lines.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using test::Scratch;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

GraphSet load_form(const std::filesystem::path& path, GraphSource source = {}) {
  source.path = path;
  return load_graphs(source).or_throw();
}

std::string form_error(const std::filesystem::path& path, GraphSource source = {}) {
  source.path = path;
  const auto result = load_graphs(source);
  return result.ok() ? "no error" : result.error().message;
}

template <class R>
std::string message_of(const R& result) {
  return result.ok() ? "no error" : result.error().message;
}

// As networkx 3.2 writes them.
const std::string kGraphmlText =
    "<?xml version='1.0' encoding='utf-8'?>\n"
    "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
    "<key id=\"d3\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\" />\n"
    "<key id=\"d2\" for=\"node\" attr.name=\"split\" attr.type=\"string\" />\n"
    "<key id=\"d1\" for=\"node\" attr.name=\"x\" attr.type=\"double\"><default>0.5</default></key>\n"
    "<key id=\"d0\" for=\"node\" attr.name=\"class\" attr.type=\"long\" />\n"
    "<graph edgedefault=\"undirected\">\n"
    "<node id=\"a\"><data key=\"d0\">3</data><data key=\"d1\">1.5</data><data key=\"d2\">train</data></node>\n"
    "<node id=\"b\"><data key=\"d0\">1</data></node>\n"
    "<node id=\"c\"><data key=\"d1\">-2</data><data key=\"d2\">test</data></node>\n"
    "<edge source=\"a\" target=\"b\"><data key=\"d3\">2.5</data></edge>\n"
    "<edge source=\"c\" target=\"b\"><data key=\"d3\">1</data></edge>\n</graph></graphml>\n";
const std::string kGmlText =
    "Creator \"somebody\"\ngraph [\n  directed 1\n  name \"g\"\n  node [\n    id 5\n    label \"caf&#233;\"\n"
    "    value 1\n    f 0.5\n    f 1.5\n    graphics [ x 1.0 y 2.0 ]\n  ]\n"
    "  node [ id 7 label \"b\" value 2 f 2.5 f 3.0 ]  # a comment\n  edge [ source 7 target 5 kind \"r\" ]\n]\n";
const std::string kNodeLink =
    "{\"directed\": false, \"multigraph\": false, \"graph\": {\"name\": \"club\", \"class\": \"yes\"},\n"
    " \"nodes\": [{\"club\": \"Hi\", \"x\": [1, 2.5], \"id\": 0}, {\"club\": \"Officer\", \"x\": [0, 1], \"id\": 1}],\n"
    " \"links\": [{\"weight\": 4, \"source\": 0, \"target\": 1}]}\n";

TEST(GraphFormats, ReadGraphml) {
  Scratch scratch;
  write_text(scratch / "g.graphml", kGraphmlText);
  const GraphSet set = load_form(scratch / "g.graphml");
  ASSERT_EQ(set.size(), 1u);
  const Graph& g = set.graphs[0];
  EXPECT_EQ(g.direction(), Direction::undirected);
  EXPECT_THAT(set.node_ids[0], ElementsAre("a", "b", "c"));
  EXPECT_THAT(set.node_classes.names(), ElementsAre("1", "3"));
  EXPECT_THAT(g.node_classes(), ElementsAre(1u, 0u, kUnlabelled));
  EXPECT_THAT(g.node_features(), ElementsAre(1.5, 0.5, -2.0));
  EXPECT_THAT(g.edge_weights(), ElementsAre(2.5, 1.0));
  EXPECT_TRUE(g.node_labels().empty());
  ASSERT_EQ(set.node_splits.size(), 2u);
  EXPECT_EQ(set.node_splits[1].name, "train");
  EXPECT_THAT(set.node_splits[1].nodes, ElementsAre(0u));
  write_text(scratch / "g.xml", kGraphmlText);
  EXPECT_EQ(load_form(scratch / "g.xml").graphs[0].edges(), 2u);
}

TEST(GraphFormats, GraphmlErrorsNameTheLine) {
  const GraphSource source{.path = "g.graphml"};
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kGraphmlText;
    text.replace(text.find(from), from.size(), to);
    return message_of(parse_graphml(text, source));
  };
  EXPECT_THAT(with("target=\"b\"", "target=\"z\""), AllOf(HasSubstr("g.graphml:11"), HasSubstr("'z'")));
  EXPECT_THAT(with("key=\"d1\">1.5", "key=\"d1\">x"), AllOf(HasSubstr(":8"), HasSubstr("not a number")));
  EXPECT_THAT(with("key=\"d0\">3", "key=\"d0\">1.5"),
              AllOf(HasSubstr(":8"), HasSubstr("'1.5', not a whole number"), HasSubstr("double")));
  EXPECT_THAT(with("key=\"d0\">3", "key=\"d0\">"), HasSubstr("not a whole number"));
  EXPECT_EQ(with("key=\"d0\">3", "key=\"d0\">-3"), "no error");
  EXPECT_THAT(with("key=\"d2\">train", "key=\"d9\">train"), HasSubstr("'d9' is not declared"));
  EXPECT_THAT(with("id=\"b\"", "id=\"a\""), HasSubstr("the node id 'a' occurs twice"));
  EXPECT_THAT(with("edge source=\"c\"", "edge source=\"a\""), HasSubstr(":12"));
  EXPECT_THAT(with("undirected", "sideways"), HasSubstr("'sideways'"));
}

TEST(GraphFormats, ReadGml) {
  Scratch scratch;
  write_text(scratch / "g.gml", kGmlText);
  const GraphSet set = load_form(scratch / "g.gml");
  const Graph& g = set.graphs[0];
  EXPECT_THAT(set.ids, ElementsAre("g"));
  EXPECT_EQ(g.direction(), Direction::directed);
  EXPECT_THAT(set.node_ids[0], ElementsAre("caf\xc3\xa9", "b"));
  EXPECT_THAT(g.node_features(), ElementsAre(0.5, 1.5, 2.5, 3.0));
  EXPECT_THAT(set.node_labels.names(), ElementsAre("1", "2"));
  EXPECT_THAT(set.edge_labels.names(), ElementsAre("r"));
  EXPECT_EQ(g.edge_from()[0], 1u);
  // The class is what the options say.
  EXPECT_THAT(load_form(scratch / "g.gml", {.class_column = "value"}).node_classes.names(), ElementsAre("1", "2"));
}

TEST(GraphFormats, GmlErrorsNameLineAndColumn) {
  const GraphSource source{.path = "g.gml"};
  EXPECT_THAT(message_of(parse_gml("graph [\n node [ id ?3 ]\n]", source)), HasSubstr("g.gml:2:"));
  EXPECT_THAT(message_of(parse_gml("graph [\n node [ id 1 ]\n", source)), HasSubstr("opens in line 1"));
  EXPECT_THAT(message_of(parse_gml("graph [ ]\n]", source)), HasSubstr("g.gml:2:1: there is one ']' too many"));
  EXPECT_THAT(message_of(parse_gml("graph [ node [ label \"x ] ]", source)), HasSubstr("is not closed"));
  EXPECT_THAT(message_of(parse_gml("graph [\nnode [ id 1 ]\nedge [ source 1 target 2 ] ]", source)),
              AllOf(HasSubstr("g.gml:3"), HasSubstr("'2', which does not exist")));
  EXPECT_THAT(message_of(parse_gml("graph [\nnode [ label \"a\" ] ]", source)), HasSubstr("'id' is missing"));
  std::string deep = "graph ";
  for (int i = 0; i < 100; ++i) deep += "[ a ";
  EXPECT_THAT(message_of(parse_gml(deep, source)), HasSubstr("nested more than 32"));
}

TEST(GraphFormats, NumbersThatAreNamesKeepTheirDigitsInJson) {
  const GraphSource source{.path = "g.json"};
  const auto labels = [&](const std::string& number, const std::string& format) {
    std::string text = format;
    for (std::size_t at; (at = text.find('$')) != std::string::npos;) text.replace(at, 1, number);
    return message_of(parse_graph_json(text, source));
  };
  for (const std::string format :
       {R"({"nodes": [$]})", R"({"nodes": [{"class": $}]})", R"({"id": $, "nodes": 1})",
        R"({"nodes": [{"id": $}], "links": []})", R"({"nodes": [{"id": 1}], "links": [{"source": 1, "target": $}]})"}) {
    for (const char* number : {"18446744073709551617", "-9223372036854775809", "1e30"})
      EXPECT_THAT(labels(number, format), AllOf(HasSubstr("g.json: "), HasSubstr("write it as text"))) << format;
    for (const char* number : {"18446744073709551615", "\"18446744073709551617\"", "1.5"})
      EXPECT_THAT(labels(number, format), Not(HasSubstr("write it as text"))) << format;
  }
}

TEST(GraphFormats, ReadNodeLinkJson) {
  Scratch scratch;
  write_text(scratch / "g.json", kNodeLink);
  const GraphSet set = load_form(scratch / "g.json", {.class_column = "club"});
  const Graph& g = set.graphs[0];
  EXPECT_THAT(set.ids, ElementsAre("club"));
  EXPECT_THAT(g.node_classes(), ElementsAre(0u, 1u));
  EXPECT_THAT(g.node_features(), ElementsAre(1.0, 2.5, 0.0, 1.0));
  EXPECT_THAT(g.edge_weights(), ElementsAre(4.0));
  EXPECT_THAT(load_form(scratch / "g.json").graph_classes.names(), ElementsAre("yes"));
  // networkx 3.4 writes `edges`; a list holds several graphs.
  std::string newer = kNodeLink;
  newer.replace(newer.find("links"), 5, "edges");
  write_text(scratch / "two.json", "[" + newer + "," + newer + "]");
  EXPECT_EQ(load_form(scratch / "two.json").size(), 2u);
  write_text(scratch / "bad.json", "{\"nodes\": [{\"id\": 1}], \"links\": [{\"source\": 1, \"target\": 2}]}");
  EXPECT_THAT(form_error(scratch / "bad.json"), AllOf(HasSubstr("links[0]"), HasSubstr("'2', which does not exist")));
  write_text(scratch / "bad.json", "{\"nodes\": [{\"name\": 1}], \"links\": []}");
  EXPECT_THAT(form_error(scratch / "bad.json"), AllOf(HasSubstr("nodes[0]"), HasSubstr("'id'")));
}

TEST(GraphFormats, ReadTablesOfNodesAndEdges) {
  Scratch scratch;
  write_text(scratch / "nodes.csv", ",id,x,y,class,split\n0,n1,1.5,2,red,train\n1,n2,0.5,3,,\n2,n3,-1,4,blue,test\n");
  write_text(scratch / "edges.csv", "source,target,weight\nn1,n2,0.5\nn2,n1,0.5\nn3,n2,1\n");
  const GraphSet set = load_form(scratch.path());
  ASSERT_EQ(set.size(), 1u);
  const Graph& g = set.graphs[0];
  EXPECT_THAT(set.node_ids[0], ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(g.node_features(), ElementsAre(1.5, 2.0, 0.5, 3.0, -1.0, 4.0));
  EXPECT_THAT(set.node_classes.names(), ElementsAre("blue", "red"));
  EXPECT_THAT(g.node_classes(), ElementsAre(1u, kUnlabelled, 0u));
  EXPECT_EQ(g.edges(), 2u) << "an undirected edge may stand there in both directions";
  EXPECT_EQ(set.node_splits.size(), 2u);
  // The same by two names, and without some columns.
  const GraphSource named{.nodes = scratch / "nodes.csv", .drop = {"y"}};
  EXPECT_THAT(load_form(scratch / "edges.csv", named).graphs[0].node_features(), ElementsAre(1.5, 0.5, -1.0));
  EXPECT_THAT(form_error(scratch.path(), {.class_column = "clas"}), AllOf(HasSubstr("'clas'"), HasSubstr("'class'")));
  EXPECT_THAT(form_error(scratch.path(), {.drop = {"z"}}), HasSubstr("data.drop names the column 'z'"));
  write_text(scratch / "edges.csv", "source,target\nn1,n2\nn1,n9\n");
  EXPECT_THAT(form_error(scratch.path()), AllOf(HasSubstr("edges.csv:3"), HasSubstr("'n9', which does not exist")));
  write_text(scratch / "edges.csv", "source,target\nn1,n2\nn1,n2\n");
  EXPECT_THAT(form_error(scratch.path()), HasSubstr("edges.csv:3"));
  write_text(scratch / "edges.csv", "source,target,weight\nn1,n2,1\nn2,n1,2\n");
  EXPECT_THAT(form_error(scratch.path()), HasSubstr("edges.csv:3"));
  write_text(scratch / "edges.csv", "source,target\nn1,n2\n");
  write_text(scratch / "nodes.csv", "id,x\nn1,red\nn2,1\n");
  EXPECT_THAT(form_error(scratch.path()), AllOf(HasSubstr("nodes.csv:2"), HasSubstr("'red' is not a number")));
}

TEST(GraphFormats, TakeTheIndexOfPandasForIds) {
  Scratch scratch;
  write_text(scratch / "nodes.csv", ",x,class\nn1,1.5,red\nn2,2.5,blue\n");
  write_text(scratch / "edges.csv", ",source,target\n0,n1,n2\n");
  write_text(scratch / "graphs.csv", ",target\n0,3.5\n");
  const GraphSet set = load_form(scratch.path());
  EXPECT_THAT(set.node_ids[0], ElementsAre("n1", "n2"));
  EXPECT_THAT(set.node_feature_names, ElementsAre("x"));
  EXPECT_THAT(set.graphs[0].node_features(), ElementsAre(1.5, 2.5));
  EXPECT_EQ(set.graphs[0].graph_target(), 3.5);
}

TEST(GraphFormats, NewTablesMayLackWhatIsNoFeature) {
  Scratch scratch;
  write_text(scratch / "nodes.csv", "id,x,y\nn1,1.5,2\nn2,2.5,3\n");
  write_text(scratch / "edges.csv", "source,target\nn1,n2\n");
  GraphSource source{.class_column = "kind", .drop = {"z", "1", "7"}};
  EXPECT_THAT(form_error(scratch.path(), source), HasSubstr("'kind', which does not exist"));
  source.known_features = {"x", "y"};
  const GraphSet set = load_form(scratch.path(), source);
  EXPECT_THAT(set.node_feature_names, ElementsAre("x", "y")) << "column 1 was another one in the training file";
  EXPECT_EQ(set.graphs[0].graph_class(), std::nullopt);
  write_text(scratch / "nodes.csv", "id,z,x,kind,y\nn1,word,1.5,red,2\nn2,word,2.5,,3\n");
  EXPECT_THAT(load_form(scratch.path(), source).node_feature_names, ElementsAre("x", "y"));
}

TEST(GraphFormats, ReadTablesOfManyGraphs) {
  Scratch scratch;
  write_text(scratch / "nodes.csv", "graph,id,label\na,0,C\na,1,O\nb,0,C\nb,1,C\n");
  write_text(scratch / "edges.csv", "graph,from,to\na,0,1\nb,1,0\n");
  write_text(scratch / "graphs.csv", "graph,class,split\nb,toxic,train\na,safe,test\n");
  const GraphSet set = load_form(scratch.path());
  EXPECT_THAT(set.ids, ElementsAre("a", "b"));
  EXPECT_THAT(set.graph_classes.names(), ElementsAre("safe", "toxic"));
  EXPECT_EQ(set.graphs[1].graph_class(), 1u);
  EXPECT_THAT(set.splits, ElementsAre("test", "train"));
  write_text(scratch / "graphs.csv", "graph,class\nc,toxic\n");
  EXPECT_THAT(form_error(scratch.path()), HasSubstr("'c' has neither nodes nor edges"));
}

// A tar archive as GNU tar and Python write it.
std::string tar(const std::vector<std::pair<std::string, std::string>>& files, char kind = '0') {
  std::string archive;
  for (const auto& [name, content] : files) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(100, 8, std::string("0000644\0", 8));
    char size[13];
    std::snprintf(size, sizeof size, "%011zo", content.size());
    header.replace(124, 12, std::string(size, 12));
    header.replace(148, 8, "        ");
    header[156] = kind;
    header.replace(257, 8,
                   std::string("ustar\0"
                               "00",
                               8));
    unsigned sum = 0;
    for (const unsigned char c : header) sum += c;
    char text[8];
    std::snprintf(text, sizeof text, "%06o", sum);
    header.replace(148, 7, std::string(text, 7));
    archive += header + content + std::string((512 - content.size() % 512) % 512, '\0');
  }
  return archive + std::string(1024, '\0');
}

const std::vector<std::pair<std::string, std::string>> kTuFiles = {{"X/X_A.txt", "1, 2\n2, 1\n4, 3\n3, 4\n"},
                                                                   {"X/X_graph_indicator.txt", "1\n1\n2\n2\n"},
                                                                   {"X/X_graph_labels.txt", "1\n-1\n"},
                                                                   {"X/README.txt", "about\n"}};

TEST(GraphFormats, ReadTuArchives) {
  Scratch scratch;
  write_text(scratch / "X.tar", tar(kTuFiles));
  const GraphSet set = load_form(scratch / "X.tar");
  EXPECT_EQ(set.size(), 2u);
  EXPECT_THAT(set.graph_classes.names(), ElementsAre("-1", "1"));
  auto broken = kTuFiles;
  broken[0].second = "1, 9\n";
  write_text(scratch / "X.tar", tar(broken));
  EXPECT_THAT(form_error(scratch / "X.tar"), AllOf(HasSubstr("X_A.txt:1"), HasSubstr("node 9 does not exist")));
  write_text(scratch / "X.tar", tar({{"a.txt", "x"}}));
  EXPECT_THAT(form_error(scratch / "X.tar"), HasSubstr("no file NAME_A.txt"));
  write_text(scratch / "X.tar", tar({kTuFiles[0]}));
  EXPECT_THAT(form_error(scratch / "X.tar"), HasSubstr("X_graph_indicator.txt"));
  write_text(scratch / "X.tar", tar(kTuFiles).substr(0, 520));
  EXPECT_THAT(form_error(scratch / "X.tar"), HasSubstr("truncated"));
}

TEST(GraphFormats, RefuseTwoTuSetsInOneArchiveOrFolder) {
  Scratch scratch;
  auto two = kTuFiles;
  for (const auto& [name, content] : kTuFiles) {
    std::string other = name;
    std::replace(other.begin(), other.end(), 'X', 'Y');
    two.emplace_back(other, content);
  }
  write_text(scratch / "two.tar", tar(two));
  EXPECT_THAT(form_error(scratch / "two.tar"), AllOf(HasSubstr("two data sets, 'X' and 'Y'"), HasSubstr("two.tar")));
  std::filesystem::create_directory(scratch / "both");
  for (const auto& [name, content] : two)
    write_text(scratch / "both" / std::filesystem::path(name).filename(), content);
  EXPECT_THAT(form_error(scratch / "both"), HasSubstr("two data sets, 'X' and 'Y'"));
  EXPECT_EQ(load_form(scratch / "both" / "Y_A.txt").size(), 2u);
}

TEST(GraphFormats, NameTheFirstTuEdgeThatIsThereTwice) {
  Scratch scratch;
  auto files = kTuFiles;
  files[0].second = "4, 3\n1, 2\n2, 1\n3, 4\n1, 2\n4, 3\n";
  write_text(scratch / "X.tar", tar(files));
  EXPECT_THAT(form_error(scratch / "X.tar"), HasSubstr("X_A.txt:5: the edge occurs twice, first in line 2"));
}

TEST(Tar, RefusesLinksAndArchivesWithoutTheirEnd) {
  const auto texts = [](std::string_view name) { return name.ends_with(".txt"); };
  const std::string archive = tar(kTuFiles);
  EXPECT_THAT(message_of(parse_tar(archive.substr(0, archive.size() - 1024), 1000, "t", texts)),
              HasSubstr("t: the archive is truncated: its end is missing"));
  for (const char kind : {'1', '2', '3'})
    EXPECT_THAT(message_of(parse_tar(tar(kTuFiles, kind), 1000, "t", texts)),
                AllOf(HasSubstr("'X/X_A.txt'"), HasSubstr(kind == '3' ? "not a regular file" : "is a link")));
}

TEST(TextLines, RefuseLinesOfMillionsOfWords) {
  std::string text;
  for (std::size_t i = 0; i <= TextLines::kMostWords; ++i) text += "1 ";
  EXPECT_THAT(message_of(parse_gin(text, {.path = "g.x"})), AllOf(HasSubstr("g.x:1"), HasSubstr("4194304 words")));
}

TEST(Tar, UnpacksNoMoreThanAllowed) {
  const auto all = [](std::string_view) { return true; };
  const std::string archive = tar(kTuFiles);
  EXPECT_EQ(parse_tar(archive, 1000, "t", all).or_throw().size(), 4u);
  EXPECT_THAT(message_of(parse_tar(archive, 30, "t", all)), HasSubstr("longer than the limit"));
  EXPECT_THAT(message_of(parse_tar(tar({kTuFiles[0], kTuFiles[0]}), 1000, "t", all)), HasSubstr("twice"));
  for (std::uint32_t i = 0; i < 500; ++i) (void)parse_tar(test::mutate(archive, 3, i), 10000, "t", all);
}

TEST(GraphFormats, ReadFoldersAndCollectionsOfGxl) {
  Scratch scratch;
  const std::string gxl =
      "<gxl><graph id=\"own\" edgemode=\"undirected\"><node id=\"1\"/><node id=\"2\"/>"
      "<edge from=\"1\" to=\"2\"/></graph></gxl>";
  std::filesystem::create_directory(scratch / "data");
  write_text(scratch / "data" / "b.gxl", gxl);
  write_text(scratch / "data" / "a.gxl", gxl);
  EXPECT_THAT(load_form(scratch / "data").ids, ElementsAre("a", "b"));
  write_text(scratch / "set.xml",
             "<?xml version=\"1.0\"?>\n<!DOCTYPE GraphCollection SYSTEM \"x.dtd\">\n<GraphCollection>\n"
             "<graph file=\"b.gxl\" class=\"x\"/>\n<graph file=\"a.gxl\" class=\"y\"/>\n</GraphCollection>\n");
  const GraphSet set = load_form(scratch / "set.xml", {.folder = scratch / "data"});
  EXPECT_THAT(set.ids, ElementsAre("b", "a"));
  EXPECT_THAT(set.graph_classes.names(), ElementsAre("x", "y"));
  EXPECT_THAT(form_error(scratch / "set.xml"), AllOf(HasSubstr("set.xml:4"), HasSubstr("data.graph_folder")));
  std::filesystem::create_directory(scratch / "empty");
  EXPECT_THAT(form_error(scratch / "empty"), HasSubstr("edges.csv"));
}

TEST(GraphFormats, SurviveDamage) {
  const GraphSource source{.path = "g.x"};
  const auto check = [](const auto& result) {
    if (!result.ok()) {
      EXPECT_THAT(result.error().message, HasSubstr("g.x"));
      return;
    }
    for (const Graph& g : result->graphs)
      for (std::uint32_t label : g.node_labels()) EXPECT_LT(label, result->node_labels.size());
  };
  for (std::uint32_t i = 0; i < 1000; ++i) {
    check(parse_graphml(test::mutate(kGraphmlText, 1, i), source));
    check(parse_gml(test::mutate(kGmlText, 2, i), source));
    check(parse_graph_json(test::mutate(kNodeLink, 3, i), source));
    check(parse_graph_tables({test::mutate("id,x,class\na,1,r\nb,2,s\n", 4, i), "from,to\na,b\n", ""}, source));
    check(parse_graph_tables({"id,x,class\na,1,r\nb,2,s\n", test::mutate("from,to\na,b\n", 5, i), ""}, source));
  }
}

}  // namespace
}  // namespace gradloom
