// Every family over ranks that are threads: each rank ends with the checkpoint of one process.
#include "tests/support/ranks.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <random>

#include "gradloom/app/families/families.h"
#include "gradloom/app/formula/formula.h"
#include "gradloom/app/ged/run.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/run/run.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"
#include "tests/support/small_data.h"

namespace gradloom::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StrEq;

using Overrides = std::vector<std::string>;

Overrides operator+(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class RanksOfFamilies : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(scratch_ / "table.csv") << small_table(1100);
    std::ofstream(scratch_ / "rings.json") << rings_and_paths();
  }

  std::unique_ptr<Session> open(const std::string& name, const Overrides& overrides, unsigned threads,
                                Comm* comm) const {
    const Config recipe = app::load_recipe(name, overrides).or_throw();
    app::RunOptions options;
    options.exec.threads = threads;
    options.comm = comm;
    return app::find_family(recipe.string("family")).open(recipe, scratch_.path(), options).or_throw();
  }

  // The bytes of the checkpoint that the run ends with.
  std::string trained(const std::string& name, const Overrides& overrides, unsigned threads, Comm* comm) const {
    const auto session = open(name, overrides, threads, comm);
    EXPECT_TRUE(session->shares_steps());
    session->preflight();
    session->start();
    SessionListener nobody;
    gradloom::train(*session, nobody);
    const std::filesystem::path path = scratch_ / ("end-" + std::to_string(comm ? comm->rank() : 99));
    session->save(path, 0).or_throw();
    return content_of(path);
  }

  // `least`: shares that every rank must have computed.
  void expect_same(const std::string& name, const Overrides& overrides, std::vector<unsigned> sizes,
                   std::vector<unsigned> threads = {1, 2}, std::uint64_t least = 2) const {
    const std::string expected = trained(name, overrides, 1, nullptr);
    ASSERT_FALSE(expected.empty());
    for (const unsigned size : sizes)
      for (const unsigned of_rank : threads) {
        const auto failures = run_ranks(size, [&](Comm& comm) {
          EXPECT_TRUE(trained(name, overrides, of_rank, &comm) == expected)
              << name << ": rank " << comm.rank() << " of " << size << " ends with other bits";
          EXPECT_GT(comm.counters().bytes, 1000u) << name;
          EXPECT_GE(comm.counters().shares, least) << name << ": rank " << comm.rank() << " of " << size;
        });
        EXPECT_THAT(failures, Each(StrEq(""))) << name;
      }
  }

  Scratch scratch_;
};

const std::vector<unsigned> kSizes = {2, 3, 4, 7};

TEST_F(RanksOfFamilies, SplinesEndWithTheCheckpointOfOneProcess) {
  expect_same("kan-hello",
              {"epochs=3", "data.samples=4000", "data.test_samples=20", "train.batch=3584", "optimizer.kind=adam",
               "data.validation=0.05"},
              thinned(kSizes));
}

TEST_F(RanksOfFamilies, SplinesWithAPenaltyThatAreThenPrunedEndWithTheCheckpointOfOneProcess) {
  std::ofstream(scratch_ / "pruned.toml")
      << "family = \"kan\"\ntask = \"regression\"\nepochs = 6\n[data]\nformula = \"sin(3*x1) + 0*x2 + x3^2\"\n"
         "samples = 2500\ntest_samples = 50\nvalidation = 0.1\n[model]\nhidden = [4]\nnormalise = \"range\"\n"
         "sparsity = 1e-3\n[optimizer]\nkind = \"lbfgs\"\nlr = 1.0\n[[stage]]\n[[stage]]\nsparsity = 0.0\n"
         "prune = 0.01\n";
  const std::string recipe = (scratch_ / "pruned.toml").string();
  expect_same(recipe, {}, thinned<unsigned>({2, 3, 7}), {1, 2});
  const Overrides adam = {"optimizer.kind=adam", "optimizer.lr=0.02", "train.batch=1100"};
  expect_same(recipe, adam, {3}, {1});
  expect_same(recipe, adam + Overrides{"train.accumulate=2", "optimizer.clip_norm=0.1", "train.freeze=['layer0.*']"},
              {2}, {1});
}

