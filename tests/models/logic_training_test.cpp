// What logic models tell the trainer on the way, and that training does not depend on threads or variant.
#include <gtest/gtest.h>

#include "gradloom/data/rows.h"
#include "gradloom/train/trainer.h"
#include "tests/models/counting_sink.h"
#include "tests/models/logic_support.h"

namespace gradloom {
namespace {

using logic::Automaton;
using logic::AutomatonOptions;
using test::CountingSink;
using test::LogicFixture;
using test::same_bits;
using test::small_automaton;

template <class M>
void expect_sink_and_modes(M model) {
  LogicFixture<M> f(model, 5), plain(model, 5);
  plain.forward_backward(Exec({.threads = 1}));
  std::vector<std::uint8_t> frozen(f.model.parameters().size(), 0);
  frozen[1] = 1;
  CountingSink sink(f.gradient.size());
  Step step;
  step.frozen = frozen;
  for (auto& g : f.gradient.span()) g = 123;
  f.forward_backward(Exec({.threads = 3}), step, &sink);
  for (std::size_t s = 0; s < f.model.parameters().size(); ++s)
    for_each_logical(f.model.parameters()[s], [&](std::size_t i) {
      EXPECT_EQ(sink.seen(i), frozen[s] ? 0 : 1);
      if (frozen[s])
        EXPECT_EQ(f.gradient[i], 123);
      else
        EXPECT_EQ(f.gradient[i], plain.gradient[i]);
    });
  step = {};
  step.gradient_is = GradientIs::partial;
  Buffer<typename M::Scalar> once(plain.gradient.size());
  std::copy_n(plain.gradient.data(), once.size(), once.data());
  plain.forward_backward(Exec({.threads = 1}), step);
  step.gradient = GradientMode::accumulate, step.gradient_is = GradientIs::complete, step.leaf = 1;
  plain.forward_backward(Exec({.threads = 1}), step);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(plain.gradient[i], once[i] + once[i]);
}

TEST(Automaton, SinkHearsOfEveryElementOnceInAllThreadsAndGradientsAccumulate) {
  expect_sink_and_modes(Automaton<float>(small_automaton(5, 5, 2)));
}

TEST(GateClassifier, SinkHearsOfEveryElementOnceInAllThreadsAndGradientsAccumulate) {
  logic::ClassifierOptions o;
  o.inputs = 10, o.layers = {20, 20, 12}, o.classes = 3;
  expect_sink_and_modes(logic::GateClassifier<float>(o));
}

// Ninety-six samples per update in every case.
TEST(GateClassifier, BatchesAndPiecesOfWholeLeavesGiveTheSameBits) {
  logic::ClassifierOptions o;
  o.inputs = 10, o.layers = {300, 300, 12}, o.classes = 3;
  const logic::GateClassifier<float> model(o);
  RowParts<float> parts;
  parts.size = 2 * 96 + 40, parts.features = model.input_width();
  const RandomStream random(4, RandomUse::data);
  for (std::uint32_t i = 0; i < parts.size * parts.features; ++i)
    parts.x.push_back(random.uniform(i) < 0.5 ? 0.f : 1.f);
  for (std::uint32_t i = 0; i < parts.size; ++i) parts.label.push_back(i % 3);
  parts.class_names = {"a", "b", "c"};
  const RowDataset<float> data(std::move(parts));
  const auto train = [&](ExecOptions where, TrainOptions options) {
    const Exec ex(where);
    auto state = initial_state(model, 9);
    options.epochs = 3, options.loss.kind = LossKind::cross_entropy;
    Trainer(ex, model, data, options, state).run();
    return state;
  };
  const auto expected = train({.threads = 1, .variant = Variant::reference}, {.batch = 96});
  for (const TrainOptions& how :
       {TrainOptions{.batch = 96}, TrainOptions{.batch = 32, .accumulate = 3},
        TrainOptions{.batch = 96, .parallel_examples = 64}, TrainOptions{.batch = 96, .fused = FusedUpdate::off}})
    for (const unsigned threads : {1u, 3u})
      EXPECT_TRUE(same_bits(expected.parameters, train({.threads = threads}, how).parameters))
          << how.batch << " samples in pieces of " << how.parallel_examples << ", threads " << threads;
}

TEST(Automaton, TrainingGivesTheSameWeightsWithAnyNumberOfThreadsAndByTheReference) {
  for (const double fire : {1.0, 0.6}) {
    AutomatonOptions o = small_automaton(5, 6, 3);
    o.fire_probability = fire;
    const Automaton<float> model(o);
    RowParts<float> parts;
    parts.size = 12, parts.features = model.input_width(), parts.targets = model.output_width();
    const RandomStream random(4, RandomUse::data);
    for (std::uint32_t i = 0; i < parts.size * parts.features; ++i)
      parts.x.push_back(random.uniform(i) < 0.5 ? 0.f : 1.f);
    for (std::uint32_t i = 0; i < parts.size * parts.targets; ++i) parts.target.push_back(static_cast<float>(i % 2));
    const RowDataset<float> data(std::move(parts));
    const auto train = [&](ExecOptions where, std::vector<double>& losses) {
      const Exec ex(where);
      auto state = initial_state(model, 9);
      TrainOptions options;
      options.epochs = 5, options.batch = 4, options.seed = 1;
      options.optimizer = {
          .kind = OptimizerKind::adamw, .lr = 0.05, .beta2 = 0.99, .weight_decay = 1e-2, .clip_value = 100};
      options.loss.reduction = Reduction::sum;
      Trainer<Automaton<float>, RowDataset<float>> trainer(ex, model, data, options, state);
      trainer.run({.after_epoch = [&](const EpochReport& r) {
        losses.push_back(r.loss);
        return Continue::yes;
      }});
      return state;
    };
    std::vector<double> losses;
    const auto one = train({.threads = 1}, losses);
    EXPECT_EQ(losses.size(), 5u);
    for (const ExecOptions where : {ExecOptions{.threads = 2}, ExecOptions{.threads = 3}, ExecOptions{.threads = 8},
                                    ExecOptions{.threads = 1, .variant = Variant::reference}}) {
      std::vector<double> others;
      const auto many = train(where, others);
      EXPECT_TRUE(same_bits(one.parameters, many.parameters)) << where.threads;
      EXPECT_EQ(losses, others);
    }
  }
}

}  // namespace
}  // namespace gradloom
