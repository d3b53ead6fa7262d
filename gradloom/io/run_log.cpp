#include "gradloom/io/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>

#include "gradloom/io/file.h"
#include "gradloom/io/open_file.h"

namespace gradloom {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestLog = std::size_t{1} << 32;

struct Cut {
  off_t bytes = 0;        // of the complete lines kept
  std::size_t lines = 0;  // kept
  off_t last = 0;         // where the last line kept begins
};

// Where the file would be cut to keep at most `limit` complete lines.
Result<Cut> find_cut(int fd, const std::filesystem::path& path, std::size_t limit) {
  Cut cut;
  off_t at = 0;
  std::vector<char> buffer(1 << 16);
  while (cut.lines < limit) {
    const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path, errno);
    if (n == 0) break;
    for (ssize_t i = 0; i < n && cut.lines < limit; ++i)
      if (buffer[static_cast<std::size_t>(i)] == '\n') cut = {at + i + 1, cut.lines + 1, cut.bytes};
    at += n;
  }
  return cut;
}

// Whether the last line kept is what a writer writes; a crash may leave a block of zeros that ends in a newline.
Result<bool> last_line_is_whole(int fd, const std::filesystem::path& path, const Cut& cut) {
  std::string line(static_cast<std::size_t>(cut.bytes - cut.last), '\0');
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::pread(fd, line.data() + done, line.size() - done, cut.last + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path, errno);
    if (n == 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return json::parse(line, nullptr, false).is_object();
}

}  // namespace

Result<RunLog> RunLog::open(const FilePlace& path) {
  auto opened = open_regular("open", path, O_RDWR | O_CREAT | O_APPEND, 0666);
  if (!opened) return opened.error();
  FileDescriptor file = std::move(*opened);
  const auto cut = find_cut(file.get(), path, std::numeric_limits<std::size_t>::max());
  if (!cut) return cut.error();
  off_t end = cut->bytes;
  if (cut->lines > 0) {
    const auto whole = last_line_is_whole(file.get(), path, *cut);
    if (!whole) return whole.error();
    if (!*whole) end = cut->last;
  }
  if (::ftruncate(file.get(), end) != 0) return system_error("cut", path, errno);
  return RunLog(path, std::move(file));
}

Result<void> RunLog::append(const json& line) {
  if (!line.is_object()) throw_invalid("a line of the run log must be a JSON object");
  // Text from outside (a file name) may not be UTF-8; a log with a replaced character is better than a run that stops.
  const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  struct stat before {};
  if (::fstat(file_.get(), &before) != 0) return system_error("write", path_, errno);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(file_.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int reason = errno;
      if (::ftruncate(file_.get(), before.st_size) != 0) return system_error("write and repair", path_, reason);
      return system_error("write", path_, reason);
    }
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void> RunLog::sync() {
  if (::fsync(file_.get()) != 0) return system_error("sync", path_, errno);
  if (folder_is_synced_) return {};
  const auto folder = open_folder_of("sync", path_);
  if (!folder) return folder.error();
  if (auto r = sync_folder(folder->descriptor.get(), path_); !r) return r;
  folder_is_synced_ = true;
  return {};
}

Result<RunLogContent> read_run_log(const FilePlace& path) {
  const auto text = read_file(path, kLongestLog);
  if (!text) return text.error();
  RunLogContent content;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = text->find('\n', at);
    const bool last = end == std::string::npos || end + 1 == text->size();
    json line;
    if (end != std::string::npos)
      line = json::parse(text->begin() + static_cast<std::ptrdiff_t>(at),
                         text->begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    ++number;
    if (line.is_object())
      content.lines.push_back(std::move(line));
    else if (last)
      content.torn = 1;
    else
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}:{}: this line of the run log is not a JSON object; remove it "
                               "or restore the file",
                               path.string(), number)};
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return content;
}

Result<std::size_t> keep_first_lines(const FilePlace& path, std::size_t lines) {
  const auto opened = open_regular("open", path, O_RDWR);
  if (!opened && opened.error().code == ErrorCode::not_found) return std::size_t{0};
  if (!opened) return opened.error();
  const FileDescriptor& file = *opened;
  const auto cut = find_cut(file.get(), path, lines);
  if (!cut) return cut.error();
  if (::ftruncate(file.get(), cut->bytes) != 0 || ::fsync(file.get()) != 0) return system_error("cut", path, errno);
  return cut->lines;
}

}  // namespace gradloom
