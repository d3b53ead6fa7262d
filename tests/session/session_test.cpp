// Sessions in memory: no files, no recipes, no folders.
#include "gradloom/session/session.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "gradloom/session/families/kan/family.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y = x1 * x2 on a lattice.
RowSplits products(std::size_t rows = 120) {
  RowParts<double> parts;
  parts.size = rows, parts.features = 2, parts.targets = 1;
  for (std::size_t s = 0; s < rows; ++s) {
    const double a = std::sin(static_cast<double>(s)), b = std::cos(1.7 * static_cast<double>(s));
    parts.x.insert(parts.x.end(), {a, b});
    parts.target.push_back(a * b);
  }
  RowSplits source{RowDataset<double>(parts), std::nullopt, std::nullopt, {}};
  source.test = source.train.subset(std::vector<std::uint32_t>{1, 5, 7});
  return source;
}

KanOptions small_options() {
  KanOptions o;
  o.train.epochs = 6;
  o.train.batch = 32;
  o.model.hidden = {3};
  o.model.grid = 4;
  return o;
}

struct Events : SessionListener {
  std::vector<std::uint64_t> epochs;
  std::vector<double> losses;
  std::size_t steps = 0, stages = 0;
  void after_step(Session&) override { ++steps; }
  void after_epoch(Session&, const EpochReport& e, const nlohmann::json&) override {
    epochs.push_back(e.position.epoch);
    losses.push_back(e.loss);
  }
  void stage_finished(Session& session) override {
    ++stages;
    EXPECT_TRUE(session.position().stage_closed);
  }
};

