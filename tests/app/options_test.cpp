// The options of every family: bound to keys, every one of them, once.
#include "gradloom/session/families/automaton/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "gradloom/app/families/families.h"
#include "gradloom/app/recipe.h"
#include "gradloom/session/families/gates/options.h"
#include "gradloom/session/families/graph/options.h"
#include "gradloom/session/families/kan/options.h"
#include "gradloom/session/families/pairs/options.h"
#include "gradloom/session/families/rewrite/options.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;
using Field = AnyOptionSchema::Field;

// What follows from the data or is no matter of recipes, by its place in the struct.
template <class O, class P, class V>
Field unbound(P (*part)(O&), V std::remove_reference_t<P>::*member) {
  O o;
  const char* at = reinterpret_cast<const char*>(&(part(o).*member));
  return {"", static_cast<std::size_t>(at - reinterpret_cast<const char*>(&o)), sizeof(V)};
}

// Fields that no key sets: gaps between the bound ones that are larger than padding. A bool in the padding is missed.
template <class O>
std::vector<std::pair<std::size_t, std::size_t>> gaps(std::vector<Field> known) {
  std::vector<Field> fields = app::option_schema<O>().fields();
  fields.insert(fields.end(), known.begin(), known.end());
  std::sort(fields.begin(), fields.end(), [](const Field& a, const Field& b) { return a.offset < b.offset; });
  std::vector<std::pair<std::size_t, std::size_t>> found;
  std::size_t end = 0;
  for (const Field& field : fields) {
    EXPECT_GE(field.offset, end) << field.key << " shares its field with another key";
    if (field.offset >= end + 8) found.emplace_back(end, field.offset);
    end = field.offset + field.size;
  }
  if (sizeof(O) >= end + 8) found.emplace_back(end, sizeof(O));
  return found;
}

template <class O>
std::vector<Field> of_training(bool graphs = false) {
  const auto loss = +[](O& o) -> LossOptions& { return o.train.loss; };
  const auto train = +[](O& o) -> TrainingOptions& { return o.train; };
  std::vector<Field> fields{
      unbound(loss, &LossOptions::kind),  // loss_kind goes before it
      unbound(loss, &LossOptions::scale),
      unbound(loss, &LossOptions::samples),
      unbound(loss, &LossOptions::factor),
      unbound<O, TrainingOptions&, Comm*>(train, static_cast<Comm * TrainingOptions::*>(&TrainOptions::comm)),
      unbound<O, O&>([](O& o) -> O& { return o; }, &O::stages)};
  if (!graphs)
    fields.push_back(unbound<O, TrainingOptions&, std::size_t>(
        train, static_cast<std::size_t TrainingOptions::*>(&TrainOptions::parallel_examples)));
  return fields;
}

template <class O>
std::vector<Field> of_rows() {
  std::vector<Field> fields = of_training<O>();
  const auto source = +[](O& o) -> RowSource& { return o.data.source; };
  const auto csv = +[](O& o) -> CsvOptions& { return o.data.source.csv; };
  const auto formula = +[](O& o) -> FormulaOptions& { return o.data.source.formula; };
  for (const Field& field :
       {unbound(source, &RowSource::task), unbound(source, &RowSource::path), unbound(source, &RowSource::format),
        unbound(source, &RowSource::targets), unbound(source, &RowSource::missing_words),
        unbound(source, &RowSource::max_bytes), unbound(source, &RowSource::labels),
        unbound(csv, &CsvOptions::header_names), unbound(csv, &CsvOptions::texts),
        unbound(formula, &FormulaOptions::formulas), unbound(formula, &FormulaOptions::seed)})
    fields.push_back(field);
  return fields;
}

template <class O>
std::vector<Field> of_network(graph::NetworkOptions& (*network)(O&)) {
  using N = graph::NetworkOptions;
  return {unbound(network, &N::inputs), unbound(network, &N::edge_features), unbound(network, &N::sparse),
          unbound(network, &N::limits)};
}

void add(std::vector<Field>& to, const std::vector<Field>& more) { to.insert(to.end(), more.begin(), more.end()); }

TEST(FamilyOptions, EveryFieldOfASplineNetworkHasAKey) {
  std::vector<Field> known = of_rows<KanOptions>();
  known.push_back(unbound<KanOptions, kan::NetworkOptions&>(
      [](KanOptions& o) -> kan::NetworkOptions& { return o.model; }, &kan::NetworkOptions::widths));
  known.push_back(unbound<KanOptions, kan::NetworkOptions&>(
      [](KanOptions& o) -> kan::NetworkOptions& { return o.model; }, &kan::NetworkOptions::keep_zero));
  EXPECT_THAT(gaps<KanOptions>(known), testing::IsEmpty());
}

TEST(FamilyOptions, EveryFieldOfAClassifierOfGatesHasAKey) {
  EXPECT_THAT(gaps<GatesOptions>(of_rows<GatesOptions>()), testing::IsEmpty());
}

TEST(FamilyOptions, EveryFieldOfAnAutomatonHasAKey) {
  using O = AutomatonOptions;
  using M = logic::AutomatonOptions;
  std::vector<Field> known = of_training<O>();
  const auto task = +[](O& o) -> GridTask& { return o.data.task; };
  const auto model = +[](O& o) -> M& { return o.model; };
  add(known, {unbound(task, &GridTask::channels), unbound(task, &GridTask::image), unbound(task, &GridTask::rule),
              unbound(model, &M::height), unbound(model, &M::width), unbound(model, &M::target_channels),
              unbound(model, &M::evaluation), unbound(model, &M::masked), unbound(model, &M::noise_again)});
  EXPECT_THAT(gaps<O>(known), testing::IsEmpty());
}

