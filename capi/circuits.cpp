// Hard circuits: loaded, run on grids, evaluated, exported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capi/arrays.h"
#include "capi/hooks.h"
#include "gradloom/app/circuit/jobs.h"
#include "gradloom/app/circuit/shipped.h"
#include "gradloom/circuit/life_rule.h"
#include "gradloom/circuit/run.h"
#include "gradloom/circuit/simulate.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::capi {
namespace {

const circuit::CellRule& rule_of(const CircuitObject& object) {
  const auto* rule = std::get_if<circuit::CellRule>(&object.rule);
  if (!rule) throw_invalid("circuit: a plain circuit is not a cell rule and cannot run on a grid; evaluate it instead");
  return *rule;
}

circuit::Grid grid_of(const Strided<std::uint8_t>& cells, std::uint32_t channels) {
  if (cells.extent(0) != channels)
    throw_invalid(fmt::format("start has {} channels, the circuit {}", cells.extent(0), channels));
  circuit::Grid grid(channels, cells.extent(1), cells.extent(2));
  for (std::uint32_t c = 0; c < channels; ++c)
    for (std::size_t y = 0; y < grid.height(); ++y)
      for (std::size_t x = 0; x < grid.width(); ++x) {
        const std::uint8_t bit = cells.at(c, y, x);
        if (bit > 1) throw_invalid(fmt::format("start ({}, {}, {}) is {}; it must be 0 or 1", c, y, x, bit));
        if (bit) grid.set(c, y, x, true);
      }
  return grid;
}

void need_shape(const Strided<std::uint8_t>& end, const Strided<std::uint8_t>& start) {
  if (end.shape != start.shape)
    throw_invalid(fmt::format("end is ({}), but must be ({}) as start is", fmt::join(end.shape, ", "),
                              fmt::join(start.shape, ", ")));
}

}  // namespace
}  // namespace gradloom::capi

using namespace gradloom;
using namespace gradloom::capi;

int gradloom_circuit_load(const char* path, gradloom_handle* circuit) {
  return call([&] {
    given(circuit, "circuit");
    *circuit = open_object(std::make_shared<CircuitObject>(app::load_circuit_of(given(path, "path")).or_throw()));
  });
}

int gradloom_circuit_parse(const char* json, gradloom_handle* circuit) {
  return call([&] {
    given(circuit, "circuit");
    *circuit =
        open_object(std::make_shared<CircuitObject>(circuit::parse_circuit_json(given(json, "json")).or_throw()));
  });
}

int gradloom_circuit_of(gradloom_handle model, gradloom_handle* circuit) {
  return call([&] {
    given(circuit, "circuit");
    const Used<ModelObject> used(model, "model");
    auto found = used->fitted.session().hard_circuit();
    if (!found)
      throw Exception(ErrorCode::unsupported,
                      fmt::format("a model of family \"{}\" has no circuit", used->fitted.session().options().family));
    *circuit = open_object(std::make_shared<CircuitObject>(std::move(*found)));
  });
}

int gradloom_circuits(char** json) {
  return call([&] {
    given(json, "json");
    nlohmann::json names = nlohmann::json::array();
    for (const app::ShippedCircuit& shipped : app::shipped_circuits()) names.push_back(shipped.name);
    *json = copy_text(names.dump());
  });
}

int gradloom_circuit_describe(gradloom_handle circuit, char** json) {
  return call([&] {
    given(json, "json");
    const Used<CircuitObject> used(circuit, "circuit");
    const circuit::Circuit& plain = circuit::circuit_of(used->rule);
    const circuit::CircuitSize size = circuit::size_of(plain);
    nlohmann::json about{{"inputs", plain.inputs},
                         {"outputs", plain.outputs.size()},
                         {"gates", size.gates},
                         {"active", size.active},
                         {"depth", size.depth}};
    if (const auto* rule = std::get_if<circuit::CellRule>(&used->rule)) {
      about["channels"] = rule->channels;
      about["boundary"] = name_of(circuit::kBoundaries, rule->boundary);
      about["rule"] = circuit::life_rule(*rule);
    }
    *json = copy_text(about.dump());
  });
}

