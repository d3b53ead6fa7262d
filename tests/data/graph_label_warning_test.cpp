#include "gradloom/data/graph_label_warning.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gradloom/data/graph_source.h"

namespace gradloom {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A path of nodes with the attributes that `attributes` writes.
GraphSet path_of(int nodes, const std::function<std::string(int)>& attributes) {
  std::string text, links;
  for (int v = 0; v < nodes; ++v) {
    text += fmt::format("{}{{\"id\":{},{}}}", v > 0 ? "," : "", v, attributes(v));
    if (v > 0) links += fmt::format("{}{{\"source\":0,\"target\":{}}}", v > 1 ? "," : "", v);
  }
  return parse_graph_json("{\"nodes\":[" + text + "],\"links\":[" + links + "]}", {.path = "t.json"}).or_throw();
}

std::string age(int v) { return fmt::format("\"age\":{}", v * 7 % 40); }

TEST(LabelWarning, NamesWholeNumbersThatAreQuantities) {
  const GraphSet ages = path_of(200, age);
  EXPECT_THAT(label_warning(ages, NodeFeatures::automatic),
              AllOf(HasSubstr("40 different labels"), HasSubstr("'0'"), HasSubstr("17.0"), HasSubstr("\"labels\"")));
  EXPECT_EQ(label_warning(ages, NodeFeatures::labels), "") << "asked for";
  const GraphSet joint = path_of(200, [](int v) { return age(v) + ",\"kind\":\"a\""; });
  EXPECT_THAT(label_warning(joint, NodeFeatures::automatic), HasSubstr("'age=0 kind=a'"));
  const GraphSet beside = path_of(200, [](int v) { return age(v) + ",\"size\":0.5"; });
  EXPECT_THAT(label_warning(beside, NodeFeatures::automatic), HasSubstr("data.features = \"all\" says"));
  const GraphSet unused = path_of(100, [](int v) { return age(v) + ",\"size\":0.5"; });
  EXPECT_THAT(label_warning(unused, NodeFeatures::automatic), AllOf(HasSubstr("are no features"), HasSubstr("17.0")));
}

TEST(LabelWarning, SaysNothingOfKinds) {
  EXPECT_EQ(
      label_warning(path_of(200, [](int v) { return fmt::format("\"atom\":{}", v % 9); }), NodeFeatures::automatic),
      "");
  EXPECT_EQ(label_warning(path_of(200, [](int v) { return fmt::format("\"name\":\"n 3{}\"", v % 40); }),
                          NodeFeatures::automatic),
            "");
  EXPECT_EQ(label_warning(path_of(5000, age), NodeFeatures::automatic), "") << "125 nodes of each";
  const GraphSet names = path_of(100, [](int v) { return fmt::format("\"name\":\"n{}\",\"size\":0.5", v % 40); });
  EXPECT_THAT(label_warning(names, NodeFeatures::automatic),
              AllOf(HasSubstr("are no features"), Not(HasSubstr("17.0"))));
}

}  // namespace
}  // namespace gradloom
