#include "gradloom/io/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "gradloom/io/nearest.h"
#include "tests/support/mutate.h"

namespace gradloom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Schema example() {
  Schema layer;
  layer.add("width", ValueType::integer, 8, "Units.").at_least(1);
  Schema stage;
  stage.add("grid", ValueType::integer, 5, "Intervals of the grid.").at_least(1);
  stage.add("optimizer.lr", ValueType::number, {}, "Learning rate of this stage.").above(0);
  stage.tables("layer", layer, "Layers.");
  Schema schema;
  schema.add("epochs", ValueType::integer, 10, "Passes over the data.").at_least(0);
  schema.add("name", ValueType::string, "run", "Name of the run.");
  schema.add("optimizer.lr", ValueType::number, 1e-2, "Learning rate.").above(0).below(10);
  schema.add("optimizer.kind", ValueType::string, "adam", "Algorithm.").one_of({"adam", "lbfgs", "sgd"});
  schema.add("data.shuffle", ValueType::boolean, true, "Whether to shuffle.");
  schema.add("data.target", ValueType::string, {}, "Column to predict.");
  schema.add("model.widths", ValueType::integers, std::vector<std::int64_t>{2, 5, 1}, "Units per layer.")
      .at_least(1)
      .count(2);
  schema.add("model.range", ValueType::numbers, std::vector<double>{-1, 1}, "Grid range.");
  schema.add("data.drop", ValueType::strings, std::vector<std::string>{}, "Columns to leave out.");
  schema.tables("stage", stage, "Stages of the run.", 1);
  return schema;
}

Config parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_config(example(), text, "r.toml", overrides).or_throw();
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto result = parse_config(example(), text, "r.toml", overrides);
  return result.ok() ? "no error" : result.error().message;
}

TEST(Config, HasDefaultsWhenNothingIsSet) {
  const Config config = parse("");
  EXPECT_EQ(config.integer("epochs"), 10);
  EXPECT_EQ(std::get<double>(config.value("optimizer.lr")), 0.01);
  EXPECT_EQ(config.string("optimizer.kind"), "adam");
  EXPECT_TRUE(std::get<bool>(config.value("data.shuffle")));
  EXPECT_FALSE(config.has("data.target"));
  EXPECT_THAT(std::get<std::vector<std::int64_t>>(config.value("model.widths")), ElementsAre(2, 5, 1));
  EXPECT_TRUE(std::get<std::vector<std::string>>(config.value("data.drop")).empty());
  ASSERT_EQ(config.tables("stage").size(), 1u);
  EXPECT_EQ(config.tables("stage")[0].integer("grid"), 5);
  EXPECT_FALSE(config.was_set("epochs"));
}

TEST(Config, ReadsEveryType) {
  const Config config = parse(R"(
epochs = 3
optimizer = {lr = 1, kind = "sgd"}
model.widths = [1, 2]
model.range = [0, 0.5]
[data]
shuffle = false
target = "y"
drop = "id"
[[stage]]
grid = 3
[[stage]]
optimizer.lr = 0.5
[[stage.layer]]
width = 4
)");
  EXPECT_EQ(config.integer("epochs"), 3);
  EXPECT_TRUE(config.was_set("epochs"));
  EXPECT_EQ(std::get<double>(config.value("optimizer.lr")), 1.0);
  EXPECT_THAT(std::get<std::vector<double>>(config.value("model.range")), ElementsAre(0, 0.5));
  EXPECT_THAT(std::get<std::vector<std::string>>(config.value("data.drop")), ElementsAre("id"));
  EXPECT_EQ(config.string("data.target"), "y");
  ASSERT_EQ(config.tables("stage").size(), 2u);
  EXPECT_EQ(config.tables("stage")[0].integer("grid"), 3);
  EXPECT_FALSE(config.tables("stage")[0].has("optimizer.lr"));
  EXPECT_EQ(std::get<double>(config.tables("stage")[1].value("optimizer.lr")), 0.5);
  EXPECT_EQ(config.tables("stage")[1].tables("layer")[0].integer("width"), 4);
  EXPECT_TRUE(parse("stage = []").tables("stage").empty());
}

