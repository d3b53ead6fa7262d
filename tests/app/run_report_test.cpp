// Titles, figures and limits of the report of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "gradloom/app/recipe.h"
#include "gradloom/app/run/report.h"
#include "gradloom/app/run/run.h"
#include "gradloom/base/error.h"
#include "tests/support/scratch.h"

namespace gradloom::app {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RunTitle, HasTheNameOfRecipeAndFolder) {
  EXPECT_EQ(run_title("life", "runs/a"), "life: a");
  EXPECT_EQ(run_title("life", "runs/life"), "life");
  EXPECT_EQ(run_title("life", "runs/life-0/"), "life-0");
  EXPECT_EQ(run_title("life", "runs/my-lifetime"), "life: my-lifetime");
  EXPECT_EQ(run_title("life", "runs/lifetime"), "life: lifetime");
  EXPECT_EQ(run_title("", "runs/a"), "a");
}

// The report of a short run on 60 rows of x and whether it is large.
std::string report_of(const std::vector<std::string>& more) {
  const test::Scratch scratch;
  std::ofstream table(scratch / "t.csv");
  table << "x,y\n";
  for (int i = 0; i < 60; ++i) table << i * 37 % 60 << ',' << (i * 37 % 60 < 30 ? "low" : "high") << '\n';
  table.close();
  RunOptions options;
  options.exec.threads = 1;
  options.data_root = scratch.path();
  std::vector<std::string> overrides = {"data.path=t.csv", "epochs=4", "train.batch=16", "task=classification"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  train(load_recipe("kan-rows", overrides).or_throw(), scratch / "run", options).or_throw();
  std::ifstream file(scratch / "run/report.html", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(RunReport, OfClassesCountsWhatIsTakenForWhich) {
  const std::string html = report_of({});
  const std::size_t begin = html.find("<h2>Confusion</h2>");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = html.substr(begin, html.find("</section>", begin) - begin);
  EXPECT_THAT(table, testing::AllOf(HasSubstr("12 test rows"), HasSubstr(">high<"), HasSubstr(">low<")));
  EXPECT_THAT(report_of({"loss.kind=binary-cross-entropy", "data.test=0"}), HasSubstr("6 validation rows"));
}

TEST(RunTitle, OfAFolderWithoutNameIsThatOfThePlace) {
  const test::Scratch scratch;
  const std::string name = std::filesystem::canonical(scratch.path()).filename().string();
  EXPECT_EQ(run_title("life", scratch.path() / "."), "life: " + name);
  std::filesystem::create_directory(scratch / "inside");
  EXPECT_EQ(run_title("life", scratch / "inside/.."), "life: " + name);
  EXPECT_EQ(run_title("life", "."), "life: " + std::filesystem::current_path().filename().string());
  EXPECT_EQ(run_title("life", "/"), "life") << "nothing stands behind a colon";
}

TEST(TimeFigure, RoundsIntoItsUnit) {
  const auto text = [](double seconds) {
    const Figure figure = time_figure(seconds);
    return figure.value.text() + " " + figure.unit;
  };
  EXPECT_EQ(text(0.00123), "1.2 ms");
  EXPECT_EQ(text(0.0123), "12 ms");
  EXPECT_EQ(text(0.9994), "999 ms");
  EXPECT_EQ(text(0.9996), "1.0 s");
  EXPECT_EQ(text(1.25), "1.2 s");
  EXPECT_EQ(text(99.96), "100 s");
  EXPECT_EQ(text(1234.5), "1234 s");
}

TEST(Report, TablesOfLongTextsTakeTheWholeWidth) {
  const auto html = [](std::size_t columns, std::size_t letters) {
    Table table{.title = "t", .columns = std::vector<std::string>(columns, "c"), .rows = {{"a", "b"}}};
    table.rows.push_back({"a", std::string(letters, 'x')});
    return report_html({.title = "r", .sections = {table}});
  };
  constexpr const char* kBroad = "<section class=\"broad\">";
  EXPECT_THAT(html(3, 29), HasSubstr(kBroad));
  EXPECT_THAT(html(3, 28), Not(HasSubstr(kBroad)));
  EXPECT_THAT(html(2, 29), Not(HasSubstr(kBroad))) << "two columns have room";
}

GraphPicture graph_of_classes(std::size_t classes) {
  GraphPicture graph{.title = "g"};
  for (std::size_t c = 0; c < classes; ++c) graph.nodes.push_back({"n" + std::to_string(c), c, false, false});
  return graph;
}

TEST(Report, EveryClassOfAGraphHasItsColour) {
  const std::string html = report_html({.title = "g", .sections = {graph_of_classes(kMostDrawnClasses)}});
  std::set<std::string> styles;
  for (std::size_t at = html.find("<g class=\"s-"); at != std::string::npos; at = html.find("<g class=\"s-", at + 1))
    styles.insert(html.substr(at, html.find('>', at) - at));
  EXPECT_EQ(styles.size(), kMostDrawnClasses);
  EXPECT_THROW(report_html({.title = "g", .sections = {graph_of_classes(kMostDrawnClasses + 1)}}), Exception);
}

}  // namespace
}  // namespace gradloom::app
