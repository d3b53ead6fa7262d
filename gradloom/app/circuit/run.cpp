#include "gradloom/circuit/run.h"

#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/circuit/jobs.h"
#include "gradloom/app/circuit/shipped.h"
#include "gradloom/app/circuit/strips.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/recipe.h"
#include "gradloom/circuit/json.h"
#include "gradloom/circuit/life_rule.h"
#include "gradloom/circuit/minimise.h"
#include "gradloom/circuit/rle.h"
#include "gradloom/data/fingerprint.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

constexpr std::size_t kMaxPatternBytes = std::size_t{1} << 30;

struct Start {
  circuit::Grid grid;  // of a strip
  Strip strip;
  std::string rule;
  std::optional<circuit::Bounds> bounds;  // that the pattern names
  std::uint64_t fingerprint = 0;          // of what the whole grid follows from
};

std::uint64_t fingerprint_of_start(const RunCircuitOptions& o, std::string_view pattern) {
  Fingerprint f;
  f.take(pattern);
  f.take(o.width);
  f.take(o.height);
  f.take(std::bit_cast<std::uint64_t>(o.density));
  f.take(o.seed);
  return f.value();
}

// What else the cells follow from, and whether rank 0 asks the others for them.
std::uint64_t fingerprint_of_options(const RunCircuitOptions& o) {
  Fingerprint f;
  f.take(o.steps);
  f.take(std::bit_cast<std::uint64_t>(o.fire));
  f.take(o.out.empty());
  return f.value();
}

Start start_of(const RunCircuitOptions& o, const circuit::CellRule& rule) {
  if (o.pattern.empty()) {
    if (o.width == 0 || o.height == 0)
      throw_invalid(
          "the grid has no initial state: give a pattern (--pattern FILE.rle), or a size for random cells (--width "
          "64 --height 64, and --random DENSITY)");
    // Of a grid in one memory, as what is written is; else of the random numbers.
    constexpr std::uint64_t kWritten = std::uint64_t{1} << 32, kMostCells = std::uint64_t{1} << 56;
    if (o.width > (o.out.empty() && o.comm ? kMostCells : kWritten) / o.height)
      throw_invalid(fmt::format(
          "a grid of {} x {} cells is too large; it may have at most 2^32 cells, or as many on each rank where several "
          "ranks share it and --out is not set",
          o.width, o.height));
    const Strip strip = strip_of(o.comm, o.height, rule.boundary);
    Start start{circuit::Grid(rule.channels, strip.rows(), o.width), strip, "", std::nullopt,
                fingerprint_of_start(o, {})};
    circuit::fill_random(start.grid, o.density, o.seed, strip.rows_of());
    return start;
  }
  const std::string text = read_file(o.pattern, kMaxPatternBytes).or_throw();
  auto read = circuit::parse_rle(text);
  if (!read) throw Exception(read.error().code, fmt::format("{}: {}", o.pattern.string(), read.error().message));
  const circuit::Grid& cells = read->cells;
  const circuit::Bounds bounds = read->bounds.value_or(circuit::Bounds{cells.width(), cells.height()});
  const std::size_t height = o.height == 0 ? bounds.height : o.height;
  circuit::Grid whole(rule.channels, height, o.width == 0 ? bounds.width : o.width);
  try {
    circuit::place_centred(whole, cells);
  } catch (const Exception& e) {
    throw Exception(e.code(), fmt::format("{}: {}", o.pattern.string(), e.what()));
  }
  const Strip strip = strip_of(o.comm, height, rule.boundary);
  return {o.comm ? cut_strip(whole, strip) : std::move(whole), strip, read->rule, read->bounds,
          fingerprint_of_start(o, text)};
}

// Whether it is shown: a line that is wider than a terminal would show nothing.
bool is_small(std::size_t width, std::size_t height) {
  constexpr std::size_t kLargest = 64;
  return width <= kLargest && height <= kLargest;
}

// As viewers of patterns show them.
std::string text_of(const circuit::Grid& grid) {
  std::string text;
  if (!is_small(grid.width(), grid.height())) return text;
  for (std::size_t y = 0; y < grid.height(); ++y) {
    for (std::size_t x = 0; x < grid.width(); ++x) text += grid.get(0, y, x) ? 'O' : '.';
    text += '\n';
  }
  return text;
}