TEST(Session, TrainsAndMeasuresInMemory) {
  const auto session = make_session<KanFamily>(small_options(), products(), {.exec = {.threads = 1}});
  session->preflight();
  ASSERT_EQ(session->start(), TrainEnd::finished);
  const double before = session->metrics().train.loss;
  Events events;
  ASSERT_EQ(train(*session, events), TrainEnd::finished);
  EXPECT_THAT(events.epochs, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(events.steps, 6u * 4u);
  EXPECT_EQ(events.stages, 1u);
  const Metrics after = session->metrics();
  EXPECT_LT(after.train.loss, 0.5 * before);
  EXPECT_TRUE(after.test && after.test->values.contains("rmse"));
  EXPECT_FALSE(after.validation);
}

TEST(Session, PrecisionsShareOneInterface) {
  KanOptions o = small_options();
  for (const Precision precision : {Precision::float32, Precision::float64}) {
    o.precision = precision;
    const auto session = make_session<KanFamily>(o, products(), {.exec = {.threads = 1}});
    session->start();
    const PredictedRows y = session->predict();
    EXPECT_EQ(y.precision, precision);
    EXPECT_EQ(y.values.size(), 3u);
    EXPECT_EQ(session->options().precision, precision);
  }
}

void expect_same_bits_after_a_stop(const KanOptions& o) {
  const test::Scratch scratch;
  const auto path = scratch.path() / "c.safetensors";
  const RowSplits source = products();
  Events whole;
  const auto all = make_session<KanFamily>(o, source, {.exec = {.threads = 1}});
  all->start();
  train(*all, whole);

  std::atomic<bool> stop = false;
  struct Stopping : SessionListener {
    std::atomic<bool>& stop;
    std::filesystem::path path;
    std::size_t steps = 0;
    Stopping(std::atomic<bool>& s, std::filesystem::path p) : stop(s), path(std::move(p)) {}
    void after_step(Session&) override { stop = ++steps == 9; }  // in the middle of the third epoch
    void stopped(Session& session) override { session.save(path, 0).or_throw(); }
  };
  const auto first = make_session<KanFamily>(o, source, {.exec = {.threads = 1}, .stop = &stop});
  first->start();
  Stopping stopping(stop, path);
  ASSERT_EQ(train(*first, stopping), TrainEnd::stopped);

  const auto second = make_session<KanFamily>(o, source, {.exec = {.threads = 1}});
  const auto restored = second->restore(read_safetensors(path).or_throw(), path).or_throw();
  EXPECT_FALSE(restored.data_changed);
  Events rest;
  ASSERT_EQ(train(*second, rest), TrainEnd::finished);
  EXPECT_EQ(rest.losses.back(), whole.losses.back());
  EXPECT_EQ(second->predict().values, all->predict().values);
}

TEST(Session, ContinuesFromItsCheckpointWithTheSameBits) {
  KanOptions o = small_options();
  expect_same_bits_after_a_stop(o);
  o.model.multiply = {2};
  expect_same_bits_after_a_stop(o);
}

// What was reached is saved after a listener has thrown, though the trainer is gone.
TEST(Session, CanBeSavedAfterAListenerHasThrown) {
  struct Throwing : SessionListener {
    std::size_t steps = 0;
    void after_step(Session&) override {
      if (++steps == 9) throw std::runtime_error("the listener failed");
    }
  };
  const test::Scratch scratch;
  const auto path = scratch.path() / "c.safetensors";
  const auto session = make_session<KanFamily>(small_options(), products(), {.exec = {.threads = 1}});
  session->start();
  Throwing listener;
  EXPECT_THROW(train(*session, listener), std::runtime_error);
  session->save(path, 0).or_throw();
  const auto other = make_session<KanFamily>(small_options(), products(), {.exec = {.threads = 1}});
  other->restore(read_safetensors(path).or_throw(), path).or_throw();
  EXPECT_EQ(other->position().step, 9u);
  EXPECT_EQ(other->predict().values, session->predict().values);
}

TEST(Session, NoticesOtherTrainingData) {
  const test::Scratch scratch;
  const auto path = scratch.path() / "c.safetensors";
  const auto session = make_session<KanFamily>(small_options(), products(), {.exec = {.threads = 1}});
  session->start();
  session->save(path, 0).or_throw();
  const auto other = make_session<KanFamily>(small_options(), products(121), {.exec = {.threads = 1}});
  EXPECT_TRUE(other->restore(read_safetensors(path).or_throw(), path).or_throw().data_changed);
}

// One hidden node that multiplies is enough for a product; one that adds cannot even come near: f(g(x1) + h(x2)) is
// no product on both sides of 0.
TEST(Session, AMultiplicationNodeLearnsAProduct) {
  const auto rows = [](std::uint32_t from, std::uint32_t count) {
    RowParts<double> parts;
    parts.size = count, parts.features = 2, parts.targets = 1;
    const RandomStream random(1, RandomUse::test);
    for (std::uint32_t s = from; s < from + count; ++s) {
      const double a = 2 * random.uniform(2 * s) - 1, b = 2 * random.uniform(2 * s + 1) - 1;
      parts.x.insert(parts.x.end(), {a, b});
      parts.target.push_back(a * b);
    }
    return RowDataset<double>(std::move(parts));
  };
  KanOptions o = small_options();
  o.precision = Precision::float64;
  o.train.epochs = 60;
  o.train.optimizer.kind = OptimizerKind::lbfgs;
  o.model.hidden = {1};
  const auto rmse_with = [&](std::vector<std::size_t> multiply) {
    o.model.multiply = std::move(multiply);
    const RowSplits source{rows(0, 300), std::nullopt, rows(300, 100), {}};
    const auto session = make_session<KanFamily>(o, source, {.exec = {.threads = 1}});
    session->preflight();
    session->start();
    Events events;
    train(*session, events);
    return session->metrics().test->values.at("rmse");
  };
  const double sum = rmse_with({}), product = rmse_with({1});
  EXPECT_LT(product, 5e-3);
  EXPECT_LT(50 * product, sum);
}

TEST(Session, PreflightNamesWhatDoesNotFit) {
  KanOptions o = small_options();
  o.train.loss_kind = LossKind::binary_cross_entropy;  // targets beyond 0 and 1
  const auto session = make_session<KanFamily>(o, products(), {.exec = {.threads = 1}});
  std::string message;
  try {
    session->preflight();
  } catch (const Exception& e) {
    message = e.what();
  }
  EXPECT_THAT(message, HasSubstr("between 0 and 1"));
  EXPECT_THAT(message, HasSubstr("training data"));
}

TEST(Session, MeasuresAndPredictsNewRows) {
  const RowSplits source = products();
  const auto session = make_session<KanFamily>(small_options(), source, {.exec = {.threads = 1}});
  session->start();
  Events events;
  train(*session, events);
  EXPECT_EQ(session->predict(*source.test).values, session->predict().values);
  EXPECT_EQ(session->measure(*source.test).loss, session->metrics().test->loss);
}

// What products() has, beside `offset`; rows are multiples of 2^-20, so that adding a whole number is exact.
RowSplits products_beside(double offset) {
  RowSplits source = products();
  const auto moved = [&](const RowDataset<double>& rows) {
    RowParts<double> parts = rows.parts();
    const auto move = [&](double& v) { v = std::nearbyint(std::ldexp(v, 20)) / (1 << 20) + offset; };
    std::for_each(parts.x.begin(), parts.x.end(), move);
    std::for_each(parts.target.begin(), parts.target.end(), move);
    return RowDataset<double>(std::move(parts));
  };
  return {moved(source.train), std::nullopt, moved(*source.test), {}};
}

TEST(Session, LearnsTheSameBesideALargeOffset) {
  KanOptions o = small_options();
  o.model.normalise = InputScale::range;
  o.train.epochs = 40;
  std::vector<double> r2;
  for (const double offset : {0.0, 1e9}) {
    const RowSplits source = products_beside(offset);
    const auto session = make_session<KanFamily>(o, source, {.exec = {.threads = 1}});
    session->start();
    Events events;
    train(*session, events);
    r2.push_back(session->metrics().train.values.at("r2"));
    EXPECT_THAT(session->warnings(), testing::Each(testing::Not(HasSubstr("float32")))) << offset;
    const PredictedRows y = session->predict();
    EXPECT_EQ(y.precision, offset == 0 ? Precision::float32 : Precision::float64);
    for (std::size_t s = 0; s < 3; ++s) EXPECT_NEAR(y.values[s], source.test->parts().target[s], 0.5) << offset;
    EXPECT_EQ(session->predict(*source.test).values, y.values);
  }
  EXPECT_GT(r2[0], 0.8);
  EXPECT_NEAR(r2[0], r2[1], 0.02);
}

TEST(Session, WarnsOfWhatItMayNotCentre) {
  KanOptions o = small_options();  // inputs and targets in the units of the data
  o.model.scale_targets = false;
  const auto session = make_session<KanFamily>(o, products_beside(1e9), {.exec = {.threads = 1}});
  session->start();
  EXPECT_THAT(session->warnings(), testing::IsSupersetOf({HasSubstr("input 'x1'"), HasSubstr("target 'y1'")}));
}

TEST(Session, NoticesTrainingDataThatOnlyMoved) {
  KanOptions o = small_options();
  o.model.normalise = InputScale::range;
  const auto at = [&](double offset) {
    return make_session<KanFamily>(o, products_beside(offset), {.exec = {.threads = 1}})->data_fingerprint();
  };
  EXPECT_EQ(at(1e9), at(1e9));
  EXPECT_NE(at(1e9), at(2e9));
}

TEST(Session, CountsRowsOutsideOfTheTrainingRangeAndWarnsOfFarOnes) {
  RowSplits source = products();
  RowParts<double> parts = source.test->parts();
  parts.x = {0.1, 0.2, 1.5, 0.2, 999040, 0.2};
  source.test = RowDataset<double>(parts);
  const auto session = make_session<KanFamily>(small_options(), source, {.exec = {.threads = 1}});
  session->start();
  EXPECT_THAT(session->rows_outside(), ElementsAre(testing::Pair("test", 2u)));
  const auto far = testing::AllOf(HasSubstr("1 of 3"), HasSubstr("x1 is 999040"), HasSubstr("model.outside"));
  EXPECT_THAT(session->warnings(), testing::Contains(testing::AllOf(far, HasSubstr("test rows"))));
  EXPECT_THAT(session->warnings(*source.test, "new rows"), ElementsAre(testing::AllOf(far, HasSubstr("new rows"))));
}

TEST(KanFamily, RefusesCentresThatDoNotFitTheColumns) {
  const auto restore = [](const char* centre) {
    ModelDescription d{{"a", "b", "c"}, {"y"}, {}, {{"inputs", "range"}}};
    d.normalisation["centre"] = nlohmann::json::parse(centre);
    return KanFamily<float>::from_model(small_options(), d).describe().normalisation["centre"];
  };
  EXPECT_EQ(restore(R"({"inputs": [1, 2, 3]})"), nlohmann::json::parse(R"({"inputs": [1, 2, 3]})"));
  for (const char* wrong : {R"({"inputs": [1, 2]})", R"({"targets": ["1"]})", R"({"targets": 7})", R"([1])"})
    EXPECT_THROW(restore(wrong), Exception) << wrong;
}

TEST(Session, WarnsOfDeviceOptionsOnTheCpu) {
  KanOptions o = small_options();
  const auto warnings = [&] {
    const auto session = make_session<KanFamily>(o, products(), {.exec = {.threads = 1}});
    session->start();
    return session->warnings();
  };
  EXPECT_THAT(warnings(), testing::Each(testing::Not(HasSubstr("on the CPU"))));
  o.train.compression.kind = kernels::compress::Compression::half;
  o.train.place = OptimizerPlace::host;
  EXPECT_THAT(warnings(), testing::IsSupersetOf({HasSubstr("optimizer.compress has no effect on the CPU"),
                                                 HasSubstr("optimizer.device has no effect on the CPU")}));
}

}  // namespace
}  // namespace gradloom
