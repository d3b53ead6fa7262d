// What the commands on hard circuits do: run one on a grid, export it with a proof, measure its speed.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/circuit/json.h"
#include "gradloom/io/fields.h"

namespace gradloom {
class Comm;
}

namespace gradloom::app {

// circuit::load_circuit(), or a circuit that ships with the program, by its name, if there is no such file; of a run
// without a circuit it says which family the run is of and what can be done with it.
Result<circuit::AnyCircuit> load_circuit_of(const std::filesystem::path& file_or_folder);

enum class Minimiser { own, yosys, off };
inline constexpr Choice<Minimiser> kMinimisers[] = {
    {Minimiser::own, "own", "the minimiser of this program"},
    {Minimiser::yosys, "yosys", "yosys and abc, if installed"},
    {Minimiser::off, "off", "none"},
};

struct RunCircuitOptions {
  std::filesystem::path circuit;      // as load_circuit_of() takes it
  std::filesystem::path pattern;      // placed in the middle; empty: random cells
  double density = 0.5;               // of random cells
  std::size_t width = 0, height = 0;  // 0: what the pattern's rule names, else the pattern's own
  std::uint64_t steps = 1;
  std::filesystem::path out;                  // where the last state goes; may be empty
  std::optional<circuit::Boundary> boundary;  // instead of the circuit's own
  double fire = 1.0;
  std::uint64_t seed = 0;  // of random cells and firing
  unsigned threads = 0;
  Minimiser minimiser = Minimiser::own;  // before running; the result is the same
  // Ranks that call it alike, each for a strip of rows; the same bits. Null: this process alone. Not owned.
  Comm* comm = nullptr;
};

struct RanCircuit {
  struct Population {
    std::vector<std::uint64_t> start, end;  // per channel
    GRADLOOM_FIELDS(start, end)
  };

  std::string cells;  // channel 0 of the last state, a line for each row of '.' and 'O'; empty for a large grid
  std::string circuit, boundary;
  std::optional<std::string> rule, out;  // the rule of one that counts neighbours
  std::vector<std::string> warnings;
  std::size_t width = 0, height = 0, gates = 0, gates_run = 0;
  std::uint32_t channels = 0;
  std::uint64_t steps = 0;
  Population population;
  unsigned threads = 0;
  std::optional<unsigned> ranks;  // that ran strips of it; absent: one process
  double seconds = 0.0, gcells_per_s = 0.0, tiles_computed_share = 0.0;

  GRADLOOM_FIELDS(circuit, boundary, rule, out, warnings, width, height, gates, gates_run, channels, steps, population,
                  threads, ranks, seconds, gcells_per_s, tiles_computed_share)
};

// With options.comm rank 0 writes, and its result is that of all.
Result<RanCircuit> run_circuit(const RunCircuitOptions& options);

enum class ExportFormat { c, verilog, circuit_json, dot, svg, golly };
inline constexpr Choice<ExportFormat> kExportFormats[] = {
    {ExportFormat::c, "c", "C"},
    {ExportFormat::verilog, "verilog", "Verilog"},
    {ExportFormat::circuit_json, "json", "circuit.json"},
    {ExportFormat::dot, "dot", "Graphviz"},
    {ExportFormat::svg, "svg", "a drawing"},
    {ExportFormat::golly, "golly", "a .rule file of Golly"},
};

struct ExportCircuitOptions {
  std::filesystem::path circuit;  // as load_circuit_of() takes it
  ExportFormat format = ExportFormat::circuit_json;
  std::filesystem::path out;  // empty: the text is in the result only
  Minimiser minimiser = Minimiser::own;
  std::vector<std::uint32_t> observed;  // of a cell rule: drop what these channels never depend on; empty: keep all
  bool verify = false;                  // prove the file equal to the circuit that was read
  std::string name = "circuit";         // of the function or module
  unsigned threads = 0;
  const std::atomic<bool>* stop = nullptr;  // not owned, may be null; ends the proof
};

struct ExportedCircuit {
  struct Step {
    std::string name;
    std::size_t gates = 0, active = 0, depth = 0;
    GRADLOOM_FIELDS(name, gates, active, depth)
  };
  struct OutputProof {
    std::string method;
    std::uint32_t inputs = 0;
    std::uint64_t assignments = 0;
    bool proved = false;
    GRADLOOM_FIELDS(method, inputs, assignments, proved)
  };

  std::string text;
  std::string circuit, format;
  std::optional<std::string> out, test_bench;  // the files; a test bench of Verilog alone
  std::vector<Step> steps;
  std::size_t gates = 0, active = 0, depth = 0;
  std::optional<std::vector<std::int64_t>> channels;  // of a sliced cell rule: where each went, -1: removed
  std::optional<bool> proved, equal;                  // with verify, like the two below
  std::optional<std::vector<OutputProof>> outputs;
  std::optional<std::string> note;

  GRADLOOM_FIELDS(circuit, format, out, test_bench, steps, gates, active, depth, channels, proved, equal, outputs, note)
};

// Fails with numeric when the proof finds a difference in what was written (the file stays, for a look at it), with
// unsupported when a file is to be verified that cannot be read back (SVG, Golly), with not_found when yosys is asked
// for and not installed.
Result<ExportedCircuit> export_circuit(const ExportCircuitOptions& options);
// The same of a circuit in memory; options.circuit is what it is called.
Result<ExportedCircuit> export_circuit(circuit::AnyCircuit circuit, const ExportCircuitOptions& options);

struct BenchCircuitOptions {
  std::vector<std::filesystem::path> circuits;  // none: the shipped ones
  std::size_t width = 8192, height = 8192;
  unsigned threads = 1;
  double seconds = 1.0;  // for each circuit, about
};

struct CircuitSpeed {
  std::string name, file;  // no file: it is part of the program
  std::uint32_t channels = 0;
  std::size_t gates_given = 0, gates = 0, depth = 0;  // as it was, and minimised
  std::size_t instructions = 0, temporaries = 0;
  double step_ms = 0.0, gcells_per_s = 0.0, gcells_per_s_per_thread = 0.0, gate_gcells_per_s = 0.0;

  GRADLOOM_FIELDS(name, file, channels, gates_given, gates, depth, instructions, temporaries, step_ms, gcells_per_s,
                  gcells_per_s_per_thread, gate_gcells_per_s)
};

struct BenchCircuitReport {
  std::size_t width = 0, height = 0;
  unsigned threads = 1;
  std::map<std::string, double> gcells_per_s;  // by name
  std::vector<CircuitSpeed> circuits;

  GRADLOOM_FIELDS(width, height, threads, gcells_per_s, circuits)
};

// Tiles that stand still are computed too. Fails with numeric when the minimised circuit on a small grid differs from
// the definition.
Result<BenchCircuitReport> bench_circuit(const BenchCircuitOptions& options);

}  // namespace gradloom::app
