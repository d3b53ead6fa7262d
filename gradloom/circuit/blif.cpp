#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/circuit/netlist.h"
#include "gradloom/circuit/validate.h"
#include "gradloom/circuit/yosys.h"

namespace gradloom::circuit {
namespace {

using Words = std::vector<std::string>;

// Lines as words; a backslash at the end joins the next line, # starts a comment.
std::vector<Words> lines_of(std::string_view text) {
  std::vector<Words> lines(1);
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) lines.back().push_back(std::exchange(word, ""));
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      end_word();
      ++i;
    } else if (c == '\n' || c == '#') {
      end_word();
      if (c == '#') i = std::min(text.find('\n', i), text.size());
      if (!lines.back().empty()) lines.emplace_back();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  return lines;
}

// A table of at most two inputs: rows such as "1- 1", all with the same output.
struct BlifTable {
  Words operands;
  std::vector<std::pair<std::string, char>> rows;

  std::optional<Op> op() const {
    unsigned table = 0;
    for (const bool a : {false, true})
      for (const bool b : {false, true}) {
        bool covered = false;
        for (const auto& [pattern, value] : rows) {
          bool fits = true;
          for (std::size_t i = 0; i < pattern.size(); ++i)
            fits = fits && (pattern[i] == '-' || (pattern[i] == '1') == (i == 0 ? a : b));
          covered = covered || fits;
        }
        table = 2 * table + (covered == (rows.empty() || rows[0].second == '1') ? 1 : 0);
      }
    if (rows.empty()) return Op::always_false;
    return static_cast<Op>(table);
  }
};

class BlifReader {
 public:
  BlifReader(std::uint32_t inputs, std::uint32_t outputs) : outputs_(outputs) { circuit_.inputs = inputs; }

  Result<Circuit> read(std::string_view text) {
    const std::vector<Words> lines = lines_of(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Words& words = lines[i];
      if (words.empty() || words[0] == ".model" || words[0] == ".inputs" || words[0] == ".outputs" ||
          words[0] == ".end")
        continue;
      if (words[0] != ".names" || words.size() < 2 || words.size() > 4)
        return wrong(fmt::format("'{}' is not a table of at most two inputs", words[0]));
      BlifTable table{{words.begin() + 1, words.end() - 1}, {}};
      for (; i + 1 < lines.size() && !lines[i + 1].empty() && lines[i + 1][0][0] != '.'; ++i) {
        const Words& row = lines[i + 1];
        const std::string pattern = table.operands.empty() ? "" : row[0], value = row.back();
        if (row.size() != (table.operands.empty() ? 1u : 2u) || pattern.size() != table.operands.size() ||
            pattern.find_first_not_of("01-") != pattern.npos || (value != "0" && value != "1") ||
            (!table.rows.empty() && table.rows[0].second != value[0]))
          return wrong(fmt::format("a row of the table of '{}' cannot be read", words.back()));
        table.rows.emplace_back(pattern, value[0]);
      }
      if (!tables_.emplace(words.back(), std::move(table)).second)
        return wrong(fmt::format("'{}' is defined twice", words.back()));
    }
    for (std::uint32_t o = 0; o < outputs_; ++o) {
      const std::string name = tables_.contains("out") && outputs_ == 1 ? "out" : fmt::format("out[{}]", o);
      const auto signal = build(name);
      if (!signal) return wrong(problem_);
      circuit_.outputs.push_back(*signal);
    }
    if (auto r = validate(circuit_); !r) return r.error();
    return std::move(circuit_);
  }

 private:
  static Error wrong(std::string_view what) { return {ErrorCode::invalid_input, fmt::format("blif: {}", what)}; }

  std::optional<std::uint32_t> known(const std::string& name) const {
    if (const auto found = signals_.find(name); found != signals_.end()) return found->second;
    netlist::Cursor cursor(name);
    if (name == "in" && circuit_.inputs == 1) return 0;
    if (!name.starts_with("in[")) return std::nullopt;
    const auto signal = netlist::take_signal(cursor, circuit_.inputs, circuit_.signals());
    return signal && cursor.ended() ? signal : std::nullopt;
  }

  // Depth first with a stack of our own: files may be deep, or have cycles.
  std::optional<std::uint32_t> build(const std::string& root) {
    std::vector<std::string> stack{root};
    std::map<std::string, bool> open;
    while (!stack.empty()) {
      const std::string name = stack.back();
      if (known(name)) {
        stack.pop_back();
        continue;
      }
      const auto table = tables_.find(name);
      if (table == tables_.end()) {
        problem_ = fmt::format("'{}' is not defined", name);
        return std::nullopt;
      }
      const Words& operands = table->second.operands;
      std::vector<std::string> missing;
      for (const std::string& operand : operands)
        if (!known(operand)) missing.push_back(operand);
      if (!missing.empty()) {
        if (open[name]) {
          problem_ = fmt::format("'{}' depends on itself", name);
          return std::nullopt;
        }
        open[name] = true;
        stack.insert(stack.end(), missing.begin(), missing.end());
        continue;
      }
      Gate gate{*table->second.op(), 0, 0};
      if (!operands.empty()) gate.a = gate.b = *known(operands[0]);
      if (operands.size() == 2) gate.b = *known(operands[1]);
      circuit_.gates.push_back(gate);
      signals_[name] = static_cast<std::uint32_t>(circuit_.signals() - 1);
      stack.pop_back();
    }
    return known(root);
  }

  Circuit circuit_;
  std::uint32_t outputs_;
  std::map<std::string, BlifTable> tables_;
  std::map<std::string, std::uint32_t> signals_;
  std::string problem_;
};

}  // namespace

Result<Circuit> parse_blif(std::string_view text, std::uint32_t inputs, std::uint32_t outputs) {
  return BlifReader(inputs, outputs).read(text);
}

}  // namespace gradloom::circuit
