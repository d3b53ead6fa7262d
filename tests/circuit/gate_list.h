// Reads the text form in which published circuits of logic automata come: one device per line.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/circuit/circuit.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {

inline const std::map<std::string_view, Op> kOps = {{"False", Op::always_false},
                                                    {"And", Op::a_and_b},
                                                    {"AAndNotB", Op::a_and_not_b},
                                                    {"A", Op::a},
                                                    {"NotAAndB", Op::not_a_and_b},
                                                    {"B", Op::b},
                                                    {"Xor", Op::a_xor_b},
                                                    {"Or", Op::a_or_b},
                                                    {"Nor", Op::nor},
                                                    {"Xnor", Op::xnor},
                                                    {"AOrNotB", Op::a_or_not_b},
                                                    {"Not", Op::not_a},
                                                    {"NotAOrB", Op::not_a_or_b},
                                                    {"Nand", Op::nand},
                                                    {"True", Op::always_true}};

inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// The number behind the last underscore.
inline std::optional<std::uint32_t> number_of(std::string_view name) {
  const std::size_t at = name.rfind('_') + 1;
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(name.data() + at, name.data() + name.size(), number);
  if (at == 0 || code != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

// Lines `INPUT i_N label`, `GATE name op in1 [in2]` and `OUTPUT o_N driver` in topological order; '#' starts a comment.
// Input i_N is input N, output o_N output N; ops are And, Or, Xor, Nor, Xnor, Nand, Not, AAndNotB, NotAAndB, AOrNotB,
// NotAOrB, A, B, False, True. Inputs that are not named exist and are not read. Fails with invalid_input and the line.
inline Result<CellRule> read_gate_list(std::string_view text, std::uint32_t channels, Boundary boundary) {
  if (channels == 0 || channels > kMaxOutputs / 9)
    return Error{ErrorCode::invalid_input, fmt::format("gate list: {} channels", channels)};
  CellRule rule{channels, boundary, {}};
  Circuit& c = rule.circuit;
  c.inputs = 9 * channels;
  std::vector<std::optional<std::uint32_t>> outputs(channels);
  std::map<std::string, std::uint32_t, std::less<>> signals;
  std::size_t number = 0;
  const auto wrong = [&](std::string_view what) {
    return Error{ErrorCode::invalid_input, fmt::format("gate list, line {}: {}", number, what)};
  };

  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    line = line.substr(0, line.find('#'));
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) continue;
    if (words.size() < 3 && !(words.size() == 2 && words[0] == "INPUT")) return wrong("too few words");
    const auto signal = [&](std::string_view name) -> std::optional<std::uint32_t> {
      const auto found = signals.find(name);
      return found == signals.end() ? std::nullopt : std::optional(found->second);
    };
    if (words[0] == "INPUT") {
      const auto input = number_of(words[1]);
      if (!input || *input >= c.inputs)
        return wrong(fmt::format("there is no input '{}' among {}", words[1], c.inputs));
      signals[std::string(words[1])] = *input;
    } else if (words[0] == "GATE") {
      const auto op = kOps.find(words[2]);
      if (op == kOps.end()) return wrong(fmt::format("there is no op '{}'", words[2]));
      const std::size_t needed = op->second == Op::always_false || op->second == Op::always_true ? 3
                                 : op->second == Op::not_a                                       ? 4
                                                                                                 : 5;
      if (words.size() < needed) return wrong(fmt::format("'{}' needs {} operands", words[2], needed - 3));
      Gate gate{op->second, 0, 0};
      for (std::size_t i = 3; i < needed; ++i) {
        const auto operand = signal(words[i]);
        if (!operand) return wrong(fmt::format("'{}' is not known yet", words[i]));
        (i == 3 ? gate.a : gate.b) = *operand;
      }
      c.gates.push_back(gate);
      if (!signals.emplace(words[1], static_cast<std::uint32_t>(c.signals() - 1)).second)
        return wrong(fmt::format("'{}' is there twice", words[1]));
    } else if (words[0] == "OUTPUT") {
      const auto output = number_of(words[1]);
      if (!output || *output >= channels)
        return wrong(fmt::format("there is no output '{}' among {}", words[1], channels));
      outputs[*output] = signal(words[2]);
      if (!outputs[*output]) return wrong(fmt::format("'{}' is not known yet", words[2]));
    } else {
      return wrong(fmt::format("'{}' is neither INPUT, GATE nor OUTPUT", words[0]));
    }
  }
  for (std::uint32_t o = 0; o < channels; ++o) {
    if (!outputs[o]) return Error{ErrorCode::invalid_input, fmt::format("gate list: output {} is missing", o)};
    c.outputs.push_back(*outputs[o]);
  }
  if (auto r = validate(rule); !r) return r.error();
  return rule;
}

}  // namespace gradloom::circuit