TEST(FamilyOptions, EveryFieldOfAGraphNetworkHasAKey) {
  using O = GraphOptions;
  std::vector<Field> known = of_training<O>(true);
  const auto features = +[](O& o) -> GraphFeatureOptions& { return o.data.features; };
  const auto model = +[](O& o) -> graph::NetworkOptions& { return o.model; };
  add(known, of_network<O>(model));
  add(known,
      {unbound(model, &graph::NetworkOptions::outputs), unbound(features, &GraphFeatureOptions::max_degree),
       unbound(features, &GraphFeatureOptions::mean), unbound(features, &GraphFeatureOptions::std),
       unbound(features, &GraphFeatureOptions::identities), unbound(features, &GraphFeatureOptions::target_centre)});
  EXPECT_THAT(gaps<O>(known), testing::IsEmpty());
}

TEST(FamilyOptions, EveryFieldOfAPairNetworkHasAKey) {
  using O = PairOptions;
  using N = graph::NetworkOptions;
  std::vector<Field> known = of_training<O>();
  const auto features = +[](O& o) -> GraphFeatureOptions& { return o.data.features; };
  const auto encoder = +[](O& o) -> N& { return o.model.encoder; };
  add(known, of_network<O>(encoder));
  add(known,
      {unbound(encoder, &N::task), unbound(encoder, &N::head_dropout),
       unbound(features, &GraphFeatureOptions::normalise_rows), unbound(features, &GraphFeatureOptions::edge_labels),
       unbound(features, &GraphFeatureOptions::targets_known), unbound(features, &GraphFeatureOptions::max_degree),
       unbound(features, &GraphFeatureOptions::mean), unbound(features, &GraphFeatureOptions::std),
       unbound(features, &GraphFeatureOptions::identities), unbound(features, &GraphFeatureOptions::target_centre)});
  // Pairs have no classes and no table of nodes.
  const auto files = +[](O& o) -> GraphFileOptions& { return o.data; };
  add(known, {unbound(files, &GraphFileOptions::nodes), unbound(files, &GraphFileOptions::graph_folder),
              unbound(files, &GraphFileOptions::class_column), unbound(files, &GraphFileOptions::drop)});
  EXPECT_THAT(gaps<O>(known), testing::IsEmpty());
}

TEST(FamilyOptions, EveryFieldOfARewriterHasAKey) {
  using O = RewriteOptions;
  std::vector<Field> known = of_training<O>();
  const auto set = +[](O& o) -> ExpressionSetOptions& { return o.data.expressions; };
  const auto tree = +[](O& o) -> graph::TreeOptions& { return o.model; };
  add(known, {unbound(set, &ExpressionSetOptions::seed), unbound(tree, &graph::TreeOptions::symbols),
              unbound(tree, &graph::TreeOptions::outputs), unbound(tree, &graph::TreeOptions::most_nodes)});
  EXPECT_THAT(gaps<O>(known), testing::IsEmpty());
}

TEST(FamilyOptions, UnknownNamesAreErrorsForEveryChoiceOfEveryFamily) {
  for (const std::string& family : app::recipe_families()) {
    std::size_t choices = 0;
    for (const SchemaKey& key : app::recipe_schema(family).keys()) {
      if (key.choices.empty()) continue;
      ++choices;
      const std::vector<std::string> overrides = {"family=" + family, key.path + "=nonsense"};
      const auto recipe = app::parse_recipe("", "test", overrides);
      ASSERT_FALSE(recipe.ok()) << family << ' ' << key.path;
      EXPECT_THAT(recipe.error().message, HasSubstr("nonsense")) << family << ' ' << key.path;
      EXPECT_THAT(recipe.error().message, HasSubstr(key.choices.back())) << family << ' ' << key.path;
    }
    EXPECT_GE(choices, 8u) << family;
  }
  EXPECT_THROW(app::recipe_options("nonsense"), Exception);
}

TEST(FamilyOptions, ARecipeWithoutKeysIsADefaultStruct) {
  const auto read = []<class O>(const char* family) {
    const std::vector<std::string> overrides = {"family=" + std::string(family)};
    return app::option_schema<O>().read(app::parse_recipe("", "test", overrides).or_throw());
  };
  const auto kan = read.operator()<KanOptions>("kan");
  EXPECT_EQ(kan.family, KanOptions().family);
  EXPECT_EQ(kan.model.grid, kan::NetworkOptions().grid);
  EXPECT_EQ(kan.train.optimizer.lr, OptimizerOptions().lr);
  const auto automaton = read.operator()<AutomatonOptions>("automaton");
  EXPECT_EQ(automaton.model.update, AutomatonOptions().model.update);
  EXPECT_EQ(automaton.train.optimizer.clip_value, 100.0);
}

TEST(FamilyOptions, TheLossFollowsFromTheTaskUnlessItIsChosen) {
  KanOptions o;
  EXPECT_EQ(train_options(o).loss.kind, LossKind::mse);
  o.task = Task::classification;
  EXPECT_EQ(train_options(o).loss.kind, LossKind::cross_entropy);
  o.train.loss_kind = LossKind::huber;
  EXPECT_EQ(train_options(o).loss.kind, LossKind::huber);
}

}  // namespace
}  // namespace gradloom::test
