// Structs of options that keys are bound to.
#include "gradloom/io/option_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradloom::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Colour { red, blue };
constexpr Choice<Colour> kColours[] = {{Colour::red, "red", ""}, {Colour::blue, "blue", ""}};

struct Shape {
  unsigned width = 3;
  std::vector<std::size_t> sides{1, 2};
  Colour colour = Colour::blue;
};
struct SketchBase {
  std::optional<double> scale;
};
struct Sketch : SketchBase {
  std::string title = "none";
  FileName file{"a.png"};
  bool filled = true;
  std::optional<Colour> pen;
  Shape shape;
  std::vector<Sketch> stages;
};

void bind_sketch(const OptionPart<Sketch>& o) {
  o.as<SketchBase>().key("scale", &SketchBase::scale, "Scale.").above(0);
  o.key("title", &Sketch::title, "Title.");
  o.key("file", &Sketch::file, "File.");
  o.key("filled", &Sketch::filled, "Filled.");
  o.choice_or_auto("pen", &Sketch::pen, kColours, "Pen.");
  const auto shape = o.part("shape", &Sketch::shape);
  shape.key("width", &Shape::width, "Width.").at_least(1);
  shape.key("sides", &Shape::sides, "Sides.");
  shape.choice("colour", &Shape::colour, kColours, "Colour.");
  o.stage("width", "shape.width", "Width from here on.", Lasting::rest);
  o.stage("colour", "shape.colour", "Colour.");
}

Sketch read_sketch(const std::string& toml) {
  static const OptionSchema<Sketch> schema(bind_sketch);
  return schema.read(parse_config(schema.schema(), toml, "t").or_throw());
}

TEST(OptionSchema, TheStructHasTheDefaults) {
  const OptionSchema<Sketch> schema(bind_sketch);
  const Config config(std::make_shared<const Schema>(schema.schema()));
  EXPECT_FALSE(config.has("scale"));
  EXPECT_EQ(config.string("title"), "none");
  EXPECT_EQ(config.string("pen"), "auto");
  EXPECT_EQ(config.integer("shape.width"), 3);
  EXPECT_THAT(std::get<std::vector<std::int64_t>>(config.value("shape.sides")), ElementsAre(1, 2));
  EXPECT_EQ(config.string("shape.colour"), "blue");
  EXPECT_TRUE(schema.schema().keys()[schema.schema().find("file")].names_file);
  EXPECT_FALSE(schema.schema().keys()[schema.schema().find("title")].names_file);
}

TEST(OptionSchema, EveryKeySetsItsField) {
  const Sketch s = read_sketch(
      "scale = 2.5\ntitle = 'x'\nfile = 'b'\nfilled = false\npen = 'red'\n[shape]\nwidth = 7\nsides = [4]\n"
      "colour = 'red'");
  EXPECT_EQ(s.scale, 2.5);
  EXPECT_EQ(s.title, "x");
  EXPECT_EQ(s.file.text, "b");
  EXPECT_FALSE(s.filled);
  EXPECT_EQ(s.pen, Colour::red);
  EXPECT_EQ(s.shape.width, 7u);
  EXPECT_THAT(s.shape.sides, ElementsAre(4u));
  EXPECT_EQ(s.shape.colour, Colour::red);
  EXPECT_TRUE(s.stages.empty());
}

TEST(OptionSchema, StagesAreCompleteAndSomeOfTheirValuesLast) {
  const Sketch s = read_sketch("title = 'x'\n[[stage]]\nwidth = 5\ncolour = 'red'\n[[stage]]\n[[stage]]\nwidth = 9");
  ASSERT_EQ(s.stages.size(), 3u);
  EXPECT_EQ(s.shape.width, 3u);
  EXPECT_EQ(s.stages[0].shape.width, 5u);
  EXPECT_EQ(s.stages[1].shape.width, 5u);
  EXPECT_EQ(s.stages[2].shape.width, 9u);
  EXPECT_EQ(s.stages[0].shape.colour, Colour::red);
  EXPECT_EQ(s.stages[1].shape.colour, Colour::blue);
  EXPECT_EQ(s.stages[2].title, "x");
}

TEST(OptionSchema, AKeyOfAStageHasTheRangeOfTheRuns) {
  const OptionSchema<Sketch> schema(bind_sketch);
  for (const char* text : {"[[stage]]\nwidth = 0", "[[stage]]\ncolour = 'green'", "pen = 'green'"})
    EXPECT_FALSE(parse_config(schema.schema(), text, "t").ok()) << text;
}

TEST(OptionSchema, RefusesAnIntegerThatItsFieldCannotHold) {
  try {
    read_sketch("[shape]\nwidth = 5000000000");
    FAIL();
  } catch (const Exception& e) {
    EXPECT_THAT(e.what(), HasSubstr("'shape.width' is 5000000000"));
  }
}

TEST(OptionSchema, RefusesAStageKeyForAKeyThatIsNotBound) {
  EXPECT_THROW(OptionSchema<Sketch>([](const OptionPart<Sketch>& o) { o.stage("width", "shape.width", ""); }),
               Exception);
}

TEST(OptionSchema, OptionsSurviveJson) {
  const OptionSchema<Sketch> schema(bind_sketch);
  Sketch sketch;
  sketch.title = "a \"b\"\n\x7f";
  sketch.pen = Colour::red;
  sketch.shape.sides = {};
  sketch.shape.width = 7;
  sketch.scale = 1.0 / 3.0;
  const nlohmann::json json = schema.to_json(sketch);
  EXPECT_EQ(json["shape"]["width"], 7);
  const Sketch again = schema.from_json(nlohmann::json::parse(json.dump()), "t").or_throw();
  EXPECT_EQ(again.title, sketch.title);
  EXPECT_EQ(again.pen, sketch.pen);
  EXPECT_TRUE(again.shape.sides.empty());
  EXPECT_EQ(again.scale, sketch.scale);
  EXPECT_EQ(schema.to_json(again), json);
  EXPECT_FALSE(schema.to_json(Sketch()).contains("scale"));  // it has no value
}

TEST(OptionSchema, JsonIsCheckedAsRecipesAre) {
  const OptionSchema<Sketch> schema(bind_sketch);
  const auto message = [&](const char* text) {
    const auto read = schema.from_json(nlohmann::json::parse(text), "model.file");
    return read ? std::string("no error") : read.error().message;
  };
  EXPECT_THAT(message("[1]"), HasSubstr("model.file: must be an object, not array"));
  EXPECT_THAT(message(R"({"shape": {"widht": 3}})"), HasSubstr("did you mean 'shape.width'?"));
  EXPECT_THAT(message(R"({"shape": {"width": 0}})"), HasSubstr("'shape.width' is 0"));
  EXPECT_THAT(message(R"({"shape": {"width": 1.5}})"), HasSubstr("not a number"));
  EXPECT_THAT(message(R"({"shape": {"sides": [1, null]}})"), HasSubstr("null is not a value"));
  EXPECT_THAT(message(R"({"shape": {"sides": [18446744073709551615]}})"), HasSubstr("integer"));
  EXPECT_THAT(message(R"({"shape": {"colour": "green"}})"), HasSubstr("one of red, blue"));
  EXPECT_THAT(message(R"({"shape": 3})"), HasSubstr("unknown key 'shape'"));
}

}  // namespace
}  // namespace gradloom::test
