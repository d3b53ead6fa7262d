#include "gradloom/io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "gradloom/io/file_descriptor.h"
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

// A folder that is open, as a run has it.
FileDescriptor opened(const std::filesystem::path& folder) {
  return FileDescriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY));
}

TEST(FilePlace, BelowAFolderRefusesLinksToFilesAndFolders) {
  const test::Scratch scratch;
  std::filesystem::create_directories(scratch / "outside");
  std::filesystem::create_directories(scratch / "run/inner");
  ASSERT_TRUE(write_file_atomic(scratch / "outside/secret", "secret"));
  std::filesystem::create_symlink("../outside/secret", scratch / "run/link");
  std::filesystem::create_symlink("../outside", scratch / "run/folder");
  std::filesystem::create_symlink("../outside/none", scratch / "run/dangling");
  const FileDescriptor run = opened(scratch / "run");
  for (const char* name : {"link", "folder/secret", "dangling"}) {
    const FilePlace place(run.get(), scratch / "run", name);
    const auto read = read_file(place, 100);
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_THAT(read.error().message, HasSubstr("symbolic link")) << name;
    const auto written = write_file_atomic(place, "new");
    ASSERT_FALSE(written.ok()) << name;
    EXPECT_THAT(written.error().message, HasSubstr("symbolic link")) << name;
  }
  EXPECT_EQ(read_file(scratch / "outside/secret", 100).value(), "secret");
  EXPECT_FALSE(std::filesystem::exists(scratch / "outside/none"));
  const FilePlace fine(run.get(), scratch / "run", "inner/file");
  ASSERT_TRUE(write_file_atomic(fine, "text"));
  EXPECT_EQ(read_file(fine, 100).value(), "text");
  EXPECT_EQ(read_file(scratch / "run/link", 100).value(), "secret") << "a plain path follows links";
}

TEST(AtomicFile, KeepsTheFileBeforeUnderItsOtherName) {
  const test::Scratch scratch;
  const FilePlace place = FilePlace(scratch / "new").keeping("old");
  for (const char* content : {"1", "2", "3"}) ASSERT_TRUE(write_file_atomic(place, content));
  EXPECT_EQ(read_file(scratch / "new", 100).value(), "3");
  EXPECT_EQ(read_file(scratch / "old", 100).value(), "2");
  EXPECT_EQ(scratch.entries(), 2u);
  const auto failed = write_file_atomic(place, [](FileSink&) -> Result<void> {
    return Error{ErrorCode::numeric, "gave up"};
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(read_file(scratch / "new", 100).value(), "3");
  EXPECT_EQ(read_file(scratch / "old", 100).value(), "2");
  EXPECT_EQ(scratch.entries(), 2u);
}

TEST(AtomicFile, RemovesWhatKilledWritersLeftAndNothingElse) {
  const test::Scratch scratch;
  for (const char* name : {".f.1.0.gradloom.tmp", ".g.2.3.gradloom.tmp", ".f.1.0.tmp", "f.gradloom.tmp"})
    std::ofstream(scratch / name) << "half";
  std::filesystem::create_symlink("f.gradloom.tmp", scratch / ".link.gradloom.tmp");
  // A writer that is not done: its temporary is there and locked while another one writes.
  const auto written = write_file_atomic(scratch / "f", [&](FileSink& sink) -> Result<void> {
    EXPECT_TRUE(write_file_atomic(scratch / "other", "text"));
    return sink.write("whole");
  });
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(read_file(scratch / "f", 100).value(), "whole");
  EXPECT_FALSE(std::filesystem::exists(scratch / ".f.1.0.gradloom.tmp"));
  EXPECT_FALSE(std::filesystem::exists(scratch / ".g.2.3.gradloom.tmp"));
  EXPECT_EQ(scratch.entries(), 5u) << "f, other, .f.1.0.tmp, f.gradloom.tmp and the link";
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
