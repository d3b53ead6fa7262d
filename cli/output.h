// What the program prints: results on standard output, everything else on standard error, colour where it helps.
#pragma once

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal.h"
#include "gradloom/base/error.h"
#include "gradloom/comm/comm.h"

namespace gradloom::cli {

constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2, kMissingDevice = 3;

int exit_code(ErrorCode code);
const char* code_name(ErrorCode code);  // "invalid_input": the word that --json uses

// An error with a line of advice below it.
class Failure : public Exception {
 public:
  Failure(Error error, std::string hint) : Exception(std::move(error)), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

// What the key of a recipe, which messages name, is called on a command line.
struct KeyHint {
  std::string_view key;
  const char* hint;
};
// The result of a command. An error that names one of the keys gets its hint.
int with_hints(std::span<const KeyHint> hints, const std::function<int()>& run);

struct OutputFlags {
  bool json = false;
  bool quiet = false;
};

class Output {
 public:
  // `comm`: the ranks that run the command together, of which this one speaks if it is rank 0; null: one process.
  explicit Output(OutputFlags flags, Comm* comm = nullptr);

  Comm* comm() const { return comm_; }
  Output alone() const { return Output(flags_); }               // for what this process does without the other ranks
  bool writes() const { return !comm_ || comm_->rank() == 0; }  // whether this process makes folders and files

  bool json() const { return flags_.json; }
  bool quiet() const { return flags_.quiet; }

  // A result for people, on standard output; nothing with --json. Control characters of foreign texts are escaped.
  void print(std::string_view text) const;
  // The same with the labels in one column, dimmed.
  void print_rows(const std::vector<std::pair<std::string, std::string>>& rows) const;
  std::string paint(Paint how, std::string_view text) const { return painted(how, text, results_); }

  // What people should know besides the result, on standard error; escaped in the same way.
  void tell(std::string_view text) const;

  // The one JSON object of --json; nothing without it. Throws Exception{io} when standard output refuses it.
  void result(const nlohmann::json& object) const;

  // "gradloom: message" and the hint on standard error; {"error": ...} on standard output with --json.
  void fail(std::string_view code, std::string_view message, std::string_view hint) const;

 private:
  OutputFlags flags_;
  Comm* comm_;
  Terminal results_, messages_;  // standard output and standard error
};

// Flushes standard output; throws Exception{io} when something that was printed is lost.
void flush_results();

}  // namespace gradloom::cli