// Every other step is saved; for one of these numbers of epochs that is the last step of the stage.
TEST_F(RanksOfFamilies, ACheckpointAtTheLastStepOfAStageChangesNothing) {
  for (const char* epochs : {"epochs=4", "epochs=5"}) {
    const Config recipe =
        app::load_recipe("kan-hello", Overrides{epochs, "data.samples=1100", "data.test_samples=20", "train.batch=0",
                                                "optimizer.kind=adam", "train.checkpoint_seconds=1e-9"})
            .or_throw();
    app::RunOptions options;
    options.exec.threads = 1;
    app::train(recipe, scratch_ / (epochs + std::string("-one")), options).or_throw();
    const auto failures = run_ranks(3, [&](Comm& comm) {
      app::RunOptions own = options;
      own.comm = &comm;
      app::train(recipe, scratch_ / (epochs + std::string("-ranks")), own).or_throw();
    });
    EXPECT_THAT(failures, Each(StrEq(""))) << epochs;
    const auto checkpoint_of = [&](const char* run) {
      return content_of(scratch_ / (epochs + std::string(run)) / "checkpoint/last.safetensors");
    };
    EXPECT_FALSE(checkpoint_of("-one").empty());
    EXPECT_TRUE(checkpoint_of("-ranks") == checkpoint_of("-one")) << epochs;
  }
}

TEST_F(RanksOfFamilies, GateClassifiersEndWithTheCheckpointOfOneProcess) {
  expect_same(
      "logic-classify",
      {"epochs=3", "data.path=table.csv", "data.test_path=", "data.test=0.1", "data.header=no", "data.target=-1",
       "data.drop=[]", "data.categorical=['0','1']", "train.batch=896", "data.validation=0", "model.gates=[128,64,32]"},
      thinned(kSizes));
}

TEST_F(RanksOfFamilies, AutomataEndWithTheCheckpointOfOneProcess) {
  const Overrides small = {"epochs=4",      "data.height=8",   "data.width=8",
                           "model.steps=3", "data.samples=28", "train.batch=14"};
  expect_same("checkerboard-small", small, thinned(kSizes));
  expect_same("checkerboard-async",
              {"stage=[]", "model.fire=0.5", "epochs=2", "data.height=16", "data.width=16", "model.steps=3",
               "train.batch=6", "data.samples=12"},
              {2, 3}, {1});
  expect_same("checkerboard-small",
              {"epochs=2", "data.height=8", "data.width=8", "model.steps=2", "data.samples=70",
               "train.batch=70"},  // shards of 3 samples
              {3, 4}, {1});
}

TEST_F(RanksOfFamilies, GraphTasksEndWithTheCheckpointOfOneProcess) {
  for (const char* layer : {"gin", "gcn", "gat"})
    expect_same("tu",
                {"epochs=3", "data.path=rings.json", "data.folds=4", "data.fold=0", "data.features=degrees",
                 "train.batch=14", "model.hidden=[4]", "model.norm=none", std::string("model.layer=") + layer},
                thinned(kSizes), {1});
}

TEST_F(RanksOfFamilies, RewritersEndWithTheCheckpointOfOneProcess) {
  const Overrides small = {"epochs=2",
                           "data.samples=130",
                           "data.validation_samples=10",
                           "data.test_samples=10",
                           "data.large_samples=0",
                           "model.width=16",
                           "model.layers=2"};
  expect_same("rewrite", small + Overrides{"train.batch=112"}, thinned<unsigned>({2, 3, 7}), {1});  // 14 parts
  expect_same("rewrite", small + Overrides{"train.batch=40", "train.accumulate=3", "optimizer.clip_norm=0.1"}, {3},
              {2});
  if (!kSanitized)
    expect_same("rewrite", small + Overrides{"data.samples=300", "train.batch=290"}, {4}, {1});  // 29 parts of 10 trees
}

