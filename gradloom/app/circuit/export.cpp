#include "gradloom/circuit/export.h"

#include <fmt/format.h>

#include "gradloom/app/circuit/jobs.h"
#include "gradloom/app/run/open.h"
#include "gradloom/circuit/json.h"
#include "gradloom/circuit/minimise.h"
#include "gradloom/circuit/prove.h"
#include "gradloom/circuit/simplify.h"
#include "gradloom/circuit/yosys.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

using circuit::AnyCircuit;
using circuit::Circuit;

// Golly finds a rule by the name of its file.
std::string rule_name(const ExportCircuitOptions& o) {
  return o.out.empty() || o.name != ExportCircuitOptions().name ? o.name : o.out.stem().string();
}

std::string written(const AnyCircuit& any, const ExportCircuitOptions& o) {
  switch (o.format) {
    case ExportFormat::c:
      return circuit::to_c(circuit::circuit_of(any), o.name);
    case ExportFormat::verilog:
      return circuit::to_verilog(circuit::circuit_of(any), o.name);
    case ExportFormat::dot:
      return circuit::to_dot(any, o.name);
    case ExportFormat::svg:
      return circuit::to_svg(any, o.name);
    case ExportFormat::golly:
      if (!std::holds_alternative<circuit::CellRule>(any))
        throw_invalid("a plain circuit is not a cell rule, and Golly only runs cell rules");
      return circuit::to_golly(std::get<circuit::CellRule>(any), rule_name(o));
    case ExportFormat::circuit_json:
      break;
  }
  return circuit::to_json(any);
}

Result<Circuit> read_back(std::string_view text, ExportFormat format) {
  switch (format) {
    case ExportFormat::c:
      return circuit::parse_c(text);
    case ExportFormat::verilog:
      return circuit::parse_verilog(text);
    case ExportFormat::dot:
      return circuit::parse_dot(text);
    case ExportFormat::svg:
      return Error{ErrorCode::unsupported,
                   "an SVG drawing cannot be read back, so it cannot be verified; every other format can"};
    case ExportFormat::golly:
      return Error{ErrorCode::unsupported,
                   "a .rule file cannot be read back, so it cannot be verified; c, verilog, json and dot can"};
    case ExportFormat::circuit_json:
      break;
  }
  auto any = circuit::parse_circuit_json(text);
  if (!any) return any.error();
  return circuit::circuit_of(*any);
}

// Inputs and outputs stay what they were.
void set_circuit(AnyCircuit& any, Circuit c) {
  c.meaning = circuit::circuit_of(any).meaning;
  if (auto* rule = std::get_if<circuit::CellRule>(&any))
    rule->circuit = std::move(c);
  else
    any = std::move(c);
}

ExportedCircuit::Step step_of(std::string_view name, const circuit::CircuitSize& size) {
  return {std::string(name), size.gates, size.active, size.depth};
}

void shrink(AnyCircuit& any, const ExportCircuitOptions& o, std::vector<ExportedCircuit::Step>& steps) {
  if (o.minimiser == Minimiser::off) return;
  if (o.minimiser == Minimiser::yosys) {
    const Circuit simple = circuit::simplify(circuit::circuit_of(any));
    steps.push_back(step_of("simplified", circuit::size_of(simple)));
    Circuit found = circuit::simplify(circuit::minimise_with_yosys(simple).or_throw());
    steps.push_back(step_of("yosys and abc", circuit::size_of(found)));
    set_circuit(any, std::move(found));
    return;
  }
  circuit::Minimised m = circuit::minimise(circuit::circuit_of(any));
  for (std::size_t s = 1; s < m.steps.size(); ++s) steps.push_back(step_of(m.steps[s].name, m.steps[s].size));
  set_circuit(any, std::move(m.circuit));
}

void report_proof(const circuit::Proof& proof, ExportedCircuit& r) {
  r.proved = proof.proved();
  r.equal = proof.equal();
  r.outputs.emplace();
  for (const circuit::OutputProof& o : proof.outputs)
    r.outputs->push_back({circuit::method_name(o.method), o.inputs, o.assignments, o.proved()});
  if (!proof.note.empty()) r.note = proof.note;
}

}  // namespace

namespace {

// Whether what an export writes can be read again, to be compared with the circuit.
bool can_be_read(ExportFormat format) { return format != ExportFormat::svg && format != ExportFormat::golly; }

}  // namespace

Result<ExportedCircuit> export_circuit(const ExportCircuitOptions& o) {
  if (o.verify && !can_be_read(o.format)) return read_back("", o.format).error();
  auto any = load_circuit_of(o.circuit);
  if (!any) return any.error();
  return export_circuit(std::move(*any), o);
}

Result<ExportedCircuit> export_circuit(AnyCircuit any, const ExportCircuitOptions& o) try {
  if (o.verify && !can_be_read(o.format)) return read_back("", o.format).error();
  ExportedCircuit r;
  r.circuit = o.circuit.string();
  r.format = name_of(kExportFormats, o.format);
  r.steps = {step_of("given", circuit::size_of(circuit::circuit_of(any)))};
  if (!o.observed.empty()) {
    const auto* rule = std::get_if<circuit::CellRule>(&any);
    if (!rule) return Error{ErrorCode::invalid_input, "a plain circuit has no channels to observe"};
    circuit::SlicedRule sliced = circuit::slice(*rule, o.observed);
    r.channels = sliced.channel_of;
    any = std::move(sliced.rule);
    r.steps.push_back(step_of("sliced", circuit::size_of(circuit::circuit_of(any))));
  }
  // What the export must equal: the circuit that was read, at most without channels that nobody observes.
  const Circuit reference = circuit::circuit_of(any);
  shrink(any, o, r.steps);
  const circuit::CircuitSize size = circuit::size_of(circuit::circuit_of(any));
  r.gates = size.gates;
  r.active = size.active;
  r.depth = size.depth;
  r.text = written(any, o);

  if (!o.out.empty()) {
    const std::filesystem::path bench =
        o.out.parent_path() / (o.out.stem().string() + "_test" + o.out.extension().string());
    if (o.format == ExportFormat::verilog) refuse_overwriting_inputs(bench, o.circuit, ".").or_throw();
    write_file_atomic(o.out, r.text).or_throw();
    r.out = o.out.string();
    if (o.format == ExportFormat::verilog) {
      write_file_atomic(bench, circuit::to_verilog_test(reference, o.name)).or_throw();
      r.test_bench = bench.string();
    }
  }
  if (!o.verify) return r;
  // From the disk where there is a file: what counts is what others will read.
  const std::string text = o.out.empty() ? r.text : read_file(o.out, r.text.size() + 1).or_throw();
  const Circuit back = read_back(text, o.format).or_throw();
  const Exec exec({o.threads, Variant::fast});
  const circuit::Proof proof = circuit::prove_equal(exec, reference, back, {.stop = o.stop});
  if (proof.counter_example)
    return Error{ErrorCode::numeric, fmt::format("the export differs from the circuit: {}",
                                                 describe(*proof.counter_example, reference, back))};
  report_proof(proof, r);
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
