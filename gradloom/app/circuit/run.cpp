#include "gradloom/circuit/run.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/circuit/jobs.h"
#include "gradloom/app/circuit/shipped.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/recipe.h"
#include "gradloom/circuit/json.h"
#include "gradloom/circuit/life_rule.h"
#include "gradloom/circuit/minimise.h"
#include "gradloom/circuit/rle.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

constexpr std::size_t kMaxPatternBytes = std::size_t{1} << 30;

std::vector<std::uint64_t> populations(const circuit::Grid& grid) {
  std::vector<std::uint64_t> counts;
  for (std::uint32_t c = 0; c < grid.channels(); ++c) counts.push_back(grid.population(c));
  return counts;
}

struct Start {
  circuit::Grid grid;
  std::string rule;
  std::optional<circuit::Bounds> bounds;  // that the pattern names
};

Start start_of(const RunCircuitOptions& o, std::uint32_t channels) {
  if (o.pattern.empty()) {
    if (o.width == 0 || o.height == 0)
      throw Exception(ErrorCode::invalid_input,
                      "the grid has no start: give a pattern (--pattern FILE.rle), or a size for random cells (--width "
                      "64 --height 64, and --random DENSITY)");
    Start start{circuit::Grid(channels, o.height, o.width), "", std::nullopt};
    circuit::fill_random(start.grid, o.density, o.seed);
    return start;
  }
  const std::string text = read_file(o.pattern, kMaxPatternBytes).or_throw();
  auto read = circuit::parse_rle(text);
  if (!read) throw Exception(read.error().code, fmt::format("{}: {}", o.pattern.string(), read.error().message));
  const circuit::Grid& cells = read->cells;
  const circuit::Bounds bounds = read->bounds.value_or(circuit::Bounds{cells.width(), cells.height()});
  Start start{circuit::Grid(channels, o.height == 0 ? bounds.height : o.height, o.width == 0 ? bounds.width : o.width),
              read->rule, read->bounds};
  try {
    circuit::place_centred(start.grid, cells);
  } catch (const Exception& e) {
    throw Exception(e.code(), fmt::format("{}: {}", o.pattern.string(), e.what()));
  }
  return start;
}

// As viewers of patterns show them; a line that is wider than a terminal would show nothing.
std::string text_of(const circuit::Grid& grid) {
  constexpr std::size_t kLargest = 64;
  std::string text;
  if (grid.width() > kLargest || grid.height() > kLargest) return text;
  for (std::size_t y = 0; y < grid.height(); ++y) {
    for (std::size_t x = 0; x < grid.width(); ++x) text += grid.get(0, y, x) ? 'O' : '.';
    text += '\n';
  }
  return text;
}

Result<circuit::AnyCircuit> circuit_of_model(const std::filesystem::path& file) {
  auto session = open_model(file, {});
  if (!session) return session.error();
  auto circuit = (*session)->hard_circuit();
  if (!circuit)
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: a model of family \"{}\" has no circuit; models of the families \"automaton\" and "
                             "\"gates\" have one",
                             file.string(), (*session)->options().family)};
  return std::move(*circuit);
}

}  // namespace

Result<circuit::AnyCircuit> load_circuit_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    for (const ShippedCircuit& shipped : shipped_circuits())
      if (path == std::filesystem::path(shipped.name)) return circuit::parse_circuit_json(shipped.json);
  if (path.extension() == ".safetensors") return circuit_of_model(path);
  const std::filesystem::path recipe = path / "recipe.toml";
  if (!std::filesystem::exists(recipe, ignored) || std::filesystem::exists(path / "circuit.json", ignored))
    return circuit::load_circuit(path);
  auto text = read_file(recipe, kMaxRecipeBytes);
  if (!text) return text.error();
  const std::string family = peek_string(*text, {}, "family", recipe_families().front());
  if (family == "automaton" || family == "gates")
    return Error{ErrorCode::not_found,
                 fmt::format("{0} has no circuit yet: the run is not finished; `gradloom resume {0}` continues it",
                             path.string())};
  return Error{
      ErrorCode::invalid_input,
      fmt::format("{0} is a run of family \"{1}\", and only runs of the families \"automaton\" and \"gates\" have "
                  "a circuit; `gradloom eval {0}` measures it, its report is {0}/report.html",
                  path.string(), family)};
}

Result<RanCircuit> run_circuit(const RunCircuitOptions& o) try {
  const circuit::AnyCircuit any = load_circuit_of(o.circuit).or_throw();
  if (!std::holds_alternative<circuit::CellRule>(any))
    return Error{
        ErrorCode::invalid_input,
        fmt::format("{0}: a plain circuit does not say how cells follow each other; only a \"cell_rule\" runs on a "
                    "grid; `gradloom export {0} --format c` writes it as a function",
                    o.circuit.string())};
  circuit::CellRule rule = std::get<circuit::CellRule>(any);
  const std::size_t given = rule.circuit.gates.size();
  if (o.boundary) rule.boundary = *o.boundary;
  if (o.minimiser != Minimiser::off)
    rule.circuit = circuit::minimise(rule.circuit, {.moves = 2000, .walks = 1}).circuit;

  Start start = start_of(o, rule.channels);
  if (!o.out.empty() && start.grid.channels() > 8)
    return Error{ErrorCode::unsupported,
                 fmt::format("a pattern file has at most 8 channels; the circuit has {}", start.grid.channels())};
  RanCircuit r;
  r.circuit = o.circuit.string();
  r.width = start.grid.width();
  r.height = start.grid.height();
  r.channels = rule.channels;
  r.boundary = name_of(circuit::kBoundaries, rule.boundary);
  r.steps = o.steps;
  r.gates = given;
  r.gates_run = rule.circuit.gates.size();
  const std::string name = circuit::life_rule(rule);
  if (!name.empty()) r.rule = name;
  if (!start.rule.empty()) {
    const std::string wanted = circuit::standard_rule(start.rule);
    if (wanted.empty())
      r.warnings.push_back(fmt::format("the pattern's rule, {}, is not known here", start.rule));
    else if (wanted != name)
      r.warnings.push_back(fmt::format("the pattern is for the rule {}; the circuit computes {}", wanted,
                                       name.empty() ? "another one" : name));
  }
  if (start.bounds && !o.boundary && start.bounds->boundary != rule.boundary)
    r.warnings.push_back(fmt::format("the pattern wants {}; --boundary {} gives it that",
                                     rule.boundary == circuit::Boundary::zero ? "a torus" : "zeros around the grid",
                                     rule.boundary == circuit::Boundary::zero ? "periodic" : "zero"));
  r.population.start = populations(start.grid);
  const double cells = static_cast<double>(start.grid.width()) * static_cast<double>(start.grid.height());

  const Exec exec({o.threads, Variant::fast});
  circuit::Runner runner(exec, rule, std::move(start.grid), {o.fire, o.seed});
  const auto begin = std::chrono::steady_clock::now();
  runner.step(o.steps);
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  r.population.end = populations(runner.grid());
  r.threads = exec.threads();
  r.gcells_per_s = r.seconds > 0 ? cells * static_cast<double>(o.steps) / r.seconds * 1e-9 : 0.0;
  r.tiles_computed_share = o.steps == 0 ? 0.0
                                        : static_cast<double>(runner.tiles_computed()) /
                                              (static_cast<double>(o.steps) * static_cast<double>(runner.tiles()));
  if (!o.out.empty()) {
    write_file_atomic(o.out, circuit::to_rle(runner.grid(), name)).or_throw();
    r.out = o.out.string();
  }
  r.cells = text_of(runner.grid());
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
