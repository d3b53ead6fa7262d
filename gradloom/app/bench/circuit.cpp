#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "gradloom/app/circuit/jobs.h"
#include "gradloom/app/circuit/shipped.h"
#include "gradloom/circuit/json.h"
#include "gradloom/circuit/minimise.h"
#include "gradloom/circuit/run.h"

namespace gradloom::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCheckedHeight = 70, kCheckedWidth = 333;
constexpr int kCheckedSteps = 8, kLeastSteps = 5;

// The circuit that is timed against the one that was given, on both kinds of edges.
bool agrees(const Exec& exec, circuit::CellRule given, circuit::CellRule timed) {
  for (const circuit::Boundary boundary : {circuit::Boundary::periodic, circuit::Boundary::zero}) {
    given.boundary = timed.boundary = boundary;
    circuit::Grid expected(given.channels, kCheckedHeight, kCheckedWidth);
    circuit::fill_random(expected, 0.35, 1);
    circuit::Runner runner(exec, timed, expected.copy());
    for (int s = 0; s < kCheckedSteps; ++s) {
      expected = circuit::step_reference(given, expected);
      runner.step();
      if (!(runner.grid() == expected)) return false;
    }
  }
  return true;
}

struct Measured {
  std::string name, file;  // no file: it is part of the program
  circuit::AnyCircuit circuit;
};

std::vector<Measured> measured(const BenchCircuitOptions& o) {
  std::vector<Measured> result;
  for (const std::filesystem::path& file : o.circuits)
    result.push_back({std::filesystem::is_directory(file) ? file.filename().string() : file.stem().string(),
                      file.string(), load_circuit_of(file).or_throw()});
  if (!o.circuits.empty()) return result;
  for (const ShippedCircuit& shipped : shipped_circuits())
    result.push_back({std::string(shipped.name), "", circuit::parse_circuit_json(shipped.json).or_throw()});
  return result;
}

CircuitSpeed measure_run(const Exec& exec, const BenchCircuitOptions& o, const Measured& what) {
  if (!std::holds_alternative<circuit::CellRule>(what.circuit))
    throw_invalid(fmt::format("{} is a plain circuit; only a cell rule runs on a grid", what.file));
  const circuit::CellRule given = std::get<circuit::CellRule>(what.circuit);
  circuit::CellRule timed = given;
  timed.circuit = circuit::minimise(given.circuit).circuit;
  if (!agrees(exec, given, timed))
    throw Exception(
        ErrorCode::numeric,
        fmt::format(
            "{}: the fast version and the scalar reference differ: this build is broken, its speed means nothing",
            what.name));

  circuit::Grid start(given.channels, o.height, o.width);
  circuit::fill_random(start, 0.35, 1);
  circuit::Runner runner(exec, timed, std::move(start), {.tiles = circuit::RunOptions::Tiles::all});
  runner.step();
  double fastest = 1e300;
  const auto begin = Clock::now();
  for (int steps = 0; steps < kLeastSteps || std::chrono::duration<double>(Clock::now() - begin).count() < o.seconds;
       ++steps) {
    const auto before = Clock::now();
    runner.step();
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - before).count());
  }
  const double gcells = static_cast<double>(o.width) * static_cast<double>(o.height) / fastest * 1e-9;
  const circuit::CircuitSize size = circuit::size_of(timed.circuit);
  CircuitSpeed r;
  r.name = what.name;
  r.file = what.file;
  r.channels = given.channels;
  r.gates_given = given.circuit.gates.size();
  r.gates = size.gates;
  r.depth = size.depth;
  r.instructions = runner.program().instructions.size();
  r.temporaries = runner.program().temporaries;
  r.step_ms = fastest * 1e3;
  r.gcells_per_s = gcells;
  r.gcells_per_s_per_thread = gcells / exec.threads();
  r.gate_gcells_per_s = gcells * static_cast<double>(size.gates);
  return r;
}

}  // namespace

Result<BenchCircuitReport> bench_circuit(const BenchCircuitOptions& o) try {
  const Exec exec({o.threads, Variant::fast});
  BenchCircuitReport r{.width = o.width, .height = o.height, .threads = exec.threads()};
  for (const Measured& what : measured(o)) {
    const CircuitSpeed& speed = r.circuits.emplace_back(measure_run(exec, o, what));
    r.gcells_per_s[speed.name] = speed.gcells_per_s;
  }
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
