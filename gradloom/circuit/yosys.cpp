#include "gradloom/circuit/yosys.h"

#include <fmt/format.h>

#include "gradloom/circuit/export.h"
#include "gradloom/circuit/subprocess.h"
#include "gradloom/circuit/validate.h"
#include "gradloom/io/file.h"

namespace gradloom::circuit {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{1} << 28;

Result<std::filesystem::path> located(const YosysOptions& options) {
  const std::filesystem::path program = options.program.empty() ? find_program("yosys") : options.program;
  if (program.empty()) return Error{ErrorCode::not_found, "yosys is not installed"};
  return program;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n\r\t");
  if (end == text.npos) return "it gave no message";
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start == text.npos ? 0 : start + 1, end - (start == text.npos ? 0 : start + 1) + 1).substr(0, 200);
}

}  // namespace

Result<Circuit> minimise_with_yosys(const Circuit& circuit, const YosysOptions& options) try {
  const auto program = located(options);
  if (!program) return program.error();
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "in.v", to_verilog(circuit, "top")).or_throw();
  // Without techmap before it, abc sees nothing to do.
  const std::string script =
      "read_verilog in.v; hierarchy -top top; proc; opt; techmap; opt; "
      "abc -g AND,NAND,OR,NOR,XOR,XNOR,ANDNOT,ORNOT; opt_clean -purge; write_blif out.blif";
  const auto end = run_program(*program, {"-q", "-p", script}, folder.path(), options.seconds);
  if (!end) return end.error();
  if (end->timed_out) return Error{ErrorCode::io, fmt::format("yosys was ended after {} seconds", options.seconds)};
  if (end->code != 0) return Error{ErrorCode::io, fmt::format("yosys failed: {}", last_line(end->output))};
  const std::string text = read_file(folder.path() / "out.blif", kMaxAnswer).or_throw();
  auto read = parse_blif(text, circuit.inputs, static_cast<std::uint32_t>(circuit.outputs.size()));
  if (!read) return Error{ErrorCode::io, fmt::format("the output of yosys cannot be read: {}", read.error().message)};
  return read;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::circuit
