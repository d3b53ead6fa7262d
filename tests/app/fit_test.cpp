// gradloom/gradloom.h: networks on data in memory, and their files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "gradloom/app/families/families.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/run/run.h"
#include "gradloom/gradloom.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kFitRows = 150;

// Three features, a target and a class of each row.
struct FitData {
  std::vector<double> x, y;
  std::vector<std::string> names;
  std::vector<int> labels;

  FitData() {
    for (std::size_t s = 0; s < kFitRows; ++s) {
      const double t = static_cast<double>(s), a = std::sin(t), b = std::cos(1.7 * t), c = std::sin(0.3 * t + 1);
      x.insert(x.end(), {a, b, c});
      y.push_back(a * b + c);
      labels.push_back(a + b > 0 ? c > 0 ? 10 : 9 : -1);
      names.push_back(labels.back() == 10 ? "high" : labels.back() == 9 ? "middle" : "low");
    }
  }
};

const SessionOptions kOneThread{.exec = {.threads = 1}};

KanOptions small_kan() {
  KanOptions o;
  o.train.epochs = 5;
  o.train.batch = 32;
  o.model.hidden = {3};
  o.model.normalise = InputScale::range;
  return o;
}

GatesOptions small_gates() {
  GatesOptions o;
  o.train.epochs = 5;
  o.model.gates = {24, 12};
  return o;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  return "no exception";
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Parameters and buffers of a file, without their metadata.
std::map<std::string, std::string> tensors_of(const std::filesystem::path& path) {
  std::map<std::string, std::string> tensors;
  const TensorFile file = read_safetensors(path).or_throw();
  for (const Tensor& t : file.tensors())
    if (t.name.starts_with("parameters/") || t.name.starts_with("buffers/"))
      tensors[t.name] = std::string(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
  return tensors;
}

// What `gradloom train` learns from the same rows in a table, and what fit() learned.
template <class Label>
void expect_bits_of_a_run(const FittedModel& model, const std::vector<double>& x, const std::vector<Label>& y,
                          const std::string& recipe) {
  const Scratch scratch;
  {
    std::ofstream table(scratch / "table.csv");
    table << "a,b,c,y\n";
    for (std::size_t s = 0; s < y.size(); ++s)
      table << fmt::format("{},{},{},{}\n", x[3 * s], x[3 * s + 1], x[3 * s + 2], y[s]);
  }
  const Config config =
      app::parse_recipe(recipe + "\n[data]\npath = \"table.csv\"\ntarget = \"y\"\n", "r", {}).or_throw();
  app::RunOptions options;
  options.exec.threads = 1;
  options.data_root = scratch.path();
  app::train(config, scratch / "run", options).or_throw();
  model.save(scratch / "m.safetensors");
  const auto learned = tensors_of(scratch / "m.safetensors");
  EXPECT_FALSE(learned.empty());
  EXPECT_EQ(learned, tensors_of(scratch / "run/checkpoint/last.safetensors"));
}

TEST(Fit, HasTheBitsOfARunOnTheSameTable) {
  const FitData data;
  const FitOptions more{.session = kOneThread};
  const std::string kan = "epochs = 5\nmodel.hidden = [3]\nmodel.normalise = \"range\"\ntrain.batch = 32\n";
  expect_bits_of_a_run(fit({data.x, 3}, data.y, small_kan(), more), data.x, data.y, kan);
  expect_bits_of_a_run(fit({data.x, 3}, data.labels, small_kan(), more), data.x, data.labels,
                       kan + "task = \"classification\"\n");
  KanOptions stages = small_kan();
  stages.precision = Precision::float64;
  stages.stages.assign(2, stages);
  stages.stages[1].model.grid = 9;
  expect_bits_of_a_run(fit({data.x, 3}, data.y, stages, more), data.x, data.y,
                       kan + "precision = \"float64\"\n[[stage]]\n[[stage]]\ngrid = 9\n");
  expect_bits_of_a_run(fit({data.x, 3}, data.names, small_gates(), more), data.x, data.names,
                       "family = \"gates\"\nepochs = 5\nmodel.gates = [24, 12]\n");
}

TEST(Fit, ReadsFloatsAndStrides) {
  const FitData data;
  std::vector<double> padded;
  for (std::size_t s = 0; s < kFitRows; ++s)
    padded.insert(padded.end(), {data.x[3 * s], data.x[3 * s + 1], data.x[3 * s + 2], std::nan("")});
  const FitOptions more{.session = kOneThread};
  const auto dense = fit({data.x, 3}, data.y, small_kan(), more);
  const auto strided = fit(View<const double, 2>(padded.data(), {kFitRows, 3}, {4, 1}), data.y, small_kan(), more);
  EXPECT_EQ(dense.predict({data.x, 3}).values, strided.predict({data.x, 3}).values);
  const std::vector<float> x(data.x.begin(), data.x.end()), y(data.y.begin(), data.y.end());
  EXPECT_EQ(fit({x, 3}, y, small_kan(), more).predict({x, 3}).rows, kFitRows);
}

TEST(Fit, PredictsSeveralTargetsByName) {
  const FitData data;
  std::vector<double> two;
  for (double y : data.y) two.insert(two.end(), {y, -y});
  std::vector<std::uint64_t> epochs;
  const auto model = fit({data.x, 3}, {two, 2}, small_kan(),
                         {.features = {"a", "b", "c"},
                          .targets = {"up", "down"},
                          .after_epoch = [&](const EpochReport& e) { epochs.push_back(e.position.epoch); },
                          .session = kOneThread});
  EXPECT_THAT(epochs, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(model.features(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(model.targets(), ElementsAre("up", "down"));
  const Prediction p = model.predict({data.x, 3});
  EXPECT_THAT(p.names, ElementsAre("up", "down"));
  EXPECT_EQ(p.values.size(), 2 * kFitRows);
  EXPECT_TRUE(p.label.empty());
  EXPECT_EQ(p(7, 1), p.values[15]);
  EXPECT_TRUE(model.metrics().validation && model.metrics().test);
  EXPECT_EQ(model.predict({std::vector<double>(), 3}).rows, 0u);
}

TEST(Fit, GivesProbabilitiesThatAgreeWithTheAccuracy) {
  const FitData data;
  KanOptions binary = small_kan();
  binary.train.loss_kind = LossKind::binary_cross_entropy;
  std::vector<int> two;
  for (int label : data.labels) two.push_back(label > 0);
  const auto check = [&](const FittedModel& model, const auto& truth) {
    const Prediction p = model.predict({data.x, 3});
    ASSERT_EQ(p.label.size(), kFitRows);
    std::size_t right = 0;
    for (std::size_t s = 0; s < kFitRows; ++s) {
      double sum = 0.0;
      for (std::size_t c = 0; c < p.columns; ++c) sum += p(s, c);
      EXPECT_NEAR(sum, 1.0, 1e-12);
      for (std::size_t c = 0; c < p.columns; ++c) EXPECT_LE(p(s, c), p(s, p.label[s]));
      right += p.names[p.label[s]] == fmt::format("{}", truth[s]);
    }
    EXPECT_DOUBLE_EQ(model.measure({data.x, 3}, truth).values.at("accuracy"),
                     static_cast<double>(right) / static_cast<double>(kFitRows));
  };
  const FitOptions more{.session = kOneThread};
  const auto numbered = fit({data.x, 3}, data.labels, small_kan(), more);
  EXPECT_THAT(numbered.classes(), ElementsAre("-1", "9", "10"));
  check(numbered, data.labels);
  check(fit({data.x, 3}, two, binary, more), two);
  check(fit({data.x, 3}, data.names, small_gates(), more), data.names);
}

TEST(Fit, TakesNamesThreadsAndACallback) {
  const std::vector<double> x{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, y{1, 2, 3};
  KanOptions options;
  options.train.epochs = 2;
  options.train.batch = 0;
  testing::internal::CaptureStdout();
  std::atomic<bool> stop = false;
  const auto model = gradloom::fit({x, 2}, y, options,
                                   {.features = {"rooms", "area"},
                                    .after_epoch = [](const gradloom::EpochReport& e) { std::printf("%g\n", e.loss); },
                                    .session = {.exec = {.threads = 2}, .stop = &stop}});
  EXPECT_NE(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(model.features(), ElementsAre("rooms", "area"));
}

TEST(Fit, StopsWhenItIsTold) {
  const FitData data;
  std::atomic<bool> stop = false;
  std::size_t epochs = 0;
  FitOptions more{.after_epoch = [&](const EpochReport&) { stop = ++epochs == 2; }, .session = kOneThread};
  more.session.stop = &stop;
  const auto model = fit({data.x, 3}, data.y, small_kan(), more);
  EXPECT_EQ(epochs, 2u);
  EXPECT_EQ(model.session().position().epoch, 2u);
  EXPECT_EQ(model.predict({data.x, 3}).rows, kFitRows);
  stop = true;
  KanOptions starts = small_kan();
  starts.train.restarts = 3;
  EXPECT_EQ(fit({data.x, 3}, data.y, starts, more).predict({data.x, 3}).rows, kFitRows);
}

TEST(Fit, RefusesWhatDoesNotFitAndNamesIt) {
  const FitData data;
  const KanOptions kan = small_kan();
  const FitOptions more{.session = kOneThread};
  const auto refusal = [&](std::vector<double> x, std::size_t columns, const TargetView& y) {
    return message_of([&] { fit({x, columns}, y, kan, more); });
  };
  std::vector<double> holes = data.x;
  holes[3 * 4 + 1] = std::nan("");
  EXPECT_EQ(refusal(holes, 3, data.y), "x: the value in row 4, column 1 (from 0) is nan; it must be finite");
  std::vector<double> endless = data.y;
  endless[2] = -INFINITY;
  EXPECT_EQ(refusal(data.x, 3, endless), "y: the value in row 2, column 0 (from 0) is -inf; it must be finite");
  EXPECT_EQ(refusal(data.x, 4, data.y), "450 values are not a multiple of 4 columns");
  EXPECT_EQ(refusal(data.x, 0, data.y), "a matrix of 0 columns has no values");
  EXPECT_EQ(refusal(data.x, 1, data.y), "y has 150 rows, x has 450");
  EXPECT_EQ(refusal({}, 3, std::vector<double>()), "x has 0 rows and 3 columns; there is nothing to learn from");
  EXPECT_EQ(refusal({1, 2}, 1, std::vector<int>{4, 4}), "every sample has the class '4'; there is nothing to learn");
  EXPECT_EQ(refusal({1, 2}, 2, std::vector<int>{4}), "every sample has the class '4'; there is nothing to learn");
  EXPECT_THAT(message_of([&] { fit({data.x, 3}, data.y, GatesOptions(), more); }), HasSubstr("y holds numbers"));
  EXPECT_EQ(message_of([&] {
              fit({data.x, 3}, data.y, kan, {.features = {"a"}});
            }),
            "x has 3 columns, features has names for 1");
  EXPECT_EQ(message_of([&] {
              fit({data.x, 3}, data.y, kan, {.targets = {"a", "b"}});
            }),
            "y has 1 columns, targets has names for 2");
  EXPECT_THAT(message_of([&] { fit({data.x, 3}, data.names, kan, {.targets = {"a"}}); }), HasSubstr("y holds classes"));
  std::vector<double> weights(kFitRows, 1.0);
  weights[3] = -1;
  EXPECT_EQ(message_of([&] {
              fit({data.x, 3}, data.y, kan, {.weights = weights});
            }),
            "weights: the weight of row 3 (from 0) is -1; it must be 0 or more");
}

TEST(Fit, RefusesOptionsThatNoRecipeCouldHave) {
  const FitData data;
  const auto refusal = [&](auto change) {
    KanOptions o = small_kan();
    change(o);
    return message_of([&] { fit({data.x, 3}, data.y, o, {.session = kOneThread}); });
  };
  EXPECT_THAT(refusal([](KanOptions& o) { o.model.grid = 0; }), HasSubstr("options: 'model.grid' is 0"));
  EXPECT_THAT(refusal([](KanOptions& o) { o.train.optimizer.lr = -1; }), HasSubstr("options: 'optimizer.lr' is -1"));
  EXPECT_THAT(refusal([](KanOptions& o) { o.data.validation = 0.6, o.data.test = 0.5; }),
              HasSubstr("leave nothing to train on"));
  EXPECT_THAT(refusal([](KanOptions& o) {
                o.stages.assign(2, o);
                o.stages[1].model.hidden = {0};
              }),
              HasSubstr("options: 'model.hidden' is 0"));
}

TEST(Fit, LearnsFromASingleRow) {
  KanOptions options = small_kan();
  options.train.batch = 0;
  const auto model = fit({std::vector{0.5, 0.1}, 2}, std::vector{3.0}, options, {.session = kOneThread});
  EXPECT_NEAR(model.predict({std::vector{0.5, 0.1}, 2})(0, 0), 3.0, 0.5);
}

TEST(Fit, RefusesNewRowsOfAnotherShape) {
  const FitData data;
  const FitOptions more{.session = kOneThread};
  const auto numbers = fit({data.x, 3}, data.y, small_kan(), more);
  EXPECT_EQ(message_of([&] { numbers.predict({data.x, 2}); }), "x has 2 columns, the model 3 features");
  EXPECT_EQ(message_of([&] {
              numbers.measure({data.x, 3}, data.labels);
            }),
            "y holds classes, the model predicts numbers");
  EXPECT_EQ(message_of([&] { numbers.measure({data.x, 3}, std::vector<double>(4)); }), "y has 4 rows, x has 150");
  const auto classes = fit({data.x, 3}, data.names, small_kan(), more);
  EXPECT_EQ(message_of([&] {
              classes.measure({std::vector<double>(3), 3}, std::vector<std::string>{"odd"});
            }),
            "y: the class 'odd' of row 0 (from 0) is not one of the model's: high, low, middle");
}

TEST(ModelFile, PredictsWithEqualBits) {
  const FitData data;
  const Scratch scratch;
  const FitOptions more{.features = {"a", "b", "ü"}, .session = kOneThread};
  KanOptions stages = small_kan();
  stages.model.knots = kan::Knots::free;
  stages.precision = Precision::float64;
  stages.stages.assign(2, stages);
  stages.stages[1].model.grid = 9;
  GatesOptions wide = small_gates();
  wide.precision = Precision::float64;
  std::vector<FittedModel> models;
  models.push_back(fit({data.x, 3}, data.y, small_kan(), more));
  models.push_back(fit({data.x, 3}, data.y, stages, more));
  models.push_back(fit({data.x, 3}, data.names, small_kan(), more));
  models.push_back(fit({data.x, 3}, data.names, small_gates(), more));
  models.push_back(fit({data.x, 3}, data.labels, wide, more));
  for (const FittedModel& model : models) {
    model.save(scratch / "m.safetensors");
    const FittedModel again = load(scratch / "m.safetensors", kOneThread);
    const Prediction before = model.predict({data.x, 3}), after = again.predict({data.x, 3});
    EXPECT_EQ(before.values, after.values);
    EXPECT_EQ(before.label, after.label);
    EXPECT_EQ(before.names, after.names);
    EXPECT_THAT(again.features(), ElementsAre("a", "b", "ü"));
    EXPECT_THAT(message_of([&] { again.metrics(); }), HasSubstr("has no data"));
    again.save(scratch / "again.safetensors");
    EXPECT_EQ(bytes_of(scratch / "m.safetensors"), bytes_of(scratch / "again.safetensors"));
  }
}

TEST(ModelFile, KeepsTheCentresOfColumns) {
  const Scratch scratch;
  FitData data;
  for (double& v : data.x) v += 1e9;
  for (double& v : data.y) v -= 1e9;
  const auto model = fit({data.x, 3}, data.y, small_kan(), {.session = kOneThread});
  model.save(scratch / "m.safetensors");
  const auto loaded = load(scratch / "m.safetensors", kOneThread);
  EXPECT_EQ(loaded.predict({data.x, 3}).values, model.predict({data.x, 3}).values);
  EXPECT_NEAR(loaded.predict({data.x, 3}).values[0], data.y[0], 3);
}

TEST(ModelFile, SaysWhatItIs) {
  const FitData data;
  const Scratch scratch;
  fit({data.x, 3}, data.labels, small_gates(), {.session = kOneThread}).save(scratch / "m.safetensors");
  const TensorFile file = read_safetensors(scratch / "m.safetensors").or_throw();
  const auto entry = [&](const char* key) { return nlohmann::json::parse(file.metadata().at(key)); };
  EXPECT_EQ(entry("format"), "gradloom-model");
  EXPECT_EQ(entry("version"), 2);
  EXPECT_EQ(entry("family"), "gates");
  EXPECT_EQ(entry("precision"), "float32");
  EXPECT_EQ(entry("options")["model"]["gates"], nlohmann::json({24, 12}));
  EXPECT_EQ(entry("features"), nlohmann::json({"x1", "x2", "x3"}));
  EXPECT_EQ(entry("targets"), nlohmann::json::array());
  EXPECT_EQ(entry("classes"), nlohmann::json({"-1", "9", "10"}));
  EXPECT_EQ(entry("normalisation")["bits"][0]["feature"], 0);
  EXPECT_EQ(entry("input")["features"][2]["name"], "x3");
  EXPECT_EQ(entry("ranges").size(), 3u);
  EXPECT_EQ(entry("training")["finished"], true);
  EXPECT_EQ(entry("circuit")["kind"], "circuit");
}

// The file with one entry of its metadata replaced.
void rewrite(const std::filesystem::path& from, const std::filesystem::path& to, const char* key, const char* value) {
  const TensorFile file = read_safetensors(from).or_throw();
  std::vector<TensorView> tensors;
  for (const Tensor& t : file.tensors()) tensors.push_back({t.name, t.dtype, t.shape, t.bytes, 0});
  Metadata metadata = file.metadata();
  metadata[key] = value;
  write_safetensors(to, tensors, metadata).or_throw();
}

TEST(ModelFile, OfVersionOneIsStillRead) {
  const FitData data;
  const Scratch scratch;
  for (const bool gates : {false, true}) {
    const FittedModel model = gates ? fit({data.x, 3}, data.names, small_gates(), {.session = kOneThread})
                                    : fit({data.x, 3}, data.y, small_kan(), {.session = kOneThread});
    model.save(scratch / "new");
    const TensorFile file = read_safetensors(scratch / "new").or_throw();
    std::vector<TensorView> tensors;
    for (const Tensor& t : file.tensors()) tensors.push_back({t.name, t.dtype, t.shape, t.bytes, 0});
    Metadata metadata = file.metadata();
    metadata["version"] = "1";
    for (const char* key : {"input", "ranges", "training", "circuit"}) metadata.erase(key);
    write_safetensors(scratch / "old", tensors, metadata).or_throw();
    EXPECT_EQ(load(scratch / "old", kOneThread).predict({data.x, 3}).values, model.predict({data.x, 3}).values);
  }
}

TEST(ModelFile, RefusesForeignAndDamagedFiles) {
  const FitData data;
  const Scratch scratch;
  const auto good = scratch / "good.safetensors", bad = scratch / "bad.safetensors";
  const FittedModel model = fit({data.x, 3}, data.names, small_gates(), {.session = kOneThread});
  model.save(good);
  EXPECT_THAT(message_of([&] { load(scratch / "none"); }), HasSubstr("none"));
  std::ofstream(bad) << "x,y\n1,2\n";
  EXPECT_THAT(message_of([&] { load(bad); }), HasSubstr("bad.safetensors"));
  std::ofstream(bad, std::ios::binary) << bytes_of(good).substr(0, 1000);
  EXPECT_THAT(message_of([&] { load(bad); }), HasSubstr("bad.safetensors"));
  model.session().save(bad, 0).or_throw();
  EXPECT_THAT(message_of([&] { load(bad); }),
              HasSubstr("is not a gradloom model: its format is \"gradloom-checkpoint\""));

  const auto refusal = [&](const char* key, const char* value) {
    rewrite(good, bad, key, value);
    const std::string message = message_of([&] { load(bad, kOneThread); });
    EXPECT_THAT(message, HasSubstr("bad.safetensors"));
    return message;
  };
  EXPECT_THAT(refusal("version", "3"), HasSubstr("has format version 3; this program reads versions 1 to 2"));
  EXPECT_THAT(refusal("family", "\"gaits\""), HasSubstr("a model of family \"gaits\" cannot be stored"));
  EXPECT_THAT(refusal("family", "\"graph\""), HasSubstr("options"));
  EXPECT_THAT(refusal("family", "\"kan\""), HasSubstr("options"));
  EXPECT_THAT(refusal("precision", "\"float64\""), HasSubstr("contradict its options"));
  EXPECT_THAT(refusal("precision", "3"), HasSubstr("'precision' is not a string"));
  EXPECT_THAT(refusal("options", "{\"family\": \"gates\", \"model\": {\"gates\": [24, 24]}}"),
              HasSubstr("another shape"));
  EXPECT_THAT(refusal("options", "{\"family\": \"gates\", \"model\": {\"gates\": [24, 9000000000000000000]}}"),
              HasSubstr("9000000000000000000"));
  EXPECT_THAT(refusal("options", "[]"), HasSubstr("must be an object"));
  EXPECT_THAT(refusal("options", "{"), HasSubstr("'options'"));
  EXPECT_THAT(refusal("features", "{}"), HasSubstr("'features' is not a list"));
  EXPECT_THAT(refusal("features", "[1, 2, 3]"), HasSubstr("not a string"));
  EXPECT_THAT(refusal("features", "[\"a\"]"), HasSubstr("'ranges' is not a list of 1 pairs"));
  EXPECT_THAT(refusal("classes", "[]"), HasSubstr("0 classes"));
  EXPECT_THAT(refusal("classes", "[\"a\", \"b\", \"c\", \"d\", \"e\"]"), HasSubstr("another shape"));
  EXPECT_THAT(refusal("targets", "[\"y\"]"), HasSubstr("1 targets"));
  EXPECT_THAT(refusal("normalisation", "null"), HasSubstr("'normalisation' is damaged"));
  EXPECT_THAT(refusal("normalisation", "{\"bits\": []}"), HasSubstr("has no bits"));
  EXPECT_THAT(refusal("normalisation", "{\"bits\": [{\"feature\": -1, \"threshold\": 0, \"name\": \"\"}]}"),
              HasSubstr("'feature' is -1, not a whole number from 0 to 2"));
  EXPECT_THAT(refusal("normalisation", "{\"bits\": [{\"feature\": 0, \"threshold\": 0, \"name\": \"\"}]}"),
              HasSubstr("bad.safetensors"));
  EXPECT_THAT(refusal("colour", "1"), HasSubstr("the entry 'colour'"));
  EXPECT_THAT(refusal("input", "[]"), HasSubstr("'input' is not an object"));
  EXPECT_THAT(refusal("input", "{\"header\": false}"), HasSubstr("there is no 'columns'"));
  EXPECT_THAT(refusal("input", "{\"header\": 1, \"columns\": [], \"features\": []}"), HasSubstr("'header'"));
  EXPECT_THAT(refusal("input", "{\"header\": false, \"columns\": [], \"features\": []}"), HasSubstr("0 features"));
  EXPECT_THAT(refusal("ranges", "[[0, 1], [0, 1], [1, 0]]"), HasSubstr("[low, high]"));
  EXPECT_THAT(refusal("ranges", "[[0, 1], [0, 1], [0, \"a\"]]"), HasSubstr("[low, high]"));
  EXPECT_THAT(refusal("training", "{\"epochs\": 1.5, \"finished\": true}"), HasSubstr("'epochs'"));
  EXPECT_THAT(refusal("training", "{\"epochs\": 1}"), HasSubstr("'finished'"));
  EXPECT_THAT(refusal("circuit", "{}"), HasSubstr("'circuit' is not the hard circuit of the parameters"));
}

TEST(ModelFile, HasAsManyOutputsAsNames) {
  const FitData data;
  const Scratch scratch;
  fit({data.x, 3}, data.y, small_kan(), {.session = kOneThread}).save(scratch / "good");
  const char* options =
      R"({"task": "classification", "loss": {"kind": "binary-cross-entropy"}, "model": {"hidden": [3]}})";
  rewrite(scratch / "good", scratch / "task", "options", options);
  EXPECT_THAT(message_of([&] { load(scratch / "task", kOneThread); }),
              HasSubstr("task: options.task is \"classification\", but it has 0 classes"));
  rewrite(scratch / "task", scratch / "targets", "targets", "[]");
  rewrite(scratch / "targets", scratch / "one", "classes", R"(["a"])");
  EXPECT_THAT(message_of([&] { load(scratch / "one", kOneThread); }), HasSubstr("one: a model of rows has"));
  rewrite(scratch / "targets", scratch / "two", "classes", R"(["a", "b"])");  // which one logit is enough for
  EXPECT_EQ(load(scratch / "two", kOneThread).predict({data.x, 3}).columns, 2u);
}

TEST(ModelFile, AllocatesNothingForWidthsThatItsTensorsDoNotHave) {
  const FitData data;
  const Scratch scratch;
  fit({data.x, 3}, data.y, small_kan(), {.session = kOneThread}).save(scratch / "good");
  for (const char* hidden : {"[4]", "[4000000000]", "[4000000000, 4000000000]", "[9000000000000000000]"}) {
    rewrite(scratch / "good", scratch / "bad", "options",
            fmt::format("{{\"model\": {{\"hidden\": {}}}}}", hidden).c_str());
    EXPECT_THAT(message_of([&] { load(scratch / "bad", kOneThread); }), HasSubstr("bad: "));
  }
}

TEST(ModelFile, SurvivesRandomDamage) {
  const FitData data;
  const Scratch scratch;
  const FitOptions more{.session = kOneThread};
  std::vector<std::string> files;
  fit({data.x, 3}, data.y, small_kan(), more).save(scratch / "kan");
  fit({data.x, 3}, data.names, small_gates(), more).save(scratch / "gates");
  for (const char* name : {"kan", "gates"}) {
    const std::string bytes = bytes_of(scratch / name);
    for (std::uint32_t i = 0; i < 150; ++i) {
      std::ofstream(scratch / "bad", std::ios::binary) << mutate(bytes, 5, i);
      try {
        const Prediction p = load(scratch / "bad", kOneThread).predict({std::vector<double>(6), 3});
        EXPECT_EQ(p.rows, 2u);
      } catch (const Exception&) {
      }
    }
  }
}

TEST(ModelFile, CannotHoldNamesThatAreNotUtf8) {
  const FitData data;
  const Scratch scratch;
  const auto model = fit({data.x, 3}, data.y, small_kan(), {.features = {"a", "b", "\xff"}, .session = kOneThread});
  EXPECT_EQ(message_of([&] { model.save(scratch / "m"); }),
            "'features' cannot be written to a model file: a text in it is not UTF-8");
}

TEST(ModelFile, OfAnotherFamilyTakesNoRows) {
  const Scratch scratch;
  const Config recipe = app::load_recipe("karate", {}).or_throw();
  const app::AppFamily& family = app::find_family("graph");
  const auto session = family.open(recipe, ".", kOneThread).or_throw();
  session->start();
  session->save_model(scratch / "m", family.options(*session)).or_throw();
  const FittedModel model = load(scratch / "m", kOneThread);
  const std::size_t features = model.features().size();
  EXPECT_THAT(message_of([&] {
                model.predict({std::vector<double>(features), features});
              }),
              HasSubstr("models of family \"graph\" cannot be applied to rows"));
}

TEST(Fit, GoesOnFromATrainedNetworkOfAnotherGrid) {
  const FitData data;
  KanOptions options = small_kan();
  const auto first = fit({data.x, 3}, data.y, options, {.session = kOneThread});
  const auto finer = first.refine(10, kOneThread);
  const Prediction before = first.predict({data.x, 3}), after = finer.predict({data.x, 3});
  for (std::size_t i = 0; i < before.values.size(); ++i) EXPECT_NEAR(before.values[i], after.values[i], 1e-4);
  EXPECT_EQ(finer.features(), first.features());

  // No epoch: what is left is the trained network.
  options.train.epochs = 0;
  const auto same = fit({data.x, 3}, data.y, options, {.from = &first, .session = kOneThread});
  EXPECT_EQ(same.predict({data.x, 3}).values, before.values);
  options.model.grid = 10;
  const auto refined = fit({data.x, 3}, data.y, options, {.from = &first, .session = kOneThread});
  EXPECT_EQ(refined.predict({data.x, 3}).values, after.values);
}

TEST(Fit, RefusesToGoOnFromANetworkThatDoesNotFit) {
  const FitData data;
  const auto first = fit({data.x, 3}, data.y, small_kan(), {.session = kOneThread});
  const auto from = [&](auto change) {
    KanOptions options = small_kan();
    change(options);
    return message_of([&] { fit({data.x, 3}, data.y, options, {.from = &first, .session = kOneThread}); });
  };
  EXPECT_THAT(from([](KanOptions& o) { o.model.hidden = {4}; }), HasSubstr("layer0.weight"));
  EXPECT_THAT(from([](KanOptions& o) { o.model.degree = 2; }), HasSubstr("degree 3, not 2"));
  EXPECT_THAT(from([](KanOptions& o) { o.precision = Precision::float64; }), HasSubstr("cannot start from"));
  EXPECT_THAT(message_of([&] {
                fit({data.x, 3}, data.names, small_gates(), {.from = &first, .session = kOneThread});
              }),
              HasSubstr("cannot start from a trained model"));
  EXPECT_THAT(message_of([&] { first.refine(0, kOneThread); }), HasSubstr("model.grid"));
}

TEST(Fit, PredictsTablesByTheNamesOfTheirColumns) {
  const FitData data;
  const auto model = fit({data.x, 3}, data.y, small_kan(), {.features = {"a", "b", "c"}, .session = kOneThread});
  const Prediction rows = model.predict({std::vector{0.5, -0.25, 0.125}, 3});
  EXPECT_EQ(model.predict_table("b,c,a\n-0.25,0.125,0.5\n").values, rows.values);
  EXPECT_THAT(message_of([&] { model.predict_table("b,a\n1,2\n"); }), HasSubstr("'c'"));
}

}  // namespace
}  // namespace gradloom::test