class RanksOfPairs : public RanksOfFamilies {
 protected:
  void SetUp() override {
    RanksOfFamilies::SetUp();
    std::ofstream out(scratch_ / "distances.txt");  // not those of the graphs, but numbers to learn
    out << "40\n";
    for (int i = 0; i < 40; ++i) out << i << ' ';
    for (int i = 1; i < 40; ++i)
      for (int j = 0; j < i; ++j) out << (j == 0 ? "\n" : " ") << i / 4 - j / 4 + (i + j) % 2;
    out << '\n';
  }

  const Overrides small_ = {"epochs=2",
                            "data.path=rings.json",
                            "data.distances=distances.txt",
                            "data.features=degrees",
                            "model.hidden=[5,4]",
                            "model.code=3",
                            "model.head=6"};
};

TEST_F(RanksOfPairs, EndWithTheCheckpointOfOneProcess) {
  expect_same("ged-regression", small_ + Overrides{"train.batch=120"}, thinned(kSizes), {1, 2});
  for (const char* layer : {"gcn", "gat"})
    expect_same("ged-regression",
                small_ + Overrides{"train.batch=40", "train.accumulate=3", "optimizer.clip_norm=0.1",
                                   "model.dropout=0.2", "model.jumping=concat", std::string("model.layer=") + layer},
                {2, 3}, {1});
}

TEST_F(RanksOfPairs, EndWithTheCheckpointOfOneProcessWhateverIsFrozenAndHowever) {
  expect_same("ged-regression", small_ + Overrides{"train.batch=50", "train.freeze=['encoder.*']"}, {3}, {1});
  expect_same("ged-regression", small_ + Overrides{"train.batch=50", "train.freeze=['pair.*','encoder.layer.0.*']"},
              {3}, {2});
  expect_same("ged-regression", small_ + Overrides{"optimizer.kind=lbfgs", "optimizer.lr=1"}, {2, 5}, {1});
  expect_same("ged-regression", small_ + Overrides{"train.batch=1", "epochs=1"}, {4}, {1}, 0);  // 2 graphs
}

