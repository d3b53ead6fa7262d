// What somebody sees who watches a run.
#include "cli/progress.h"

#include <limits>

#include "cli/seeds.h"
#include "cli/text.h"
#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::HasSubstr;
using testing::Not;

app::Progress some_progress() {
  app::Progress p;
  p.stage = 1;
  p.stages = 3;
  p.epoch = 12;
  p.epochs = 400;
  p.note = "grid 80";
  p.loss = 1.25e-3;
  p.validation = 2.5e-3;
  p.samples_per_second = 12345;
  p.seconds_left = 62;
  return p;
}

TEST(ProgressLine, LeavesOutATimeThatIsOver) {
  app::Progress p = some_progress();
  p.seconds_left = 0.4;
  EXPECT_THAT(cli::progress_line(p, {.width = 200}), Not(HasSubstr("left")));
}

TEST(ProgressLine, SaysEverythingWhereThereIsRoom) {
  const std::string line = cli::progress_line(some_progress(), {160, true, true});
  for (const char* word :
       {"stage 2/3", "grid 80", "12/400", "━", "loss 1.250e-03", "val 2.500e-03", "12.3k samples/s", "1:02 left"})
    EXPECT_THAT(line, HasSubstr(word));
  EXPECT_THAT(cli::progress_line(some_progress(), {160, true, false}), Not(HasSubstr("━")));
}

TEST(ProgressLine, IsNeverWiderThanTheTerminal) {
  for (std::size_t width = 1; width < 140; ++width)
    for (bool utf8 : {false, true}) {
      const std::string line = cli::progress_line(some_progress(), {width, true, utf8});
      EXPECT_LE(cli::display_width(line), width) << line;
      if (width < 32) continue;
      EXPECT_THAT(line, HasSubstr("loss 1.250e-03")) << "what matters most stays";
    }
}

TEST(ProgressLine, LeavesOutWhatThereIsNot) {
  app::Progress p = some_progress();
  p.stages = 1;
  p.stage = 0;
  p.note = "";
  p.validation = std::numeric_limits<double>::quiet_NaN();
  const std::string line = cli::progress_line(p, {120, false, false});
  EXPECT_THAT(line, Not(HasSubstr("stage")));
  EXPECT_THAT(line, Not(HasSubstr("val")));
}

TEST(Text, FiguresAsPeopleReadThem) {
  EXPECT_EQ(cli::duration(0.421), "0.42 s");
  EXPECT_EQ(cli::duration(59.96), "1 min 00 s");
  EXPECT_EQ(cli::duration(185.2), "3 min 05 s");
  EXPECT_EQ(cli::duration(7800), "2 h 10 min");
  EXPECT_EQ(cli::clock_time(3723), "1:02:03");
  EXPECT_EQ(cli::rate(999.7), "1k");
  EXPECT_EQ(cli::rate(4.5e6), "4.5M");
  EXPECT_EQ(cli::shell_word("runs/a-1"), "runs/a-1");
  EXPECT_EQ(cli::shell_word("my run's"), "'my run'\\''s'");
}

TEST(Seeds, MedianWorstAndFailures) {
  const auto run = [](double rmse, double accuracy) {
    return nlohmann::json{{"test", {{"rmse", rmse}, {"accuracy", accuracy}}}};
  };
  const auto r =
      cli::summarise_seeds({run(1, 0.9), run(4, 0.5), {{"error", {{"code", "numeric"}}}}, run(2, 0.8), run(3, 0.7)});
  EXPECT_EQ(r["median"]["rmse"], 2.5);
  EXPECT_EQ(r["worst"]["rmse"], 4.0);
  EXPECT_EQ(r["median"]["accuracy"], 0.75);
  EXPECT_EQ(r["worst"]["accuracy"], 0.5);
  EXPECT_EQ(r["failed"], 1);
  EXPECT_EQ(r["success_rate"], 0.8);
  EXPECT_EQ(r["runs"].size(), 5u);
}

