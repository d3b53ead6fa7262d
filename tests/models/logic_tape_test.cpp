// What the tapes of logic models keep between passes: the order of gates, and whether a forward pass came before.
#include <gtest/gtest.h>

#include <vector>

#include "tests/models/logic_support.h"

namespace gradloom {
namespace {

using logic::Automaton;
using test::expect_same;
using test::LogicFixture;
using test::small_automaton;

// The order of gates is kept by the tape; other wires must not meet it.
template <class M>
void expect_new_wires_are_seen(M model) {
  LogicFixture<M> kept(M(model.options()), 5), fresh(M(model.options()), 5);
  const Exec ex({.threads = 2});
  auto tape = model.make_tape(ex, {.batch = 5, .input_gradient = true});
  const auto run = [&] {
    model.forward(ex, {}, kept.arrays(), kept.rows(), tape, kept.y_view());
    model.backward(ex, {.arrays = kept.arrays(),
                        .batch = kept.rows(),
                        .tape = tape,
                        .dl_dy = kept.dl_dy_view(),
                        .gradient = kept.gradient,
                        .dl_dx = View<float, 2>(kept.dl_dx.data(), {5, model.input_width()})});
  };
  run();
  std::vector<float> unused(model.parameters().flat_size());
  for (LogicFixture<M>* f : {&kept, &fresh}) model.initialise(99, unused, f->buffers.span());
  run();
  fresh.forward_backward(ex);
  expect_same(kept, fresh, "other wires");
}

TEST(Automaton, OtherWiresOnTheSameTapeAreSeenByAllThreads) {
  expect_new_wires_are_seen(Automaton<float>(small_automaton(5, 6, 3)));
}

// Nothing of an earlier batch is left in a tape, not even around the grid.
TEST(Automaton, OtherStatesOnTheSameTapeAreSeenByAllThreads) {
  for (const logic::Boundary boundary : {logic::Boundary::periodic, logic::Boundary::zero})
    for (const double fire : {1.0, 0.6})
      for (const bool backward : {true, false}) {
        auto o = small_automaton(3, 5, 4);
        o.boundary = boundary, o.fire_probability = fire;
        LogicFixture<Automaton<float>> before(Automaton<float>(o), 5, test::Logits::mixed, 3),
            kept(Automaton<float>(o), 2), fresh(Automaton<float>(o), 2);
        const Automaton<float>& model = kept.model;
        const Exec ex({.threads = 2});
        auto tape = model.make_tape(ex, {.batch = 5, .backward = backward, .input_gradient = backward});
        auto fresh_tape = model.make_tape(ex, {.batch = 2, .backward = backward, .input_gradient = backward});
        const auto run = [&](LogicFixture<Automaton<float>>& f, logic::AutomatonTape<float>& on) {
          model.forward(ex, {}, f.arrays(), f.rows(), on, f.y_view());
          if (backward)
            model.backward(ex, {.arrays = f.arrays(),
                                .batch = f.rows(),
                                .tape = on,
                                .dl_dy = f.dl_dy_view(),
                                .gradient = f.gradient,
                                .dl_dx = View<float, 2>(f.dl_dx.data(), {f.batch, model.input_width()})});
        };
        run(before, tape);
        run(kept, tape);
        run(fresh, fresh_tape);
        expect_same(kept, fresh, "another batch");
      }
}

TEST(GateClassifier, OtherWiresOnTheSameTapeAreSeenByAllThreads) {
  logic::ClassifierOptions o;
  o.inputs = 40, o.layers = {90, 64, 30}, o.classes = 10, o.tau = 3;
  expect_new_wires_are_seen(logic::GateClassifier<float>(o));
}

TEST(GateClassifier, BackwardNeedsAForwardPassThatWorked) {
  logic::ClassifierOptions o;
  o.inputs = 8, o.layers = {12, 6}, o.classes = 2;
  LogicFixture<logic::GateClassifier<float>> f(logic::GateClassifier<float>(o), 3);
  const Exec ex({.threads = 1});
  auto tape = f.model.make_tape(ex, {.batch = 3});
  const auto backward = [&] {
    f.model.backward(
        ex, {.arrays = f.arrays(), .batch = f.rows(), .tape = tape, .dl_dy = f.dl_dy_view(), .gradient = f.gradient});
  };
  EXPECT_THROW(backward(), Exception);
  f.model.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view());
  backward();
  f.buffers[0] = 1e6f;
  EXPECT_THROW(f.model.forward(ex, {}, f.arrays(), f.rows(), tape, f.y_view()), Exception);
  EXPECT_THROW(backward(), Exception);
}

}  // namespace
}  // namespace gradloom
