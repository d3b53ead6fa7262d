// Rule trees of Golly: read back by a small reader and compared with the circuit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "gradloom/circuit/export.h"
#include "tests/circuit/support.h"

namespace gradloom::test {
namespace {

using circuit::CellRule;
using circuit::Op;

struct Tree {
  std::size_t states = 0, nodes = 0;
  std::vector<std::vector<std::size_t>> children;

  // Cells in the order of the format: corners, sides, the cell itself.
  std::size_t next(const std::vector<std::size_t>& patch) const {
    constexpr std::size_t kOrder[] = {0, 2, 6, 8, 1, 3, 5, 7, 4};
    std::size_t node = children.size() - 1;
    for (const std::size_t position : kOrder) node = children[node].at(patch[position]);
    return node;
  }
};

Tree read_tree(const std::string& text) {
  Tree tree;
  std::istringstream in(text.substr(text.find("num_states")));
  for (std::string line; std::getline(in, line) && !line.empty();) {
    if (line.starts_with("num_states=")) tree.states = std::stoul(line.substr(11));
    if (line.starts_with("num_nodes=")) tree.nodes = std::stoul(line.substr(10));
    if (line.starts_with("num_")) continue;
    std::istringstream numbers(line);
    std::size_t level = 0;
    numbers >> level;
    tree.children.emplace_back();
    for (std::size_t child; numbers >> child;) {
      if (level > 1) {
        EXPECT_LT(child, tree.children.size() - 1) << "children come first";
      }
      tree.children.back().push_back(child);
    }
    EXPECT_EQ(tree.children.back().size(), tree.states);
  }
  EXPECT_EQ(tree.children.size(), tree.nodes);
  return tree;
}

std::size_t computed(const CellRule& rule, const std::vector<std::size_t>& patch) {
  std::vector<std::uint64_t> in(9 * rule.channels);
  for (std::size_t c = 0; c < rule.channels; ++c)
    for (std::size_t p = 0; p < 9; ++p) in[c * 9 + p] = patch[p] >> c & 1;
  const auto out = circuit::outputs_for(rule.circuit, in);
  std::size_t state = 0;
  for (std::size_t c = 0; c < rule.channels; ++c) state |= (out[c] & 1) << c;
  return state;
}

TEST(Golly, TreesOfOneChannelAreRightOnAllNeighbourhoods) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const CellRule rule = random_rule(seed, 1, 40);
    const Tree tree = read_tree(circuit::to_golly(rule, "r"));
    EXPECT_EQ(tree.states, 2u);
    for (std::size_t k = 0; k < 512; ++k) {
      std::vector<std::size_t> patch(9);
      for (std::size_t p = 0; p < 9; ++p) patch[p] = k >> p & 1;
      ASSERT_EQ(tree.next(patch), computed(rule, patch)) << "seed " << seed << ", patch " << k;
    }
  }
}

TEST(Golly, TreesOfSeveralChannelsAreRightOnRandomNeighbourhoods) {
  for (const std::uint32_t channels : {2u, 3u, 8u}) {
    CellRule rule = random_rule(channels, channels, 12);
    const Tree tree = read_tree(circuit::to_golly(rule, "r"));
    const RandomStream random(1, RandomUse::user);
    for (std::uint32_t k = 0; k < 500; ++k) {
      std::vector<std::size_t> patch(9);
      for (std::uint32_t p = 0; p < 9; ++p) patch[p] = random.below(9 * k + p, 1u << channels);
      ASSERT_EQ(tree.next(patch), computed(rule, patch)) << channels << " channels";
    }
  }
}

TEST(Golly, TheTreeHasNoMoreNodesThanItNeeds) {
  // The cell keeps its state: one node on each of nine levels.
  const CellRule same{1, circuit::Boundary::periodic, {9, {{Op::a, 4, 4}}, {9}}};
  EXPECT_EQ(read_tree(circuit::to_golly(same, "same")).nodes, 9u);
  EXPECT_THAT(circuit::to_golly(same, "same"), testing::StartsWith("@RULE same\n\n@TREE\n\nnum_states=2\n"));
}

TEST(Golly, NamesOfRulesMayHaveHyphens) {
  const CellRule rule = random_rule(1, 1, 3);
  EXPECT_THAT(circuit::to_golly(rule, "my-rule"), testing::StartsWith("@RULE my-rule\n"));
  for (const char* name : {"", "-a", "a b", "1a"}) EXPECT_THROW(circuit::to_golly(rule, name), Exception) << name;
}

TEST(Golly, RefusesMoreThanEightChannels) {
  try {
    circuit::to_golly(random_rule(1, 9, 12), "r");
    FAIL();
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupported);
    EXPECT_THAT(e.what(), testing::HasSubstr("the rule has 9"));
  }
}

}  // namespace
}  // namespace gradloom::test
