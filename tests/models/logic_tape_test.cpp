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
    model.backward(ex, {}, kept.arrays(), kept.rows(), tape, kept.dl_dy_view(), kept.gradient.array(),
                   View<float, 2>(kept.dl_dx.data(), {5, model.input_width()}), nullptr);
  };
  run();
  std::vector<float> unused(model.parameters().flat_size());
  for (LogicFixture<M>* f : {&kept, &fresh}) model.initialise(99, unused, f->buffers.span());
  run();
  fresh.forward_backward(ex);
  expect_same(kept, fresh, "other wires");
}

TEST(Automaton, OtherWiresOnTheSameTapeAreSeen) {
  expect_new_wires_are_seen(Automaton<float>(small_automaton(5, 6, 3)));
}

TEST(GateClassifier, OtherWiresOnTheSameTapeAreSeen) {
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
    f.model.backward(ex, {}, f.arrays(), f.rows(), tape, f.dl_dy_view(), f.gradient.array(), {}, nullptr);
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
