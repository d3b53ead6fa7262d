// Hard automata in strips of rows: each rank computes some, and all together end with the cells of one process.
#include "gradloom/app/circuit/strips.h"

#include <gmock/gmock.h>

#include <fstream>

#include "gradloom/app/circuit/jobs.h"
#include "tests/support/ranks.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StrEq;

std::string text_in(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_same_cells(app::RunCircuitOptions o, unsigned ranks) {
  const Scratch scratch;
  o.threads = 1;
  o.out = scratch / "one.rle";
  const app::RanCircuit alone = app::run_circuit(o).or_throw();
  o.out = scratch / "many.rle";
  const auto failures = run_ranks(ranks, [&](Comm& comm) {
    app::RunCircuitOptions shared = o;
    shared.comm = &comm;
    const app::RanCircuit found = app::run_circuit(shared).or_throw();
    EXPECT_EQ(found.ranks, ranks);
    EXPECT_EQ(found.population.start, alone.population.start);
    EXPECT_EQ(found.population.end, alone.population.end);
    EXPECT_GT(comm.counters().bytes, 0u);
    if (comm.rank() == 0) {
      EXPECT_EQ(found.cells, alone.cells);
    }
  });
  EXPECT_THAT(failures, Each(StrEq("")));
  ASSERT_FALSE(text_in(scratch / "one.rle").empty());
  EXPECT_EQ(text_in(scratch / "many.rle"), text_in(scratch / "one.rle"));
}

TEST(Strips, OfRandomCellsEndAsInOneProcess) {
  for (const circuit::Boundary boundary : {circuit::Boundary::periodic, circuit::Boundary::zero})
    for (const double fire : {1.0, 0.7})
      for (const auto& [height, width, ranks] :
           std::vector<std::array<unsigned, 3>>{{20, 70, 2}, {150, 65, 3}, {5, 64, 5}, {7, 30, 4}, {200, 20, 2}}) {
        app::RunCircuitOptions o;
        o.circuit = "game-of-life";
        o.boundary = boundary, o.fire = fire, o.seed = height;
        o.height = height, o.width = width, o.density = 0.4, o.steps = kSanitized ? 20 : 70;
        expect_same_cells(o, ranks);
      }
}

TEST(Strips, OfAPatternEndAsInOneProcess) {
  const Scratch scratch;
  std::ofstream(scratch / "glider.rle") << "x = 3, y = 3\nbob$2bo$3o!\n";
  app::RunCircuitOptions o;
  o.circuit = "game-of-life";
  o.pattern = scratch / "glider.rle";
  o.height = 40, o.width = 40, o.steps = 170;  // once around
  o.boundary = circuit::Boundary::periodic;
  for (const unsigned ranks : {2u, 3u}) expect_same_cells(o, ranks);
}

TEST(Strips, TogetherMayHaveMoreCellsThanOneGridUnlessTheyAreWritten) {
  app::RunCircuitOptions o;
  o.circuit = "game-of-life";
  const auto failures = run_ranks(2, [&](Comm& comm) {
    app::RunCircuitOptions shared = o;
    shared.comm = &comm;
    shared.width = std::size_t{1} << 20, shared.height = std::size_t{1} << 13;
    shared.out = "grid.rle";
    EXPECT_THAT(app::run_circuit(shared).error().message, HasSubstr("2^32 cells"));
    shared.out.clear();
    shared.width = std::size_t{1} << 40, shared.height = std::size_t{1} << 20;
    EXPECT_THAT(app::run_circuit(shared).error().message, HasSubstr("2^32 cells"));
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

TEST(Strips, NeedARowForEachRank) {
  const auto failures = run_ranks(3, [&](Comm& comm) {
    app::RunCircuitOptions o;
    o.circuit = "game-of-life";
    o.comm = &comm, o.height = 2, o.width = 9, o.threads = 1;
    app::run_circuit(o).or_throw();
  });
  EXPECT_THAT(failures, Each(StrEq("2 rows are too few for 3 ranks; start fewer ranks")));
}

TEST(Strips, OfOtherCircuitsStartsOrStepsAreRefused) {
  const Scratch scratch;
  std::ofstream(scratch / "glider.rle") << "x = 3, y = 3\nbob$2bo$3o!\n";
  std::ofstream(scratch / "block.rle") << "x = 3, y = 3\n2o$2o$3b!\n";
  const auto said = [&](auto&& change) {
    const auto failures = run_ranks(3, [&](Comm& comm) {
      app::RunCircuitOptions o;
      o.circuit = "game-of-life";
      o.pattern = scratch / "glider.rle";
      o.comm = &comm, o.height = 12, o.width = 9, o.threads = 1, o.steps = 3;
      if (comm.rank() == 2) change(o);
      app::run_circuit(o).or_throw();
    });
    EXPECT_THAT(failures, Each(StrEq(failures[0])));
    return failures[0];
  };
  constexpr const char* kAdvice = " than rank 0; start all ranks alike, with the same files";
  EXPECT_EQ(said([](app::RunCircuitOptions& o) { o.boundary = circuit::Boundary::zero; }),
            std::string("rank 2 has another circuit") + kAdvice);
  EXPECT_EQ(said([&](app::RunCircuitOptions& o) { o.pattern = scratch / "block.rle"; }),
            std::string("rank 2 has another start") + kAdvice);
  EXPECT_EQ(said([](app::RunCircuitOptions& o) { o.steps = 4; }),
            std::string("rank 2 has other steps or options") + kAdvice);
}

}  // namespace
}  // namespace gradloom::test
