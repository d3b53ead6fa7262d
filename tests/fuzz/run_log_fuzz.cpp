// Logs of runs.
#include <nlohmann/json.hpp>

#include "gradloom/io/run_log.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  const auto log = read_run_log(file.path());
  if (!log) return 0;
  for (const nlohmann::json& line : log->lines) fuzz::require(line.is_object(), "a line is an object");
  fuzz::require(log->torn <= 1, "only the last line is torn");
  return 0;
}