TEST_F(RanksOfPairs, ModelsThatCannotBeSharedSaySo) {
  const auto failures = run_ranks(2, [&](Comm& comm) {
    EXPECT_EQ(open("karate", {"epochs=2"}, 1, &comm)->why_not_shared(), "the nodes of a graph are computed together");
    EXPECT_EQ(open("ged-regression", small_ + Overrides{"model.norm=batch", "train.keep_best=false"}, 1, &comm)
                  ->why_not_shared(),
              "batch norm ties the graphs of a batch together");
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

class RanksOfDistances : public RanksOfFamilies {
 protected:
  // The report of one process; each rank of each number gives the same distances.
  nlohmann::json expect_same_distances(const std::string& file, const std::vector<unsigned>& sizes) {
    app::GedAllPairsOptions o;
    o.file = (scratch_ / file).string();
    o.costs = app::ged_costs("uniform").or_throw();
    o.threads = 1;
    o.out = scratch_ / "one.txt";
    const nlohmann::json expected = to_json(app::ged_all_pairs(o).or_throw());
    for (const unsigned ranks : sizes) {
      const auto failures = run_ranks(ranks, [&](Comm& comm) {
        app::GedAllPairsOptions shared = o;
        shared.comm = &comm;
        shared.out = scratch_ / "many.txt";
        const nlohmann::json found = to_json(app::ged_all_pairs(shared).or_throw());
        if (comm.rank() > 0) {
          EXPECT_GT(comm.counters().bytes, 100u) << "every rank has pairs to tell";
          return;
        }
        for (const char* key : {"pairs", "exact_share", "mean", "expanded", "hardest"})
          EXPECT_EQ(found[key], expected[key]);
      });
      EXPECT_THAT(failures, Each(StrEq("")));
      EXPECT_EQ(content_of(scratch_ / "many.txt"), content_of(scratch_ / "one.txt"));
    }
    return expected;
  }
};

TEST_F(RanksOfDistances, AreThoseOfOneProcess) { expect_same_distances("rings.json", thinned(kSizes)); }

TEST_F(RanksOfDistances, OfHardPairsAreThoseOfOneProcess) {
  constexpr unsigned kGraphs = 5, kNodes = 15;
  std::mt19937 random(5);
  nlohmann::json graphs = nlohmann::json::array();
  for (unsigned g = 0; g < kGraphs; ++g) {
    nlohmann::json edges = nlohmann::json::array();
    for (unsigned i = 0; i < kNodes; ++i)
      for (unsigned j = 0; j < i; ++j)
        if (random() % 100 < 35) edges.push_back({i, j});
    graphs.push_back({{"id", "g" + std::to_string(g)}, {"nodes", kNodes}, {"edges", edges}});
  }
  std::ofstream(scratch_ / "hard.json") << nlohmann::json{{"graphs", graphs}};
  const nlohmann::json report = expect_same_distances("hard.json", {2, 3});
  EXPECT_GT(report["hardest"][1]["expanded"], 20000) << "several pairs are hard";
}

// Recipes drawn at random: what is summed, cut, clipped and frozen in all combinations.
class RandomRecipes {
 public:
  struct Recipe {
    std::string name;
    Overrides overrides;
  };

  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::string one_of(std::vector<std::string> of) { return of[below(static_cast<unsigned>(of.size()))]; }

  Recipe draw(int seed) {
    Recipe r = base();
    Overrides& o = r.overrides;
    o.push_back("seed=" + std::to_string(seed));
    o.push_back("epochs=2");
    o.push_back("precision=" + one_of({"float32", "float64"}));
    const bool drawn = r.name == "checkerboard-small";  // L-BFGS takes such samples at once
    const std::string optimizer =
        drawn ? one_of({"sgd", "adam", "adamw", "lion"}) : one_of({"sgd", "adam", "adamw", "lion", "lbfgs"});
    const bool whole = optimizer == "lbfgs";
    o.push_back("optimizer.kind=" + optimizer);
    o.push_back("optimizer.lr=" + std::string(whole ? "1" : "0.02"));
    if (whole) return r;
    o.push_back("train.batch=" + std::to_string(batch_));
    o.push_back("train.accumulate=" + one_of({"1", "2", "3"}));
    o.push_back("optimizer.clip_norm=" + one_of({"0", "0.05"}));
    o.push_back("optimizer.clip_value=" + one_of({"0", "0.01"}));
    return r;
  }

 private:
  Recipe base() {
    switch (below(9)) {
      case 0:
        batch_ = 30 + below(800);
        return {"logic-classify",
                {"data.path=table.csv", "data.test_path=", "data.test=0.1", "data.header=no", "data.target=-1",
                 "data.drop=[]", "data.categorical=['0','1']", "model.gates=" + one_of({"[16,8]", "[32,16,8]"})}};
      case 1:
        batch_ = 1 + below(12);
        return {"checkerboard-small",
                {"data.height=8", "data.width=8", "model.steps=" + one_of({"2", "3"}), "data.samples=12",
                 "data.test_samples=2", "model.fire=" + one_of({"1", "0.5"}), "train.search=0", "train.start_over=0",
                 "model.update=[128,64,32,16,8]"}};
      case 2:
        batch_ = 1 + below(24);
        return {"tu",
                {"data.path=rings.json", "data.folds=4", "data.fold=" + one_of({"0", "1"}), "data.features=degrees",
                 "model.hidden=" + one_of({"[4]", "[4,4]"}), "model.norm=none", "train.ged_sample=0",
                 "model.layer=" + one_of({"gin", "gcn", "gat"})}};
      case 3:
        batch_ = 1 + below(200);
        return {
            "ged-regression",
            {"data.path=rings.json", "data.distances=distances.txt", "data.features=degrees",
             "model.hidden=" + one_of({"[4]", "[4,4]"}), "model.code=" + one_of({"2", "5"}), "model.head=4",
             "model.norm=" + one_of({"none", "layer"}), "model.dropout=" + one_of({"0", "0.3"}),
             "train.freeze=" + one_of({"[]", "['encoder.layer.*']"}), "model.layer=" + one_of({"gin", "gcn", "gat"})}};
      default:
        break;
    }
    const unsigned samples = 300 + below(1500);
    batch_ = std::min(100 + below(samples - 100), samples * 8 / 10);
    return {"kan-hello",
            {"stage=[]", "data.samples=" + std::to_string(samples), "data.test_samples=10",
             "model.hidden=" + one_of({"[3]", "[2,3]", "[17]"}), "model.grid=" + one_of({"3", "5"}),
             "model.degree=" + one_of({"1", "2", "3"}), "data.validation=" + one_of({"0", "0.1"}),
             "model.sparsity=" + one_of({"0", "0", "0.001"}), "train.freeze=" + one_of({"[]", "['layer0.*']"})}};
  }

  std::mt19937 random_{20};
  unsigned batch_ = 1;
};

TEST_F(RanksOfPairs, AmongTwoHundredRandomRecipesEndWithTheBitsOfOneProcess) {
  RandomRecipes random;
  const int recipes = kSanitized ? 20 : 200;
  std::map<std::string, int> drawn;
  for (int i = 0; i < recipes; ++i) {
    const auto recipe = random.draw(i);
    const unsigned ranks = 2 + random.below(4), threads = 1 + random.below(2);
    ++drawn[recipe.name];
    expect_same(recipe.name, recipe.overrides, {ranks}, {threads}, 0);
    if (HasFailure()) {
      ADD_FAILURE() << "recipe " << i << ", ranks " << ranks << ": " << ::testing::PrintToString(recipe.overrides);
      return;
    }
  }
  EXPECT_EQ(drawn.size(), 5u) << "families";
}

// The folder of a run, written by rank 0 alone, and its continuation by another number of ranks.
TEST_F(RanksOfFamilies, ARunStoppedOnThreeRanksAndResumedOnTwoEndsAsIfNothingHadHappened) {
  const Overrides o = {"epochs=4", "data.samples=2000", "data.test_samples=20", "train.batch=1024",
                       "optimizer.kind=adam"};
  const Config recipe = app::load_recipe("kan-hello", o).or_throw();
  app::RunOptions plain;
  plain.exec.threads = 1;
  plain.data_root = scratch_.path();
  ASSERT_TRUE(app::train(recipe, scratch_ / "whole", plain));
  std::atomic<bool> stop = false;
  auto failures = run_ranks(3, [&](Comm& comm) {
    app::RunOptions options = plain;
    options.comm = &comm;
    if (comm.rank() == 0) {
      options.stop = &stop;
      options.progress = [&](const app::Progress&) { stop = true; };
    }
    const auto summary = app::train(recipe, scratch_ / "parts", options).or_throw();
    EXPECT_TRUE(summary.interrupted);
  });
  EXPECT_THAT(failures, Each(StrEq("")));
  failures = run_ranks(2, [&](Comm& comm) {
    app::RunOptions options = plain;
    options.comm = &comm;
    const auto summary = app::resume(scratch_ / "parts", options).or_throw();
    EXPECT_EQ(summary.result.has_value(), comm.rank() == 0);
    EXPECT_EQ(summary.ranks, 2u);
  });
  EXPECT_THAT(failures, Each(StrEq("")));
  EXPECT_TRUE(content_of(scratch_ / "parts/checkpoint/last.safetensors") ==
              content_of(scratch_ / "whole/checkpoint/last.safetensors"));
  EXPECT_EQ(content_of(scratch_ / "parts/log.jsonl"), content_of(scratch_ / "whole/log.jsonl"));
}

TEST_F(RanksOfFamilies, PredictAndMeasureAsOneProcess) {
  app::RunOptions plain;
  plain.exec.threads = 1;
  plain.data_root = scratch_.path();
  const auto train_small = [&](const char* name, const Overrides& overrides, const char* folder) {
    app::train(app::load_recipe(name, overrides).or_throw(), scratch_ / folder, plain).or_throw();
  };
  train_small(
      "kan-rows",
      {"data.path=table.csv", "data.header=no", "data.target=-1", "data.test=0.3", "epochs=2", "data.validation=0.1"},
      "rows");
  train_small("tu",
              {"epochs=2", "data.path=rings.json", "data.folds=4", "data.fold=0", "data.features=degrees",
               "model.hidden=[4]", "model.norm=none", "train.batch=14"},
              "graphs");
  train_small("karate", {"epochs=2"}, "nodes");
  for (const auto& [folder, file] :
       std::map<std::string, std::string>{{"rows", "table.csv"}, {"graphs", "rings.json"}, {"nodes", ""}}) {
    const auto evaluated = [&](const app::RunOptions& options, const std::string& out) {
      return to_json(app::evaluate(scratch_ / folder, options, {.predictions = scratch_ / out, .data = {}}).or_throw());
    };
    const auto predicted = [&](const app::RunOptions& options, const std::string& out) {
      app::PredictOptions what;
      what.file = scratch_ / file, what.out = scratch_ / out;
      return to_json(app::predict(scratch_ / folder, options, what).or_throw());
    };
    const nlohmann::json expected = evaluated(plain, "one.csv");
    const nlohmann::json asked = file.empty() ? nlohmann::json() : predicted(plain, "asked-one.csv");
    const auto failures = run_ranks(3, [&](Comm& comm) {
      app::RunOptions options = plain;
      options.comm = &comm;
      const auto seen = evaluated(options, "many.csv");
      for (const char* key : {"train", "test", "rows"}) EXPECT_EQ(seen[key], expected[key]) << folder << key;
      if (!file.empty()) {
        EXPECT_EQ(predicted(options, "asked-many.csv")["data"], asked["data"]) << folder;
      }
      EXPECT_EQ(comm.counters().bytes > 2000, folder != "nodes") << folder << ": " << comm.counters().bytes;
    });
    EXPECT_THAT(failures, Each(StrEq("")));
    EXPECT_EQ(content_of(scratch_ / "many.csv"), content_of(scratch_ / "one.csv"));
    EXPECT_EQ(content_of(scratch_ / "asked-many.csv"), content_of(scratch_ / "asked-one.csv"));
  }
}

TEST_F(RanksOfFamilies, SearchForTheFormulaOfOneProcess) {
  app::RunOptions plain;
  plain.exec.threads = 1;
  const Config recipe = app::load_recipe("kan-formula", Overrides{"epochs=2", "data.samples=200", "model.hidden=[2]",
                                                                  "data.formula='x1*sin(x2)'", "model.refit=[]"})
                            .or_throw();
  ASSERT_TRUE(app::train(recipe, scratch_ / "one", plain));
  const std::string expected = content_of(scratch_ / "one/formula.json");
  EXPECT_THAT(expected, HasSubstr("\"exact\""));
  app::FormulaSearchOptions again;
  again.again = true, again.effort = 50;
  const auto limited = app::model_formula(scratch_ / "one", plain, again, {}).or_throw();
  for (const unsigned ranks : {2u, 3u}) {
    const std::filesystem::path folder = scratch_ / ("ranks-" + std::to_string(ranks));
    const auto failures = run_ranks(ranks, [&](Comm& comm) {
      app::RunOptions options = plain;
      options.comm = &comm;
      app::train(recipe, folder, options).or_throw();
      EXPECT_EQ(app::model_formula(scratch_ / "one", options, again, {}).or_throw(), limited);
    });
    EXPECT_THAT(failures, Each(StrEq("")));
    EXPECT_EQ(content_of(folder / "formula.json"), expected);
  }
}

// What all of three ranks say where rank 2 has other files or overrides than the others.
class UnlikeRanks {
 public:
  std::string table = "1,2\n3,4\n5,6\n7,8\n2,3\n4,5\n", test_table = "1,2\n3,5\n";
  Overrides overrides = {"seed=1"};

  std::string said_beside(const UnlikeRanks& others, const std::filesystem::path& out) const {
    const auto failures = run_ranks(3, [&](Comm& comm) {
      const UnlikeRanks& mine = comm.rank() == 2 ? *this : others;
      const Scratch own;
      std::ofstream(own / "table.csv") << mine.table;
      std::ofstream(own / "test.csv") << mine.test_table;
      app::RunOptions options;
      options.comm = &comm;
      options.exec.threads = 1;
      options.data_root = own.path();
      const Overrides common = {"data.path=table.csv", "data.test_path=test.csv", "data.header=no",
                                "data.target=-1",      "data.validation=0.5",     "epochs=1",
                                "train.batch=0"};
      app::train(app::load_recipe("kan-rows", common + mine.overrides).or_throw(), out, options).or_throw();
    });
    EXPECT_THAT(failures, Each(StrEq(failures[0])));
    EXPECT_FALSE(std::filesystem::exists(out));
    return failures[0];
  }
};

TEST_F(RanksOfFamilies, OtherDataOrAnotherRecipeOnARankAreNamed) {
  const UnlikeRanks others;
  const auto said_with = [&](auto&& change) {
    UnlikeRanks one;
    change(one);
    return one.said_beside(others, scratch_ / "never");
  };
  EXPECT_EQ(said_with([](UnlikeRanks& r) { r.overrides = {"seed=2"}; }),
            "rank 2 has another recipe than rank 0; start all ranks alike, with the same files");
  EXPECT_THAT(said_with([](UnlikeRanks& r) { r.test_table = "1,2\n3,6\n"; }), HasSubstr("rank 2 has other test data"));
  std::map<std::string, int> said;  // by the row that differs
  for (std::size_t line = 0; line < 6; ++line) ++said[said_with([&](UnlikeRanks& r) { r.table[4 * line + 2] = '9'; })];
  EXPECT_EQ(said.size(), 2u);
  for (const auto& [text, count] : said)
    EXPECT_THAT(text, ::testing::AnyOf(HasSubstr("rank 2 has other training data"),
                                       HasSubstr("rank 2 has other validation data")));
}

TEST_F(RanksOfFamilies, OtherGraphsOrCostsOnARankAreNamed) {
  const auto said = [&](const std::string& graphs, const char* costs) {
    std::ofstream(scratch_ / "other.json") << graphs;
    const auto failures = run_ranks(3, [&](Comm& comm) {
      app::GedAllPairsOptions o;
      o.file = (scratch_ / (comm.rank() == 1 ? "other.json" : "rings.json")).string();
      o.costs = app::ged_costs(comm.rank() == 1 ? costs : "uniform").or_throw();
      o.threads = 1;
      o.comm = &comm;
      app::ged_all_pairs(o).or_throw();
    });
    EXPECT_THAT(failures, Each(StrEq(failures[0])));
    return failures[0];
  };
  std::string moved = rings_and_paths();  // as many nodes and edges, under the same names
  moved.replace(moved.find("[0,1],[1,2]", moved.find("\"path\"")), 11, "[0,1],[0,2]");
  EXPECT_EQ(said(moved, "uniform"), "rank 1 has other graphs than rank 0; start all ranks alike, with the same files");
  EXPECT_THAT(said(rings_and_paths(), "1,1,2,1"), HasSubstr("rank 1 has other costs than rank 0"));
}

}  // namespace
}  // namespace gradloom::test