int gradloom_circuit_run(gradloom_handle circuit, const char* settings, const gradloom_hooks* hooks,
                         const gradloom_array* start, const gradloom_array* end) {
  return call([&] {
    Settings s(settings);
    const Hooks heard(hooks);
    const std::uint64_t steps = s.value("steps", std::uint64_t{1}), seed = s.value("seed", std::uint64_t{0});
    const unsigned threads = s.threads();
    const double fire = s.value("fire", 1.0);
    const std::string boundary = s.value("boundary", std::string());
    s.done();
    if (!(fire >= 0 && fire <= 1))
      throw_invalid(fmt::format("settings: 'fire' is {}; it must be a probability from 0 to 1", fire));
    const Used<CircuitObject> used(circuit, "circuit");
    circuit::CellRule rule = rule_of(*used);
    if (!boundary.empty())
      rule.boundary = value_of<circuit::Boundary>(circuit::kBoundaries, boundary, "boundary").or_throw();
    const auto from = strided<std::uint8_t>(start, "start", 3), to = strided<std::uint8_t>(end, "end", 3);
    need_shape(to, from);
    const Exec exec({.threads = threads});
    circuit::Runner runner(exec, rule, grid_of(from, rule.channels), {fire, seed});
    while (runner.steps() < steps && !heard.stop()->set) runner.step();
    for (std::uint32_t c = 0; c < rule.channels; ++c)
      for (std::size_t y = 0; y < to.extent(1); ++y)
        for (std::size_t x = 0; x < to.extent(2); ++x) to.at(c, y, x) = runner.grid().get(c, y, x) ? 1 : 0;
  });
}

int gradloom_circuit_evaluate(gradloom_handle circuit, const gradloom_array* in, const gradloom_array* out) {
  return call([&] {
    const Used<CircuitObject> used(circuit, "circuit");
    const circuit::Circuit& plain = circuit::circuit_of(used->rule);
    const auto from = strided<std::uint8_t>(in, "in", 2), to = strided<std::uint8_t>(out, "out", 2);
    if (from.extent(1) != plain.inputs)
      throw_invalid(fmt::format("in has {} columns, the circuit {} inputs", from.extent(1), plain.inputs));
    if (to.extent(0) != from.extent(0) || to.extent(1) != plain.outputs.size())
      throw_invalid(fmt::format("out is ({}, {}), but must be ({}, {})", to.extent(0), to.extent(1), from.extent(0),
                                plain.outputs.size()));
    std::vector<std::uint64_t> signals(plain.signals());
    for (std::size_t first = 0; first < from.extent(0); first += 64) {
      const std::size_t count = std::min<std::size_t>(64, from.extent(0) - first);
      for (std::size_t i = 0; i < plain.inputs; ++i) {
        signals[i] = 0;
        for (std::size_t k = 0; k < count; ++k) signals[i] |= std::uint64_t{from.at(first + k, i) != 0} << k;
      }
      circuit::simulate(plain, signals);
      for (std::size_t o = 0; o < plain.outputs.size(); ++o)
        for (std::size_t k = 0; k < count; ++k)
          to.at(first + k, o) = static_cast<std::uint8_t>(signals[plain.outputs[o]] >> k & 1);
    }
  });
}

int gradloom_circuit_export(gradloom_handle circuit, const char* settings, const gradloom_hooks* hooks, char** text,
                            char** report) {
  return call([&] {
    given(text, "text");
    given(report, "report");
    Settings s(settings);
    const Hooks heard(hooks);
    app::ExportCircuitOptions options;
    options.format =
        value_of<app::ExportFormat>(app::kExportFormats, s.value("format", std::string("json")), "format").or_throw();
    options.minimiser =
        value_of<app::Minimiser>(app::kMinimisers, s.value("minimiser", std::string("own")), "minimiser").or_throw();
    options.verify = s.value("verify", false);
    options.name = s.value("name", std::string("circuit"));
    options.stop = &heard.stop()->set;
    s.done();
    const Used<CircuitObject> used(circuit, "circuit");
    const app::ExportedCircuit made = app::export_circuit(used->rule, options).or_throw();
    *report = copy_text(to_json(made).dump());
    *text = copy_text(made.text);
  });
}
