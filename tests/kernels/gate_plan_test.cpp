// The order of evaluation of a layer: every gate once, every row written once or cleared, no sum in another order.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/kernels/gate/cases.h"

namespace gradloom::kernels::gate {
namespace {

std::vector<GateRows> rows_of(const Problem<float>& p) {
  std::vector<GateRows> rows(p.gates.size());
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const Gate<float>& gate = p.gates[p.plan.position[n]];
    EXPECT_EQ(gate.out, n * kTile);
    rows[n] = {gate.a / static_cast<std::uint32_t>(kTile), gate.b / static_cast<std::uint32_t>(kTile)};
  }
  return rows;
}

// How often each kind of run occurs, in gates.
std::map<Visit, std::size_t> gates_by_visit(const LayerPlan& plan) {
  std::map<Visit, std::size_t> count;
  for (const Run& run : plan.runs) count[run.visit] += run.count;
  return count;
}

TEST(GatePlan, KeepsThePromisesOfItsRuns) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name());
    const Problem<float> p(c, Logits::mixed, 17);
    const std::vector<GateRows> rows = rows_of(p);
    std::vector<std::size_t> order(rows.size(), rows.size());  // gates by position
    for (std::size_t n = 0; n < rows.size(); ++n) order.at(p.plan.position[n]) = n;
    ASSERT_EQ(std::count(order.begin(), order.end(), rows.size()), 0) << "two gates have one place";

    std::vector<int> readers(c.inputs), written(c.inputs);
    for (const GateRows& r : rows) ++readers[r.a], ++readers[r.b];
    std::vector<std::size_t> plain;
    std::vector<bool> by_plain(c.inputs);
    std::size_t at = 0;
    for (const gate::Run& run : p.plan.runs) {
      ASSERT_GT(run.count, 0u);
      for (std::size_t n = 0; n < run.count; ++n, ++at) {
        const GateRows& now = rows[order.at(at)];
        const GateRows& before = rows[order[n == 0 ? at : at - 1]];
        if (run.visit == Visit::plain || run.visit == Visit::same || run.visit == Visit::fan) {
          plain.push_back(order[at]);
          if (run.visit != Visit::fan) by_plain[now.a] = true;
          by_plain[now.b] = true;
        }
        if (run.visit == Visit::same) {
          EXPECT_EQ(now.a, before.a);
          EXPECT_EQ(now.b, before.b);
          EXPECT_NE(now.a, now.b);
        }
        if (run.visit == Visit::fan) {
          EXPECT_EQ(now.b, before.b);
          EXPECT_EQ(readers[now.a], 1);
          ++written[now.a];
        }
        if (run.visit == Visit::pairs) ++written[now.a], ++written[now.b];
        if (run.visit == Visit::chain) {
          if (n == 0)
            ++written[now.a];
          else
            EXPECT_EQ(now.a, before.b);
          ++written[now.b];
        }
      }
    }
    EXPECT_EQ(at, rows.size());
    EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
    for (std::size_t row = 0; row < c.inputs; ++row) {
      EXPECT_LE(written[row], 1) << "row " << row;
      if (written[row] > 0 && by_plain[row]) {
        EXPECT_EQ(readers[row], 2) << "row " << row;
      }
      const bool listed = std::count(p.plan.unwritten.begin(), p.plan.unwritten.end(), row) == 1;
      EXPECT_EQ(listed, row != c.given && written[row] == 0) << "row " << row;
      if (row == c.given) {
        EXPECT_EQ(written[row], 0) << "row " << row;
      }
    }
  }
}

TEST(GatePlan, FindsChainsPairsFansAndGatesThatReadTheSame) {
  const auto visits = [](const Case& c) { return gates_by_visit(Problem<float>(c, Logits::mixed, 1).plan); };
  EXPECT_EQ(visits({40, 39, 1, Wiring::circle}), (std::map<Visit, std::size_t>{{Visit::chain, 39}}));
  // One gate opens the circle.
  EXPECT_EQ(visits({40, 40, 1, Wiring::circle}), (std::map<Visit, std::size_t>{{Visit::plain, 1}, {Visit::chain, 39}}));
  EXPECT_EQ(visits({64, 32, 1, Wiring::halves}), (std::map<Visit, std::size_t>{{Visit::pairs, 32}}));
  EXPECT_EQ(visits({9, 48, 6, Wiring::same, 4}), (std::map<Visit, std::size_t>{{Visit::same, 48}}));
  EXPECT_EQ(visits({9, 8, 1, Wiring::fan, 4}), (std::map<Visit, std::size_t>{{Visit::fan, 8}}));
  EXPECT_EQ(visits({9, 8, 1, Wiring::fan}), (std::map<Visit, std::size_t>{{Visit::fan, 8}}));
  // Row 0 is added to, so its gate is none of the fan, which it may cut in two, each long enough or not.
  const auto cut = visits({9, 8, 1, Wiring::fan, 0});
  EXPECT_GE(cut.at(Visit::plain), 1u);
  EXPECT_LE(cut.at(Visit::plain), 4u);
  EXPECT_EQ(cut.at(Visit::plain) + (cut.contains(Visit::fan) ? cut.at(Visit::fan) : 0), 8u);
  EXPECT_EQ(visits({30, 24, 1, Wiring::mixed}), (std::map<Visit, std::size_t>{{Visit::fan, 4}, {Visit::chain, 20}}));
}

TEST(GatePlan, RefusesRowsThatDoNotExist) {
  const std::vector<GateRows> rows{{0, 1}, {2, 3}};
  EXPECT_THROW(plan_layer(rows, 3), Exception);
  EXPECT_NO_THROW(plan_layer(rows, 4));
  EXPECT_THROW(plan_layer(rows, 4, 4), Exception);
  EXPECT_NO_THROW(plan_layer(rows, 4, 3));
}

}  // namespace
}  // namespace gradloom::kernels::gate