TEST(Seeds, TheWorstMatchIsTheSmallestAndTheWorstDistanceTheLargest) {
  const auto run = [](double match, double distance) {
    return nlohmann::json{{"test", {{"exact_match", match}, {"spearman", match}, {"ged", distance}, {"other", 1.0}}}};
  };
  const auto worst = cli::summarise_seeds({run(0.9, 1), run(0.5, 4)})["worst"];
  EXPECT_EQ(worst["exact_match"], 0.5);
  EXPECT_EQ(worst["spearman"], 0.5);
  EXPECT_EQ(worst["ged"], 4.0);
  EXPECT_TRUE(worst["other"].is_null());
}

TEST(Seeds, NothingToTestGivesNoMetrics) {
  const auto r = cli::summarise_seeds({{{"test", nullptr}}});
  EXPECT_TRUE(r["median"].empty());
  EXPECT_EQ(r["success_rate"], 1.0);
}

class Watching : public ProgramTest {
 protected:
  Ended watch(const Words& words, const std::map<std::string, std::string>& environment = {}) const {
    Launch l = launch(words);
    l.terminal_columns = 44;
    for (const auto& [name, value] : environment) l.environment[name] = value;
    return Process(l).wait();
  }
};

const Words kShort = {"train", "kan-hello", "--set", "epochs=20", "--set", "data.samples=400"};

TEST_F(Watching, ATerminalShowsOneLineThatIsRedrawnAndTakenAway) {
  const Ended ended = watch(kShort);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err.find('\n'), std::string::npos) << ended.err;
  EXPECT_THAT(ended.err, testing::EndsWith("\r\x1b[K"));
  std::size_t begin = 0;
  while (begin < ended.err.size()) {
    const std::size_t end = std::min(ended.err.find('\r', begin), ended.err.size());
    std::string line = ended.err.substr(begin, end - begin);
    if (line.ends_with("\x1b[K")) line.resize(line.size() - 3);
    EXPECT_LE(cli::display_width(line), 41u) << "no room for ^C: " << line;
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
    begin = end + 1;
  }
}

TEST_F(Watching, ATerminalThatCannotRedrawGetsPlainLines) {
  const Ended ended = watch(kShort, {{"TERM", "dumb"}});
  EXPECT_THAT(ended.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ended.err, HasSubstr("epoch 20/20"));
}

TEST_F(Watching, PlainLinesAreFewAndTheLastOneIsThere) {
  const Ended ended = run(Words{"train", "kan-hello", "--set", "epochs=200", "--set", "data.samples=50"});
  const auto lines = std::count(ended.err.begin(), ended.err.end(), '\n');
  EXPECT_GE(lines, 2);
  EXPECT_LE(lines, 14) << ended.err;
}

TEST_F(Watching, ErrorsAreRedUnlessColourIsUnwanted) {
  EXPECT_THAT(watch({"train", "nothing"}).err, HasSubstr("\x1b[31mgradloom: "));
  EXPECT_THAT(watch({"train", "nothing"}, {{"NO_COLOR", "1"}}).err, Not(HasSubstr("\x1b")));
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  const cli::Terminal plain, coloured{.redraws = true, .colour = true, .utf8 = true};
  EXPECT_EQ(cli::printable("a\x1b[2J\r\x7f\b\n\tb", plain), "a\\x1b[2J\\x0d\\x7f\\x08\n\tb");
  EXPECT_EQ(cli::printable("\xc2\x9b"
                           "1m \xc3\xa4 \xc2\xa0",
                           plain),
            "\\x9b1m \xc3\xa4 \xc2\xa0")
      << "letters stay";
  const std::string red = cli::painted(cli::Paint::red, "no", coloured);
  EXPECT_EQ(cli::printable(red, coloured), red) << "our own colours stay";
  EXPECT_EQ(cli::printable(red, plain), "\\x1b[31mno\\x1b[0m") << "where there are none of ours, they are foreign";
  EXPECT_EQ(cli::printable("\x1b[8mhidden\x1b]0;title\x07", coloured), "\\x1b[8mhidden\\x1b]0;title\\x07");
  EXPECT_EQ(cli::printable(std::string("\0\x1b", 2), plain), "\\x00\\x1b");
}

}  // namespace
}  // namespace gradloom::test
