// Numbers that graph networks learn: offsets that float32 cannot hold, and similarities.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "gradloom/session/families/graph/family.h"
#include "gradloom/session/families/pairs/family.h"
#include "gradloom/session/session.h"

namespace gradloom {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kTargets = 24;

double wave(std::uint32_t g) { return std::sin(1.3 * g); }

// Paths of 2 to 7 nodes with a feature, and what is to be learned of them.
std::shared_ptr<const GraphSet> paths_with(const std::function<double(std::uint32_t)>& target) {
  GraphSetBuilder set;
  for (std::uint32_t g = 0; g < kTargets; ++g) {
    GraphBuilder b(Direction::undirected);
    const std::vector<double> x{wave(g)};
    for (std::uint32_t v = 0; v < 2 + g % 6; ++v) b.add_node({.features = x}).or_throw();
    for (std::uint32_t v = 1; v < 2 + g % 6; ++v) b.add_edge(v - 1, v, {}).or_throw();
    b.set_target(target(g));
    set.add(b, "g" + std::to_string(g));
  }
  return std::make_shared<const GraphSet>(set.finish());
}

std::shared_ptr<const GraphSet> path_targets(double offset, double scale = 1.0) {
  return paths_with([=](std::uint32_t g) { return offset + scale * wave(g); });
}

GraphOptions target_options(LossKind loss = LossKind::mse) {
  GraphOptions o;
  o.model.task = GraphTask::graph;
  o.model.hidden = {4};
  o.train.epochs = 5;
  o.train.batch = 6;
  o.train.loss_kind = loss;
  o.data.validation = 0.2, o.data.test = 0.2;
  return o;
}

struct Silent : SessionListener {};

std::unique_ptr<Session> trained(const std::shared_ptr<const GraphSet>& set, const GraphOptions& options) {
  auto session = make_session<GraphFamily>(options, set, {.exec = {.threads = 1}});
  session->preflight();
  Silent silent;
  EXPECT_EQ(session->start(), TrainEnd::finished);
  EXPECT_EQ(train(*session, silent), TrainEnd::finished);
  return session;
}

TEST(GraphTargets, AnOffsetChangesNothingButPredictions) {
  // Exact in double, and nothing that float32 could tell apart.
  const double offset = std::ldexp(1.0, 30);
  const auto shifted = [&](double by) {
    return paths_with([=](std::uint32_t g) { return std::round(1024 * wave(g)) / 1024 + by; });
  };
  const auto far = trained(shifted(offset), target_options());
  const double centre = far->describe().normalisation.at("centre").at("targets").at(0).get<double>();
  EXPECT_NEAR(centre, offset, 1.0);
  const auto near = trained(shifted(offset - centre), target_options());
  EXPECT_TRUE(near->describe().normalisation.empty());
  EXPECT_EQ(to_json(far->metrics()), to_json(near->metrics()));
  EXPECT_THAT(far->warnings(), IsEmpty());
  EXPECT_NE(far->data_fingerprint(), near->data_fingerprint());
  const PredictedRows y = far->predict(), without = near->predict();
  EXPECT_EQ(y.precision, Precision::float64);
  ASSERT_FALSE(y.values.empty());
  for (std::size_t i = 0; i < y.values.size(); ++i) EXPECT_EQ(y.values[i], without.values[i] + centre);
}

TEST(GraphTargets, AreMeasuredAsTheFileHasThem) {
  const auto set = path_targets(1e5);
  const auto session = trained(set, target_options());
  const PredictedRows y = session->predict();
  const std::vector<std::string>& ids = y.samples.at(0).names;
  ASSERT_EQ(ids.size(), y.values.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < ids.size(); ++i)
    sum += std::abs(y.values[i] - *set->graphs[std::stoul(ids[i].substr(1))].graph_target());
  // Targets that were rounded to float32 would be 3e-8 from these.
  EXPECT_NEAR(session->metrics().test->values.at("mae"), sum / static_cast<double>(ids.size()), 1e-10);
}

TEST(GraphTargets, WithoutAnOffsetAreNotCentred) {
  const auto centre_of = [](double offset, LossKind loss) {
    const auto session =
        make_session<GraphFamily>(target_options(loss), path_targets(offset, 0.001), {.exec = {.threads = 1}});
    return session->describe().normalisation.contains("centre");
  };
  EXPECT_FALSE(centre_of(0.01, LossKind::mse));
  EXPECT_TRUE(centre_of(0.5, LossKind::mse));
  EXPECT_FALSE(centre_of(0.5, LossKind::binary_cross_entropy)) << "a probability stays one";
}

TEST(GraphTargets, ThatTrainingCannotComputeWithAreRefused) {
  try {
    make_session<GraphFamily>(target_options(), path_targets(0.0, 1e-25), {.exec = {.threads = 1}});
    FAIL() << "differences whose squares are 0";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_input);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("graph 'target'"), HasSubstr("too little for float32"), HasSubstr("scale")));
  }
}

