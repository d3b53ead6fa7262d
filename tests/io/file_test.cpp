#include "gradloom/io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using testing::HasSubstr;

TEST(AtomicFile, ReadsBackWhatWasWritten) {
  const test::Scratch scratch;
  for (const std::string& content : {std::string(), std::string("x"), std::string(200'001, 'y')}) {
    ASSERT_TRUE(write_file_atomic(scratch / "f", content).ok());
    EXPECT_EQ(read_file(scratch / "f", 1 << 20).or_throw(), content);
  }
  EXPECT_EQ(scratch.entries(), 1u);
}

TEST(AtomicFile, WritesManyPiecesInOrder) {
  const test::Scratch scratch;
  std::string expected;
  const auto written = write_file_atomic(scratch / "f", [&](FileSink& sink) -> Result<void> {
    for (int i = 0; i < 3000; ++i) {
      const std::string piece(static_cast<std::size_t>(i % 97), static_cast<char>('a' + i % 26));
      expected += piece;
      if (auto r = sink.write(piece); !r) return r;
    }
    return {};
  });
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(read_file(scratch / "f", 1 << 20).or_throw(), expected);
}

TEST(AtomicFile, KeepsTheOldContentWhenTheWriterFails) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_file_atomic(scratch / "f", "old").ok());
  const auto failed = write_file_atomic(scratch / "f", [](FileSink& sink) -> Result<void> {
    (void)sink.write(std::string(100'000, 'n'));
    return Error{ErrorCode::numeric, "gave up"};
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "gave up");
  EXPECT_THROW((void)write_file_atomic(scratch / "f", [](FileSink&) -> Result<void> { throw std::runtime_error("x"); }),
               std::runtime_error);
  EXPECT_EQ(read_file(scratch / "f", 100).or_throw(), "old");
  EXPECT_EQ(scratch.entries(), 1u);
}

// The limit on file sizes stands in for a full disk; it needs a process of its own.
TEST(AtomicFile, KeepsTheOldContentWhenTheDiskIsFull) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_file_atomic(scratch / "f", "old").ok());
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = write_file_atomic(scratch / "f", std::string(1'000'000, 'n'));
    const std::string message = result.ok() ? "written" : result.error().message;
    const bool sent = ::write(pipe_ends[1], message.data(), message.size()) == static_cast<ssize_t>(message.size());
    ::_exit(!result.ok() && result.error().code == ErrorCode::io && sent ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  char message[1000] = {};
  ASSERT_GT(::read(pipe_ends[0], message, sizeof message - 1), 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  EXPECT_EQ(status, 0) << message;
  EXPECT_THAT(message, HasSubstr((scratch / "f").string()));
  EXPECT_THAT(message, HasSubstr("File too large"));
  EXPECT_EQ(read_file(scratch / "f", 100).or_throw(), "old");
  EXPECT_EQ(scratch.entries(), 1u);
}

TEST(AtomicFile, NamesThePathWhenTheFolderCannotBeWritten) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_file_atomic(scratch / "f", "old").ok());
  for (const auto& path : {scratch / "f" / "below", scratch / "missing" / "f", std::filesystem::path("/proc/f")}) {
    const auto result = write_file_atomic(path, "new");
    ASSERT_FALSE(result.ok()) << path;
    EXPECT_THAT(result.error().message, HasSubstr(path.string()));
  }
}

TEST(AtomicFile, LeavesFoldersAndDevicesAlone) {
  const test::Scratch scratch;
  for (const auto& path : {scratch.path(), scratch / "", std::filesystem::path("/dev/full")}) {
    const auto result = write_file_atomic(path, "new");
    ASSERT_FALSE(result.ok()) << path;
    EXPECT_THAT(result.error().message, HasSubstr("regular file"));
  }
  EXPECT_EQ(scratch.entries(), 0u);
}

TEST(AtomicFile, WritesThroughLinks) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_file_atomic(scratch / "target", "old"));
  std::filesystem::create_symlink("target", scratch / "link");
  std::filesystem::create_symlink("nothing", scratch / "dangling");
  ASSERT_TRUE(write_file_atomic(scratch / "link", "new"));
  ASSERT_TRUE(write_file_atomic(scratch / "dangling", "made"));
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
  EXPECT_EQ(read_file(scratch / "target", 100).value(), "new");
  EXPECT_EQ(read_file(scratch / "nothing", 100).value(), "made");
  std::filesystem::create_symlink("b", scratch / "a");
  std::filesystem::create_symlink("a", scratch / "b");
  EXPECT_FALSE(write_file_atomic(scratch / "a", "circle"));
  EXPECT_FALSE(write_file_atomic("/proc/self/fd/1", "text"));
}

TEST(RefuseOverwriting, KnowsAFileByAnyName) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_file_atomic(scratch / "read", "text"));
  ASSERT_TRUE(write_file_atomic(scratch / "other", "text"));
  std::filesystem::create_symlink("read", scratch / "link");
  const std::vector<std::filesystem::path> inputs = {"", scratch / "missing", scratch / "read"};
  for (const auto& path : {scratch / "read", scratch / "." / "read", scratch / "link"}) {
    const auto refused = refuse_overwriting(path, inputs);
    ASSERT_FALSE(refused.ok()) << path;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(refused.error().message, HasSubstr(path.string()));
  }
  EXPECT_TRUE(refuse_overwriting(scratch / "other", inputs).ok());
  EXPECT_TRUE(refuse_overwriting(scratch / "missing", inputs).ok()) << "what is not there cannot be lost";
  EXPECT_TRUE(refuse_overwriting("", inputs).ok());
}

TEST(RefuseOverwriting, KnowsWhatLiesInAFolderThatIsRead) {
  const test::Scratch scratch;
  std::filesystem::create_directories(scratch / "data" / "set");
  ASSERT_TRUE(write_file_atomic(scratch / "data" / "set" / "a", "text"));
  ASSERT_TRUE(write_file_atomic(scratch / "database", "text"));
  const std::vector<std::filesystem::path> inputs = {scratch / "data"};
  const auto in_folder = scratch / "data" / "set" / ".." / "set" / "a";
  EXPECT_FALSE(refuse_overwriting(in_folder, inputs, InFolders::contents).ok());
  EXPECT_TRUE(refuse_overwriting(in_folder, inputs).ok());
  EXPECT_TRUE(refuse_overwriting(scratch / "data" / "new", inputs, InFolders::contents).ok());
  EXPECT_TRUE(refuse_overwriting(scratch / "database", inputs, InFolders::contents).ok());
}

TEST(ReadFile, DoesNotWaitForPipes) {
  const test::Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(scratch / "pipe", 100));
}

TEST(ReadFile, RefusesWhatIsTooLongMissingOrNoFile) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_file_atomic(scratch / "f", "12345").ok());
  EXPECT_TRUE(read_file(scratch / "f", 5).ok());
  EXPECT_THAT(read_file(scratch / "f", 4).error().message, HasSubstr("limit of 4 bytes"));
  EXPECT_EQ(read_file(scratch / "g", 4).error().code, ErrorCode::not_found);
  EXPECT_EQ(read_file(scratch.path(), 4).error().code, ErrorCode::invalid_input);
  EXPECT_FALSE(read_file("/dev/zero", 100).ok());
}

TEST(ReadFile, ReadsFilesThatDoNotTellTheirSize) {
  EXPECT_FALSE(read_file("/proc/self/stat", 1 << 20).or_throw().empty());
}

}  // namespace
}  // namespace gradloom