TEST(Config, NamesUnknownKeysTheirLineAndTheNearestKey) {
  EXPECT_THAT(error_of("epochs = 1\n\nepoch = 2"), HasSubstr("r.toml:3: unknown key 'epoch'; did you mean 'epochs'?"));
  EXPECT_THAT(error_of("[optimiser]\nlr = 1"), HasSubstr("'optimiser'"));
  EXPECT_THAT(error_of("[optimizer]\nrl = 1"),
              HasSubstr("r.toml:2: unknown key 'optimizer.rl'; did you mean 'optimizer.lr'?"));
  EXPECT_THAT(error_of("lr = 1"), HasSubstr("did you mean 'optimizer.lr'?"));
  EXPECT_THAT(error_of("[[stage]]\ngird = 1"), HasSubstr("r.toml:2: unknown key 'gird'; did you mean 'grid'?"));
  EXPECT_THAT(error_of("optimizer.lr.x = 1"), HasSubstr("must be a number"));
}

TEST(Config, NamesWrongTypesRangesAndChoices) {
  EXPECT_THAT(error_of("epochs = 1.5"), HasSubstr("r.toml:1: 'epochs' must be an integer, >= 0, not a number (1.5)"));
  EXPECT_THAT(error_of("epochs = -1"), HasSubstr("'epochs' is -1, but must be an integer, >= 0"));
  EXPECT_THAT(error_of("\noptimizer.lr = 0"),
              HasSubstr("r.toml:2: 'optimizer.lr' is 0, but must be a number, > 0, < 10"));
  EXPECT_THAT(error_of("optimizer.lr = 10.0"), HasSubstr("'optimizer.lr' is 10"));
  EXPECT_THAT(error_of("optimizer.lr = nan"), HasSubstr("finite"));
  EXPECT_THAT(error_of("optimizer.kind = 'adm'"), HasSubstr("did you mean 'adam'?"));
  EXPECT_THAT(error_of("model.widths = [1, 'a']"), HasSubstr("not a string"));
  EXPECT_THAT(error_of("model.widths = [1]"), HasSubstr("has 1 elements"));
  EXPECT_THAT(error_of("stage = 1"), HasSubstr("[[stage]]"));
  EXPECT_THAT(error_of("stage = [1]"), HasSubstr("must hold tables"));
  EXPECT_THAT(error_of("epochs = 2020-01-01"), HasSubstr("a date"));
}

TEST(Config, PlacesMalformedTomlByLineAndColumn) {
  EXPECT_THAT(error_of("epochs = 1\nname = \"x\n"), HasSubstr("r.toml:2:10: not valid TOML"));
  EXPECT_THAT(error_of("epochs = 1\nepochs = 2"), HasSubstr("r.toml:2:"));
  EXPECT_THAT(error_of("name = \"\xff\""), HasSubstr("r.toml:1:"));
}