TEST(GraphTargets, ACentreOfClassesIsRefused) {
  ModelDescription about =
      make_session<GraphFamily>(target_options(), path_targets(1e5), {.exec = {.threads = 1}})->describe();
  EXPECT_NEAR(restore_layout(about, GraphTask::graph).target_centre, 1e5, 1.0);
  about.classes = {"a", "b"};
  about.targets.clear();
  EXPECT_THROW(restore_layout(about, GraphTask::graph), Exception);
}

TEST(Similarities, OfDistancesThatAreNotToldApartAreNamed) {
  const auto set = path_targets(0.0);
  const auto warnings = [&](double scale, Precision precision = Precision::float32) {
    DistanceTable distances;
    distances.ids = set->ids;
    for (std::uint32_t a = 0; a < kTargets; ++a)
      for (std::uint32_t b = 0; b < a; ++b) distances.below.push_back(scale * (a + b));
    return similarity_warnings(*set, distances, precision);
  };
  EXPECT_THAT(warnings(1.0), IsEmpty());
  EXPECT_THAT(warnings(1000.0), ElementsAre(AllOf(HasSubstr("pairs have a similarity below 1e-30"), HasSubstr("'g0'"),
                                                  HasSubstr("divide the distances"))));
  EXPECT_THAT(warnings(1e-9), ElementsAre(AllOf(HasSubstr("pair 'similarity'"), HasSubstr("float64"))));
  EXPECT_THAT(warnings(1e-9, Precision::float64), IsEmpty());
}

TEST(Similarities, ThatAreAllTooSmallAreNothingToLearn) {
  const auto set = path_targets(0.0);
  const auto open = [&](double distance) {
    auto distances = std::make_shared<DistanceTable>();
    distances->ids = set->ids;
    distances->below.assign(kTargets * (kTargets - 1) / 2, distance);
    make_session<PairFamily>(PairOptions(), PairSource{set, distances}, {.exec = {.threads = 1}});
  };
  EXPECT_NO_THROW(open(3.0));
  try {
    open(1e6);
    FAIL() << "every target would be 0";
  } catch (const Exception& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("nothing to learn"), HasSubstr("divide the distances")));
  }
}

TEST(Metrics, ThatAreNotFiniteAreNamed) {
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  const PartMetrics fine{1.0, {{"rmse", 1.0}}};
  EXPECT_THAT(metric_warnings(fine, "new data", Precision::float32), IsEmpty());
  const PartMetrics huge{kEndless, {{"rmse", 1e30}}};
  EXPECT_THAT(metric_warnings(huge, "new data", Precision::float32),
              ElementsAre(AllOf(HasSubstr("not finite on new data: loss;"), HasSubstr("too large for float32"),
                                HasSubstr("precision = \"float64\""))));
  PartMetrics none{std::nan(""), {{"mae", std::nan("")}, {"rmse", 2.0}}};
  EXPECT_THAT(
      metric_warnings({fine, none, huge}, Precision::float64),
      ElementsAre(AllOf(HasSubstr("not finite on validation data: loss, mae;"), testing::Not(HasSubstr("precision ="))),
                  HasSubstr("on test data: loss;")));
  none.values.erase("mae"), none.has_loss = false;
  EXPECT_THAT(metric_warnings(none, "new data", Precision::float32), IsEmpty()) << "there is no loss to know";
}

}  // namespace
}  // namespace gradloom
