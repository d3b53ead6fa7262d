#include "gradloom/io/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "gradloom/io/file.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using nlohmann::json;
using testing::HasSubstr;

void put(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
std::string get(const std::filesystem::path& path) { return read_file(path, 1 << 20).or_throw(); }

TEST(RunLog, ReadsBackWhatWasAppended) {
  const test::Scratch scratch;
  {
    auto log = RunLog::open(scratch / "log").or_throw();
    ASSERT_TRUE(log.append({{"epoch", 0}, {"loss", 0.1}}).ok());
    ASSERT_TRUE(log.append({{"text", "line\nbreak"}, {"loss", std::nan("")}}).ok());
    ASSERT_TRUE(log.append({{"bad", "\xff"}}).ok());
  }
  auto again = RunLog::open(scratch / "log").or_throw();
  ASSERT_TRUE(again.append(json::object()).ok());
  const auto content = read_run_log(scratch / "log").or_throw();
  ASSERT_EQ(content.lines.size(), 4u);
  EXPECT_EQ(content.torn, 0u);
  EXPECT_EQ(content.lines[0]["loss"], 0.1);
  EXPECT_EQ(content.lines[1]["text"], "line\nbreak");
  EXPECT_TRUE(content.lines[1]["loss"].is_null());
}

TEST(RunLog, ThrowsOnLinesThatAreNotObjects) {
  const test::Scratch scratch;
  auto log = RunLog::open(scratch / "log").or_throw();
  EXPECT_THROW((void)log.append(json(1)), Exception);
}

TEST(RunLog, DropsAndCountsATornLastLine) {
  const test::Scratch scratch;
  for (const char* end : {"{\"a\":", "{\"a\":2}", "\0\0\n", "nonsense\n"}) {
    put(scratch / "log", std::string("{\"a\":1}\n") + end);
    const auto content = read_run_log(scratch / "log").or_throw();
    EXPECT_EQ(content.lines.size(), 1u) << end;
    EXPECT_EQ(content.torn, *end == '\0' ? 0u : 1u) << end;
  }
}

TEST(RunLog, RemovesATornLastLineBeforeItContinues) {
  const test::Scratch scratch;
  for (const std::string& torn :
       {std::string("{\"a\":"), std::string("\0\0\n", 3), std::string("nonsense\n"), std::string()}) {
    put(scratch / "log", "{\"a\":1}\n" + torn);
    auto log = RunLog::open(scratch / "log").or_throw();
    ASSERT_TRUE(log.append({{"a", 2}}).ok());
    EXPECT_EQ(get(scratch / "log"), "{\"a\":1}\n{\"a\":2}\n");
  }
}

TEST(RunLog, NamesALineThatIsDamaged) {
  const test::Scratch scratch;
  put(scratch / "log", "{}\n{\"a\n{}\n");
  EXPECT_THAT(read_run_log(scratch / "log").error().message, HasSubstr("log:2:"));
  put(scratch / "log", "{}\n\n{}\n");
  EXPECT_FALSE(read_run_log(scratch / "log").ok());
  EXPECT_EQ(read_run_log(scratch / "none").error().code, ErrorCode::not_found);
}

TEST(RunLog, KeepsTheFirstLinesForResume) {
  const test::Scratch scratch;
  const std::string text = "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\"";
  for (std::size_t n : {0u, 1u, 3u, 7u}) {
    put(scratch / "log", text);
    EXPECT_EQ(keep_first_lines(scratch / "log", n).or_throw(), std::min<std::size_t>(n, 3));
    EXPECT_EQ(get(scratch / "log"), text.substr(0, 8 * std::min<std::size_t>(n, 3)));
  }
  EXPECT_EQ(keep_first_lines(scratch / "none", 2).or_throw(), 0u);
}

TEST(RunLog, ReadsAnEmptyFile) {
  const test::Scratch scratch;
  put(scratch / "log", "");
  EXPECT_TRUE(read_run_log(scratch / "log").or_throw().lines.empty());
}

// The limit on file sizes stands in for a full disk; it needs a process of its own.
TEST(RunLog, LeavesNoHalfLineWhenTheDiskIsFull) {
  const test::Scratch scratch;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto log = RunLog::open(scratch / "log");
    if (!log.ok() || !log->append({{"a", 1}}).ok()) ::_exit(1);
    const auto full = log->append({{"a", std::string(200, 'x')}});
    ::_exit(!full.ok() && full.error().code == ErrorCode::io ? 0 : 2);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(get(scratch / "log"), "{\"a\":1}\n");
}

TEST(RunLog, RefusesDevices) { EXPECT_EQ(RunLog::open("/dev/full").error().code, ErrorCode::invalid_input); }

}  // namespace
}  // namespace gradloom
