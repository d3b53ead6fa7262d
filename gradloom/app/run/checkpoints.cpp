#include "gradloom/app/run/checkpoints.h"

#include <fmt/format.h>

#include "gradloom/io/file.h"
#include "gradloom/train/checkpoint.h"

namespace gradloom::app {
namespace {

struct ReadCheckpoint {
  Result<TensorFile> file;
  bool damaged = false;  // its bytes are not those that were written
};

ReadCheckpoint read_whole_checkpoint(const FilePlace& place) {
  if (auto readable = is_readable(place); !readable) return {readable.error()};
  auto file = read_safetensors(place);
  if (!file) return {file.error(), file.error().code != ErrorCode::out_of_memory};
  if (auto head = checkpoint_head(*file, place); !head)
    return {head.error(), head.error().code != ErrorCode::unsupported};
  return {std::move(file)};
}

}  // namespace

Result<SavedCheckpoint> read_checkpoint(const RunFolder& folder, const LogCallback& log) {
  const FilePlace last = folder.last_checkpoint(), previous = folder.previous_checkpoint();
  auto [newest, damaged] = read_whole_checkpoint(last);
  if (newest) return SavedCheckpoint{std::move(*newest), last};
  Error error = newest.error();
  if (!damaged && error.code != ErrorCode::not_found) return error;
  auto before = read_whole_checkpoint(previous).file;
  if (!before) {
    if (before.error().code != ErrorCode::not_found)
      error.message += fmt::format("; the checkpoint before it cannot be used either: {}", before.error().message);
    return error;
  }
  const std::string warning =
      fmt::format("{}; the checkpoint before it, {}, is used instead", error.message, previous.string());
  if (log) log(LogLevel::warning, warning);
  return SavedCheckpoint{std::move(*before), previous, damaged, warning};
}

}  // namespace gradloom::app
