// Real molecules whose exact distances are known.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "gradloom/data/graph_source.h"
#include "tests/ged/support.h"

namespace gradloom::ged {
namespace {

TEST(EditDistance, AgreesWithTheReferenceOnMolecules) {
  const char* root = std::getenv("GRADLOOM_DATA");
  if (root == nullptr || *root == '\0') GTEST_SKIP() << "GRADLOOM_DATA is not set";
  const std::filesystem::path folder = std::filesystem::path(root) / "ged_aids700nef";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "there is no folder " << folder;
  GraphSource source;
  source.path = folder / "graphs.txt";
  GraphSet set = load_graphs(source).or_throw();
  std::ifstream file(folder / "ged_exact.txt");
  std::size_t count = 0;
  file >> count;
  ASSERT_EQ(count, set.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::string id;
    file >> id;
    EXPECT_EQ(id, set.ids[i]);
  }
  std::vector<double> expected(AllPairs::at(count, 0));
  for (double& d : expected) file >> d;
  ASSERT_TRUE(file);
  // The first 200 graphs; the command compares all of them in the acceptance run.
  set.graphs.resize(200);
  set.ids.resize(200);
  const CostTable costs(uniform_costs(), set.node_labels, set.edge_labels);
  const Exec ex({.threads = 2});
  const AllPairs pairs = all_pairs(ex, set, costs);
  EXPECT_EQ(pairs.exact, pairs.upper.size());
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < pairs.upper.size(); ++at) wrong += pairs.upper[at] != expected[at];
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace gradloom::ged
