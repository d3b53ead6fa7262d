#include "gradloom/io/option_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradloom {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct RuleOptions {
  std::string kind = "plain";
  double speed = 1.0, drag = 0.0;
  std::size_t folds = 0, fold = 0;
  std::optional<std::string> file;
  std::vector<std::size_t> at;
  std::size_t rounds = 5;
  std::vector<RuleOptions> stages;
};

const OptionSchema<RuleOptions>& rule_schema() {
  using O = RuleOptions;
  static const OptionSchema<O> schema([](const OptionPart<O>& o) {
    o.key("kind", &O::kind, "").one_of({"plain", "fancy", "odd"});
    o.key("speed", &O::speed, "").computed().not_with("kind", {"odd"});
    o.key("drag", &O::drag, "").only_with("kind", {"fancy", "odd"});
    o.key("folds", &O::folds, "");
    o.key("fold", &O::fold, "").needs("folds");
    o.key("file", &O::file, "");
    o.key("at", &O::at, "").needs("file").effect([](const ConfigValues& values) -> std::string {
      for (const std::int64_t at : std::get<std::vector<std::int64_t>>(values("at")))
        if (at > std::get<std::int64_t>(values("rounds"))) return "names a round that never comes";
      return "";
    });
    o.key("rounds", &O::rounds, "");
    o.stage("rounds", "rounds", "");
    o.stage("at", "at", "");
    o.stage("kind", "kind", "", Lasting::rest);
  });
  return schema;
}

std::vector<std::string> idle(std::string_view toml) {
  return idle_keys(rule_schema(), parse_config(rule_schema().schema(), toml, "t").or_throw());
}

TEST(OptionRules, ValuesThatDoNothingAreNamedWithTheReason) {
  EXPECT_THAT(idle(""), IsEmpty());
  EXPECT_THAT(idle("drag = 0.5"), ElementsAre("drag = 0.5 has no effect: it is for kind = \"fancy\" or \"odd\""));
  EXPECT_THAT(idle("drag = 0.5\nkind = \"odd\""), IsEmpty());
  EXPECT_THAT(idle("speed = 2\nkind = \"odd\""), ElementsAre("speed = 2.0 has no effect with kind = \"odd\""));
  EXPECT_THAT(idle("fold = 2"), ElementsAre("fold = 2 has no effect with folds = 0"));
  EXPECT_THAT(idle("fold = 2\nfolds = 3"), IsEmpty());
  EXPECT_THAT(idle("at = [1]"), ElementsAre("at = [1] has no effect without file"));
}

TEST(OptionRules, DefaultsAreNotNamed) { EXPECT_THAT(idle("fold = 0\ndrag = 0.0"), IsEmpty()); }

TEST(OptionRules, StagesAreJudgedByTheirOwnValues) {
  const std::string head = "file = \"f\"\nat = [7]\n";
  EXPECT_THAT(idle(head), ElementsAre("at = [7] names a round that never comes"));
  EXPECT_THAT(idle(head + "[[stage]]\nrounds = 9\n[[stage]]\n"), IsEmpty()) << "it comes in one stage";
  EXPECT_THAT(idle("file = \"f\"\n[[stage]]\nat = [7]\n[[stage]]\nat = [2]\n"),
              ElementsAre("stage.0.at = [7] names a round that never comes"));
  EXPECT_THAT(idle("drag = 0.5\n[[stage]]\n[[stage]]\nkind = \"odd\"\n"), IsEmpty());
  EXPECT_THAT(idle("speed = 3\n[[stage]]\nkind = \"odd\"\n[[stage]]\n"),
              ElementsAre(HasSubstr("speed = 3.0 has no effect")))
      << "the kind lasts";
}

TEST(OptionRules, NumbersThatRoundingTurnsIntoOthersAreRefused) {
  const FloatLimits range{"float32", 1.2e-38, 3.4e38, "precision = \"float64\""};
  const auto message = [&](const char* toml) -> std::string {
    const auto r = check_computed(parse_config(rule_schema().schema(), toml, "t").or_throw(), range);
    return r ? "" : r.error().message;
  };
  EXPECT_EQ(message(""), "");
  EXPECT_EQ(message("speed = 0.0"), "");
  EXPECT_EQ(message("speed = -1e-30"), "");
  EXPECT_EQ(message("drag = 1e-50"), "") << "nothing computes with it";
  EXPECT_THAT(message("speed = 1e-50"), AllOf(HasSubstr("speed = 1e-50"), HasSubstr("float32"), HasSubstr("1.2e-38"),
                                              HasSubstr("would be 0"), HasSubstr("or precision = \"float64\"")));
  EXPECT_THAT(message("speed = -1e39"), AllOf(HasSubstr("speed = -1e+39"), HasSubstr("infinite")));
}

}  // namespace
}  // namespace gradloom
