#include "cli/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gradloom::cli {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input:
    case ErrorCode::not_found:
    case ErrorCode::busy:
    case ErrorCode::unsupported:
      return kWrongUsage;
    case ErrorCode::missing_device:
    case ErrorCode::unsuitable_device:
    case ErrorCode::device_memory:
    case ErrorCode::device_lost:
      return kMissingDevice;
    case ErrorCode::io:
    case ErrorCode::numeric:
    case ErrorCode::out_of_memory:
      break;
  }
  return kFailed;
}

const char* code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input:
      return "invalid_input";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::io:
      return "io";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::numeric:
      return "numeric";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::missing_device:
      return "missing_device";
    case ErrorCode::unsuitable_device:
      return "unsuitable_device";
    case ErrorCode::device_memory:
      return "device_memory";
    case ErrorCode::device_lost:
      return "device_lost";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
  }
  return "internal";
}

int with_hints(std::span<const KeyHint> hints, const std::function<int()>& run) {
  try {
    return run();
  } catch (const Failure&) {
    throw;
  } catch (const Exception& e) {
    const std::string_view said = e.what();
    for (const KeyHint& hint : hints)
      if (said.find(hint.key) != said.npos) throw Failure({e.code(), e.what()}, hint.hint);
    throw;
  }
}

Output::Output(OutputFlags flags, Comm* comm)
    : flags_(flags), comm_(comm), results_(terminal_of(stdout)), messages_(terminal_of(stderr)) {}

void Output::print(std::string_view text) const {
  if (flags_.json) return;
  const std::string safe = printable(text, results_);
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

void Output::tell(std::string_view text) const {
  const std::string safe = printable(text, messages_);
  std::fwrite(safe.data(), 1, safe.size(), stderr);
}

void Output::print_rows(const std::vector<std::pair<std::string, std::string>>& rows) const {
  std::size_t width = 0;
  for (const auto& [label, text] : rows) width = std::max(width, label.size());
  for (const auto& [label, text] : rows)
    print(fmt::format("  {}  {}\n", paint(Paint::dim, fmt::format("{:<{}}", label, width)), text));
}

void Output::result(const nlohmann::json& object) const {
  if (!flags_.json) return;
  const std::string text = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Output::fail(std::string_view code, std::string_view message, std::string_view hint) const {
  tell(painted(Paint::red, fmt::format("gradloom: {}", message), messages_) + "\n");
  if (!hint.empty()) tell(fmt::format("{} {}\n", painted(Paint::dim, "hint:", messages_), hint));
  result({{"error", {{"code", code}, {"message", message}}}});
}

void flush_results() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw Exception(ErrorCode::io, fmt::format("cannot write the result to standard output: {}", std::strerror(errno)));
}

}  // namespace gradloom::cli
