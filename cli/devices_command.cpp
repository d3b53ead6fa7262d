#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "cli/commands.h"
#include "cli/options.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::cli {
namespace {

int devices(const Output& out) {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const std::vector<std::string> targets = kernels::simd_targets();
  out.print(fmt::format("{}\n", out.paint(Paint::bold, "cpu")));
  out.print_rows({{"threads", fmt::format("{}", threads)},
                  {"simd", fmt::format("{} (the first is used)", fmt::join(targets, ", "))}});
  out.print("This build has no GPU backend.\n");
  out.result({{"devices", {{{"name", "cpu"}, {"kind", "cpu"}, {"threads", threads}, {"simd", targets}}}},
              {"gpu_backend", nullptr}});
  return kDone;
}

}  // namespace

void add_devices_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("devices", "List what models can run on");
  add_output_options(*command, choice.flags);
  command->callback([&choice] { choice.run = devices; });
}

}  // namespace gradloom::cli