TEST(Config, RefusesKeysThatNestTooDeep) {
  std::string deep = "a";
  for (int i = 0; i < 300'000; ++i) deep += ".a";
  EXPECT_THAT(error_of(deep + " = 1"), HasSubstr("more than 64 parts"));
  EXPECT_THAT(error_of("[" + deep + "]"), HasSubstr("more than 64 parts"));
  EXPECT_THAT(error_of("name = \"\"\"\n'\"\"\"\n" + deep + " = 1"),
              HasSubstr("r.toml:3: a key has more than 64 parts"));
  EXPECT_THAT(error_of("epochs = " + std::string(100'000, '[')), HasSubstr("not valid TOML"));
  std::string many = "model.range = [0.5";
  for (int i = 0; i < 1000; ++i) many += ", 0.5";
  EXPECT_EQ(std::get<std::vector<double>>(parse(many + "]").value("model.range")).size(), 1001u);
  EXPECT_EQ(parse("name = '" + std::string(1000, '.') + "'").string("name").size(), 1000u);
}

TEST(Config, AppliesOverridesInOrder) {
  const Config config = parse(
      "[[stage]]\n[[stage]]\n",
      {"epochs=1", "epochs = 7", "optimizer.lr=1e-3", "name=a=b c.csv", "model.widths=[3,4]", "data.drop=[id, name]",
       "data.target=3", "data.shuffle=false", "stage.1.grid=9", "optimizer.kind=sgd", "stage.0.optimizer.lr=2"});
  EXPECT_EQ(config.integer("epochs"), 7);
  EXPECT_EQ(std::get<double>(config.value("optimizer.lr")), 1e-3);
  EXPECT_EQ(config.string("name"), "a=b c.csv");
  EXPECT_THAT(std::get<std::vector<std::int64_t>>(config.value("model.widths")), ElementsAre(3, 4));
  EXPECT_THAT(std::get<std::vector<std::string>>(config.value("data.drop")), ElementsAre("id", "name"));
  EXPECT_EQ(config.string("data.target"), "3");
  EXPECT_FALSE(std::get<bool>(config.value("data.shuffle")));
  EXPECT_EQ(config.tables("stage")[0].integer("grid"), 5);
  EXPECT_EQ(config.tables("stage")[1].integer("grid"), 9);
  EXPECT_EQ(std::get<double>(config.tables("stage")[0].value("optimizer.lr")), 2);
  EXPECT_TRUE(config.was_set("epochs"));
}

TEST(Config, NamesTheOverrideThatIsWrong) {
  EXPECT_THAT(error_of("", {"epochs"}), HasSubstr("override 'epochs': must have the form key=value"));
  EXPECT_THAT(error_of("", {"epoch=1"}), HasSubstr("override 'epoch=1': unknown key 'epoch'; did you mean 'epochs'?"));
  EXPECT_THAT(error_of("", {"epochs=x"}), HasSubstr("override 'epochs=x': 'epochs' must be an integer"));
  EXPECT_THAT(error_of("", {"epochs="}), HasSubstr("must be an integer"));
  EXPECT_THAT(error_of("", {"epochs=1\nname='x'"}), HasSubstr("must be an integer"));
  EXPECT_THAT(error_of("", {"optimizer.kind=adma"}), HasSubstr("did you mean 'adam'?"));
  EXPECT_THAT(error_of("", {"stage.4.grid=1"}), HasSubstr("has 1 tables"));
  EXPECT_THAT(error_of("", {"stage.grid=1"}), HasSubstr("stage.0.NAME=value"));
  EXPECT_THAT(error_of("", {"stage.0.gird=1"}), HasSubstr("did you mean 'grid'?"));
}

TEST(Config, RefusesTextThatIsNotUtf8) {
  Schema schema;
  schema.add("name", ValueType::string, {}, "A name.");
  schema.add("words", ValueType::strings, {}, "Words.");
  for (const char* bad : {"name=\xe9", "name='\xe9'", "words=[a, \xff]", "words=\xc0\x80", "name=\xed\xa0\x80"})
    EXPECT_THAT(parse_config(schema, "", "t", std::vector<std::string>{bad}).error().message, HasSubstr("not UTF-8"));
  EXPECT_EQ(parse_config(schema, "", "t", std::vector<std::string>{"name=é"}).or_throw().string("name"), "é");
  EXPECT_FALSE(parse_config(schema, "name = \"\xe9\"", "t").ok());
  Schema broken;
  broken.add("name", ValueType::string, "\xe9", "A name.");
  EXPECT_THROW(Config(std::make_shared<const Schema>(broken)).to_toml(), Exception);
}

TEST(Config, NeedsItsRequiredKeys) {
  Schema schema;
  schema.add("data.path", ValueType::string, {}, "File with the rows.").required();
  EXPECT_THAT(parse_config(schema, "", "r.toml").error().message,
              HasSubstr("r.toml: the key 'data.path' is required: File with the rows."));
  const std::vector<std::string> overrides{"data.path=a.csv"};
  EXPECT_TRUE(parse_config(schema, "", "r.toml", overrides).ok());
}

TEST(Config, WritesTomlThatParsesBackToTheSame) {
  const std::vector<std::string> overrides{"optimizer.lr=0.1", "name=\"q\\\"uo\\\\te\\n\\u0001\u00e4\"",
                                           "model.range=[-0.0, 1e-300, 0.30000000000000004, 1e22]",
                                           "data.drop=['a, b', 'c']", "stage.0.optimizer.lr=5e-324"};
  for (const char* text :
       {"", "stage = []", "data.target = 'y'\n[[stage]]\n[[stage.layer]]\nwidth = 2\n[[stage.layer]]\n[[stage]]\n"}) {
    for (bool changed : {false, true}) {
      if (changed && std::string(text) == "stage = []") continue;
      const Config config = parse(text, changed ? overrides : std::vector<std::string>{});
      EXPECT_EQ(parse(config.to_toml()), config) << config.to_toml();
      EXPECT_EQ(parse(config.documented()), config) << config.documented();
      EXPECT_EQ(parse(config.to_toml()).to_toml(), config.to_toml());
    }
  }
  EXPECT_FALSE(parse("epochs = 3") == parse(""));
}

TEST(Config, SpellsOutDefaultsAndDocumentsKeys) {
  const Config config = parse("");
  EXPECT_THAT(config.to_toml(), HasSubstr("[optimizer]\nlr = 0.01\nkind = \"adam\"\n"));
  EXPECT_THAT(config.to_toml(), testing::Not(HasSubstr("target")));
  EXPECT_THAT(config.documented(), HasSubstr("# Learning rate.\n# number, > 0, < 10; default 0.01\nlr = 0.01\n"));
  EXPECT_THAT(config.documented(), HasSubstr("# Column to predict.\n# string; not set by default\n# target =\n"));
  // Every key but the first of a section has an empty line before its comment, also after a list.
  std::istringstream lines(config.documented());
  std::string before = "[", line;
  for (; std::getline(lines, line); before = line) {
    if (line.starts_with("# ") && !line.starts_with("# Written as") && !before.starts_with("#")) {
      EXPECT_TRUE(before.empty() || before.starts_with("[")) << before << "\n" << line;
    }
  }
  EXPECT_THAT(config.documented(), HasSubstr("one of: adam, lbfgs, sgd"));
}

TEST(Config, ThrowsWhenAskedForWhatIsNotThere) {
  const Config config = parse("");
  EXPECT_THROW(config.integer("epoch"), Exception);
  EXPECT_THROW(config.integer("name"), Exception);
  EXPECT_THROW(config.string("data.target"), Exception);
  EXPECT_THROW(config.has("nothing"), Exception);
}

TEST(Schema, ThrowsOnKeysThatExcludeEachOther) {
  Schema schema;
  schema.add("a.b", ValueType::integer, 1, "");
  EXPECT_THROW(schema.add("a.b", ValueType::integer, 1, ""), Exception);
  EXPECT_THROW(schema.add("a", ValueType::integer, 1, ""), Exception);
  EXPECT_THROW(schema.add("a.b.c", ValueType::integer, 1, ""), Exception);
  EXPECT_THROW(schema.add("a b", ValueType::integer, 1, ""), Exception);
  EXPECT_THROW(schema.add("", ValueType::integer, 1, ""), Exception);
  EXPECT_NO_THROW(schema.add("a.bc", ValueType::integer, 1, ""));
}

TEST(Config, SurvivesRandomDamage) {
  const Schema schema = example();
  const std::string good = parse("data.target = 'y'\n[[stage]]\ngrid = 3\n[[stage.layer]]\n[[stage]]\n").to_toml();
  std::size_t accepted = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const auto result = parse_config(schema, test::mutate(good, 2, i), "r.toml");
    if (result.ok()) {
      ++accepted;
      if (i % 16 == 0) {
        EXPECT_EQ(parse_config(schema, result->to_toml(), "again").or_throw(), *result);
      }
    } else {
      ASSERT_FALSE(result.error().message.empty());
    }
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, 20'000u);
}

TEST(Config, SurvivesDamagedOverrides) {
  const Schema schema = example();
  const std::vector<std::string> good{"stage.0.grid=9", "model.widths=[3,4]", "data.drop=['id', name]", "name=\"x\""};
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const std::vector<std::string> overrides{test::mutate(good[i % good.size()], 3, i)};
    const auto result = parse_config(schema, "", "r.toml", overrides);
    ASSERT_TRUE(result.ok() || !result.error().message.empty());
  }
}

TEST(NearestName, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("abc", "acb"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(near_name("x", {}), "");
}

TEST(NearestName, FindsAKeyThatStandsInAnotherSection) {
  const std::vector<std::string> keys{"data.path", "loss.kind", "optimizer.kind", "optimizer.lr", "train.batch"};
  EXPECT_EQ(nearest_name("lr", keys), "optimizer.lr");
  EXPECT_EQ(nearest_name("data.batch", keys), "train.batch");
  EXPECT_EQ(nearest_name("data.pth", keys), "data.path");
  EXPECT_EQ(nearest_name("optmizr.kind", keys), "optimizer.kind");
  EXPECT_EQ(near_name("data.pth", keys), "data.path");
  EXPECT_EQ(near_name("something", keys), "");
  EXPECT_EQ(nearest_name("opt.lr", keys), "optimizer.lr");
}

TEST(Config, NamesTheLineOfATableWithoutAKey) {
  for (const char* header : {"[=]", "[.a]", "[[[a]]]", "[[=", "[[ .a]]", "[#", "[\n", "[[\n", "[{a=1}]", "[\xc3\xa4]"})
    EXPECT_THAT(error_of(std::string("epochs = 1\n ") + header),
                HasSubstr("r.toml:2: not valid TOML: a key must follow"))
        << header;
  EXPECT_THAT(error_of("\xef\xbb\xbf[=]"), HasSubstr("r.toml:1: not valid TOML: a key must follow"));
  for (const char* open : {"[", "[[", "[]", "[[]]", "[ [a]]"})
    EXPECT_THAT(error_of(open), HasSubstr("not valid TOML")) << open;
}

TEST(Config, LettersBeyondAsciiNeedQuotes) {
  for (const char* line : {"o\xc7\xb2\"=13ie\"ke", "\xc3\xa4 = 1", "epochs = 1 \xc3\xa4", "epochs = \xd0\xb0"})
    EXPECT_THAT(error_of(std::string("# \xc3\xa4\n") + line), HasSubstr("r.toml:2")) << line;
  EXPECT_EQ(parse("# \xc3\xa4\nname = \"\xc3\xa4\" # \xc3\xa4\n").string("name"), "\xc3\xa4");
  EXPECT_EQ(parse("", {"name=\xc3\xa4.csv"}).string("name"), "\xc3\xa4.csv");
}

TEST(Config, BracketsInValuesTextsAndCommentsAreNoTables) {
  const Config config =
      parse("# [=]\ndata.drop = [\n  '[=]', # [[=\n  \"[.\"\n]\nname = \"\"\"\n[=]\"\"\"\n[ 'optimizer' ]\nlr = 1\n");
  EXPECT_EQ(config.string("name"), "[=]");
  EXPECT_THAT(std::get<std::vector<std::string>>(config.value("data.drop")), ElementsAre("[=]", "[."));
  EXPECT_EQ(std::get<double>(config.value("optimizer.lr")), 1.0);
}

}  // namespace
}  // namespace gradloom
