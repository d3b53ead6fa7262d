// gradloom: the program. Parses the command line, runs one command, and turns every failure into a message and an exit
// code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <new>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "cli/usage.h"

namespace gradloom::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  gradloom recipes                             list what can be trained\n"
    "  gradloom train kan-hello                     train, write to runs/kan-hello-0\n"
    "  gradloom train kan-hello --set epochs=50 --seed 3 --out runs/mine\n"
    "  gradloom resume runs/mine                    continue after an interruption\n"
    "  gradloom eval runs/mine --predictions p.csv  measure, and write predictions\n"
    "  gradloom predict runs/mine --data new.csv --out p.csv  predict new data\n"
    "  gradloom check kan-hello                     check the gradients\n"
    "\n"
    "Every command has --help, which shows [defaults], and --json. GRADLOOM_DATA names the folder of data files.\n"
    "Exit codes: 0 done, 1 check or run failed, 2 wrong usage or input, 3 a device is missing or failed.";

const char* default_hint(ErrorCode code) {
  switch (code) {
    case ErrorCode::missing_device:
      return "`gradloom devices` lists the devices";
    case ErrorCode::unsuitable_device:
    case ErrorCode::device_memory:
    case ErrorCode::device_lost:
      return "--device cpu always works";
    default:
      return "";
  }
}

enum class StandardOutput { open, closed };

// The command, by the ranks that it is for; the others wait for them.
int run_on_ranks(const Choice& choice, Comm* comm) {
  const bool here = !comm || comm->rank() == 0 || choice.who == Who::all_ranks;
  const int code = here ? choice.run(Output(choice.flags, choice.who == Who::all_ranks ? comm : nullptr)) : kDone;
  flush_results();
  return comm ? end_together(*comm, code) : code;
}

int run_choice(const Choice& choice, StandardOutput output) {
  const Output out(choice.flags);
  std::unique_ptr<Comm> comm;
  const auto fail = [&](const char* code, const char* message, std::string_view hint) {
    if (!comm && is_silent_rank())
      out.fail(code, fmt::format("{}: {}", speak_for_itself(), message), hint);
    else
      out.fail(code, message, hint);
    if (comm) comm->leave(message);
  };
  try {
    if (output == StandardOutput::closed)  // before hours of work whose result nobody would see
      throw Failure({ErrorCode::io, "standard output is closed, so the result cannot be written"},
                    "redirect it to a file or to /dev/null");
    comm = join_ranks(out);
    return run_on_ranks(choice, comm.get());
  } catch (const Failure& e) {
    fail(code_name(e.code()), e.what(), e.hint().empty() ? default_hint(e.code()) : e.hint());
    return exit_code(e.code());
  } catch (const Exception& e) {
    fail(code_name(e.code()), e.what(), default_hint(e.code()));
    return exit_code(e.code());
  } catch (const std::bad_alloc&) {
    fail(code_name(ErrorCode::out_of_memory), "not enough memory", "");
    return exit_code(ErrorCode::out_of_memory);
  } catch (const std::exception& e) {
    fail("internal", fmt::format("internal error: {}", e.what()).c_str(), "");
    return kFailed;
  }
}

// A command like others, so that a full disk is told.
Choice printing(std::string text) {
  Choice choice;
  choice.run = [text = std::move(text)](const Output& out) {
    out.print(text);
    return kDone;
  };
  return choice;
}

int run(std::vector<std::string> arguments, StandardOutput output) {
  CLI::App program("Train spline networks, logic automata and graph networks, bit-for-bit reproducible.", "gradloom");
  program.set_version_flag("--version", "gradloom " GRADLOOM_VERSION, "Print the version");
  program.formatter(help_formatter());
  program.option_defaults()->always_capture_default();
  program.require_subcommand(1);
  Choice choice;
  add_train_command(program, choice);
  add_resume_command(program, choice);
  add_eval_command(program, choice);
  add_predict_command(program, choice);
  add_check_command(program, choice);
  add_bench_command(program, choice);
  add_run_circuit_command(program, choice);
  add_export_command(program, choice);
  add_formula_command(program, choice);
  add_prune_command(program, choice);
  add_ged_command(program, choice);
  add_recipes_command(program, choice);
  add_devices_command(program, choice);
  program.footer(kExamples);  // last: commands inherit it

  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  try {
    refuse_swallowed_options(program, arguments);
    program.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    choice = printing(program.help());
  } catch (const CLI::CallForVersion& e) {
    choice = printing(fmt::format("{}\n", e.what()));
  } catch (const CLI::ParseError& e) {
    choice.flags.json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
    if (arguments.empty()) fmt::print(stderr, "{}\n", program.help());
    choice.run = [failure = usage_failure(program, arguments, e)](const Output&) -> int { throw failure; };
  }
  return run_choice(choice, output);
}

}  // namespace
}  // namespace gradloom::cli

int main(int argc, char** argv) {
  using gradloom::cli::StandardOutput;
  const auto output = gradloom::cli::open_closed_streams() ? StandardOutput::open : StandardOutput::closed;
  gradloom::cli::ignore_file_size_signal();
  if (gradloom::cli::is_silent_rank()) gradloom::cli::silence();
  return gradloom::cli::run({argv + 1, argv + argc}, output);
}
