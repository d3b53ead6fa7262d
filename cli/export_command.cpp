#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/text.h"
#include "gradloom/app/circuit/jobs.h"
#include "gradloom/app/model/export.h"
#include "gradloom/app/run/open.h"

namespace gradloom::cli {
namespace {

struct ExportFlags {
  app::ExportCircuitOptions options;
  std::string circuit, format, out, name, minimise = "own";
};

// "8 of 8 outputs proved equal (exhaustive 7, sat 1)"
std::string proof_text(const std::vector<app::ExportedCircuit::OutputProof>& outputs) {
  std::map<std::string, int> by_method;
  std::size_t proved = 0;
  for (const app::ExportedCircuit::OutputProof& o : outputs) {
    ++by_method[o.method];
    proved += o.proved ? 1 : 0;
  }
  std::vector<std::string> parts;
  for (const auto& [method, count] : by_method)
    parts.push_back(method == "random" ? fmt::format("random only: {} tested, not proved", count)
                                       : fmt::format("{} {}", method, count));
  return fmt::format("{} of {} proved equal ({})", proved, counted(outputs.size(), "output"), fmt::join(parts, ", "));
}

// What is printed for people beside a file, or beside the text of one on standard output.
void tell_rows(const Output& out, const std::vector<std::pair<std::string, std::string>>& rows, bool to_file) {
  std::size_t width = 0;
  for (const auto& [label, text] : rows) width = std::max(width, label.size());
  if (!out.json() || !to_file)
    for (const auto& [label, text] : rows) out.tell(fmt::format("  {:<{}}  {}\n", label, width, text));
}

int export_network(const Output& out, const ExportFlags& flags) {
  for (const auto& [option, given] :
       {std::pair{"--minimise", flags.minimise != "own"}, std::pair{"--observe", !flags.options.observed.empty()},
        std::pair{"--verify", flags.options.verify}})
    if (given) throw_invalid(fmt::format("{} is for circuits; {} is a spline network", option, flags.circuit));
  app::ExportNetworkOptions o;
  const auto format = value_of<app::NetworkFormat>(app::kNetworkFormats, flags.format, "--format");
  if (!format)
    throw Exception(
        ErrorCode::invalid_input,
        fmt::format("--format {} is for circuits; the formats of spline networks are c, onnx and efficient-kan",
                    flags.format));
  o.format = *format, o.out = flags.out, o.name = flags.name.empty() ? o.name : flags.name;
  ExecFlags exec;
  exec.threads = flags.options.threads;
  const app::ExportedNetwork made = app::export_network(flags.circuit, run_options(out, exec), o).or_throw();
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("network",
                    fmt::format("widths [{}], {} parameters", fmt::join(made.widths, ", "), made.parameters));
  for (const std::string& difference : made.differences) rows.emplace_back("note", difference);
  for (const std::string& warning : made.warnings) rows.emplace_back("warning", warning);
  if (!made.out.empty()) rows.emplace_back("written to", made.out);
  tell_rows(out, rows, !flags.out.empty());
  nlohmann::json r = to_json(made);
  if (flags.out.empty()) {
    out.print(made.text);
    r["text"] = made.text;
  }
  out.result(r);
  return kDone;
}

int export_circuit(const Output& out, ExportFlags flags) {
  app::ExportCircuitOptions& o = flags.options;
  o.circuit = flags.circuit;
  o.out = flags.out;
  if (!flags.name.empty()) o.name = flags.name;
  app::refuse_overwriting_inputs(flags.out, flags.circuit, default_data_root()).or_throw();
  if (app::has_exported_network(flags.circuit)) return export_network(out, flags);
  if (!find_choice<app::ExportFormat>(app::kExportFormats, flags.format))
    throw_invalid(fmt::format("--format {} is for spline networks; {} is a circuit", flags.format, flags.circuit));
  o.format = value_of<app::ExportFormat>(app::kExportFormats, flags.format, "--format").or_throw();
  o.minimiser = value_of<app::Minimiser>(app::kMinimisers, flags.minimise, "--minimise").or_throw();
  const auto result = app::export_circuit(o);
  if (!result && result.error().code == ErrorCode::not_found && o.minimiser == app::Minimiser::yosys)
    throw Failure(result.error(), "--minimise own needs no other program");
  if (!result && result.error().code == ErrorCode::unsupported && o.verify)
    throw Failure(result.error(), "leave --verify out, or choose --format dot, a drawing that can be verified");
  if (!result && result.error().code == ErrorCode::unsupported && o.format == app::ExportFormat::golly)
    throw Failure(result.error(), "--observe keeps only what the channels that it names depend on");
  if (!result) throw Exception(result.error());

  std::vector<std::pair<std::string, std::string>> rows;
  for (const app::ExportedCircuit::Step& step : result->steps)
    rows.emplace_back(step.name, fmt::format("{}, depth {}", counted(step.gates, "gate"), step.depth));
  if (result->out) rows.emplace_back("written to", *result->out);
  if (result->test_bench) rows.emplace_back("test bench", *result->test_bench);
  if (result->outputs) rows.emplace_back("proof", proof_text(*result->outputs));
  if (result->note) rows.emplace_back("note", *result->note);
  // The text itself is the result when there is no file, so everything for people goes to standard error.
  tell_rows(out, rows, !flags.out.empty());
  nlohmann::json r = to_json(*result);
  if (flags.out.empty()) {
    out.print(result->text);
    r["text"] = result->text;
  }
  out.result(r);
  return result->proved.value_or(true) ? kDone : kFailed;
}

}  // namespace

void add_export_command(CLI::App& program, Choice& choice) {
  CLI::App* command =
      program.add_subcommand("export", "Write a hard circuit for other tools, with a proof, or a spline network");
  auto flags = std::make_shared<ExportFlags>();
  app::ExportCircuitOptions& o = flags->options;
  add_circuit_option(*command, flags->circuit);
  std::vector<std::string> formats;
  for (const auto& format : app::kExportFormats) formats.emplace_back(format.name);
  for (const auto& format : app::kNetworkFormats)
    if (std::find(formats.begin(), formats.end(), format.name) == formats.end()) formats.emplace_back(format.name);
  command
      ->add_option("--format", flags->format,
                   "Circuits: c, verilog, json, dot, svg or golly; spline networks: c, onnx or efficient-kan")
      ->type_name("FORMAT")
      ->required()
      ->check(CLI::IsMember(formats).description(""));
  command->add_option("--out", flags->out, "Write to this file instead of standard output")
      ->type_name("FILE")
      ->check(names_a_file);
  command->add_option("--minimise", flags->minimise, "own, yosys (if installed), or off")
      ->type_name("HOW")
      ->check(name_in(app::kMinimisers));
  command->add_option("--observe", o.observed, "Keep only what these channels depend on")
      ->type_name("C,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--name", flags->name, "Name of the function, module or rule; a rule must be named like its file")
      ->type_name("NAME");
  command->add_flag("--verify", o.verify, "Read the exported file back and prove it equal to the circuit");
  add_threads_option(*command, o.threads);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom export circuit.json --format verilog --out life.v --verify\n"
      "  gradloom export runs/mine --format c --out network.h");
  command->callback(
      [flags, &choice] { choice.run = [flags](const Output& out) { return export_circuit(out, *flags); }; });
}

}  // namespace gradloom::cli