// A rule that does more than count has the name of the circuit. Golly looks for it in the file NAME.rule.
std::string pattern_rule(const std::filesystem::path& circuit) {
  const std::filesystem::path path = (std::filesystem::absolute(circuit) / "").lexically_normal().parent_path();
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  std::string name = (folder ? path.filename() : path.stem()).string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  return name;
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

Result<circuit::AnyCircuit> circuit_of_file(const std::filesystem::path& path) {
  auto circuit = circuit::load_circuit(path);
  if (circuit || circuit.error().code != ErrorCode::invalid_input) return circuit;
  return Error{ErrorCode::invalid_input,
               circuit.error().message + " (`gradloom export DIR --format json` writes what is read)"};
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
    return circuit_of_file(path);
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
    return Error{ErrorCode::invalid_input,
                 fmt::format("{0}: a plain circuit is not a cell rule; only a circuit of kind \"cell_rule\" runs on a "
                             "grid; `gradloom export {0} --format c` writes it as a function",
                             o.circuit.string())};
  circuit::CellRule rule = std::get<circuit::CellRule>(any);
  const std::size_t given = rule.circuit.gates.size();
  if (o.boundary) rule.boundary = *o.boundary;
  if (o.minimiser != Minimiser::off)
    rule.circuit = circuit::minimise(rule.circuit, {.moves = 2000, .walks = 1}).circuit;

  Start start = start_of(o, rule);
  if (o.comm)
    require_same(*o.comm, {{"another circuit", fingerprint_of_text(circuit::to_json(rule))},
                           {"another start", start.fingerprint},
                           {"other steps or options", fingerprint_of_options(o)}});
  if (!o.out.empty() && start.grid.channels() > 8)
    return Error{ErrorCode::unsupported,
                 fmt::format("a pattern file has at most 8 channels; the circuit has {}", start.grid.channels())};
  RanCircuit r;
  r.circuit = o.circuit.string();
  r.width = start.grid.width();
  r.height = start.strip.height;
  r.channels = rule.channels;
  r.boundary = name_of(circuit::kBoundaries, rule.boundary);
  r.steps = o.steps;
  r.gates = given;
  r.gates_run = rule.circuit.gates.size();
  const std::string name = circuit::life_rule(rule);
  if (!name.empty()) r.rule = name;
  const std::string written = name.empty() ? pattern_rule(o.circuit) : name;
  if (!start.rule.empty() && start.rule != written) {
    const std::string wanted = circuit::standard_rule(start.rule);
    if (wanted.empty())
      r.warnings.push_back(fmt::format(
          "the rule of the pattern, {}, is unknown, so it cannot be compared with the circuit", start.rule));
    else if (wanted != name)
      r.warnings.push_back(fmt::format("the pattern is for the rule {}; the circuit computes {}", wanted,
                                       name.empty() ? "another one" : name));
  }
  if (start.bounds && !o.boundary && start.bounds->boundary != rule.boundary)
    r.warnings.push_back(fmt::format("the pattern is for {}; set --boundary {}",
                                     rule.boundary == circuit::Boundary::zero ? "a torus" : "zeros around the grid",
                                     rule.boundary == circuit::Boundary::zero ? "periodic" : "zero"));
  const double cells = static_cast<double>(r.width) * static_cast<double>(r.height);

  const Exec exec({o.threads, Variant::fast});
  StripRunner runner(exec, o.comm, rule, std::move(start.grid), start.strip, {o.fire, o.seed});
  r.population.start = runner.populations();
  const auto begin = std::chrono::steady_clock::now();
  runner.step(o.steps);
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  r.population.end = runner.populations();
  r.threads = exec.threads();
  if (o.comm) r.ranks = o.comm->size();
  r.gcells_per_s = r.seconds > 0 ? cells * static_cast<double>(o.steps) / r.seconds * 1e-9 : 0.0;
  r.tiles_computed_share = runner.tiles_computed_share();
  if (o.out.empty() && !is_small(r.width, r.height)) return r;
  const circuit::Grid end = runner.whole();
  if (o.comm && o.comm->rank() > 0) return r;
  if (!o.out.empty()) {
    write_file_atomic(o.out, circuit::to_rle(end, written)).or_throw();
    r.out = o.out.string();
  }
  r.cells = text_of(end);
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
