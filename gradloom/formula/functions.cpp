#include "gradloom/formula/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gradloom/base/error.h"
#include "gradloom/base/layer_nodes.h"
#include "gradloom/formula/contains.h"

namespace gradloom::formula {

Functions::Functions(const FunctionOptions& o) : all_(library().begin(), library().end()), own_(all_.size()) {
  for (const std::string& definition : o.define) {
    LibraryFunction f = define_function(definition);
    if (std::any_of(all_.begin(), all_.end(), [&](const LibraryFunction& g) { return g.name == f.name; }))
      throw_invalid(fmt::format("the function '{}' is defined twice", f.name));
    all_.push_back(std::move(f));
  }
  allowed_.assign(all_.size(), o.functions.empty());
  for (const std::string& name : o.functions) allowed_[number_of(name)] = true;
  for (const std::string& entry : o.forbid) {
    if (entry.find(' ') != std::string::npos) {
      forbidden_on_.insert(read_edge(entry, "forbid"));
    } else {
      forbid_everywhere(entry);
    }
  }
  if (std::find(allowed_.begin(), allowed_.end(), true) == allowed_.end())
    throw_invalid("every function is forbidden; edges need at least one");
  for (const std::string& entry : o.fix) {
    const auto [edge, function] = read_edge(entry, "fix");
    if (!fixed_.emplace(edge, function).second)
      throw_invalid(fmt::format("fix \"{}\": the edge is fixed twice", entry));
    if (forbids(edge, function)) throw_invalid(fmt::format("fix \"{}\": the function is forbidden there", entry));
  }
}

void Functions::forbid_everywhere(const std::string& name) {
  const std::size_t forbidden = number_of(name);
  if (forbidden >= own_)
    throw_invalid(
        fmt::format("forbid \"{}\": a function of your own is forbidden on single edges, such as \"0.1.2 {}\"; "
                    "to have it nowhere, leave out its definition",
                    name, name));
  if (!can_be_found(all_[forbidden]))
    throw_invalid(
        fmt::format("forbid \"{}\": every formula is made of numbers and inputs; on single edges it can be "
                    "forbidden, such as \"0.1.2 {}\"",
                    name, name));
  forbidden_.insert(forbidden);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!made_of(i, forbidden)) continue;
    if (i >= own_)
      throw_invalid(fmt::format("the function '{}' is made of {}, which is forbidden", all_[i].name, name));
    allowed_[i] = false;
  }
}

bool Functions::made_of(std::size_t i, std::size_t forbidden) const {
  return i == forbidden || (can_be_found(all_[forbidden]) && contains(all_[i].text, all_[forbidden]));
}

bool Functions::forbids(const Edge& edge, std::size_t i) const {
  return std::any_of(forbidden_.begin(), forbidden_.end(), [&](std::size_t f) { return made_of(i, f); }) ||
         std::any_of(forbidden_on_.begin(), forbidden_on_.end(),
                     [&](const auto& on) { return on.first == edge && made_of(i, on.second); });
}

std::size_t Functions::number_of(const std::string& name) const {
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_[i].name == name) return i;
  std::string names;
  for (const LibraryFunction& f : all_) names += (names.empty() ? "" : ", ") + f.name;
  throw_invalid(fmt::format("there is no function '{}'; there are {}", name, names));
}

std::pair<Functions::Edge, std::size_t> Functions::read_edge(const std::string& entry, const char* key) const {
  const auto refuse = [&] {
    throw_invalid(fmt::format("{} \"{}\" is not \"LAYER.FROM.TO FUNCTION\", such as \"0.1.2 sin\"", key, entry));
  };
  Edge edge{};
  const char* at = entry.data();
  const char* const end = entry.data() + entry.size();
  for (std::size_t i = 0; i < edge.size(); ++i) {
    const auto [next, wrong] = std::from_chars(at, end, edge[i]);
    if (wrong != std::errc() || next == end || *next != (i + 1 < edge.size() ? '.' : ' ')) refuse();
    at = next + 1;
  }
  return {edge, number_of(std::string(at, end))};
}

std::vector<LibraryFunction> Functions::of_edge(std::size_t layer, std::size_t from, std::size_t to) const {
  const Edge edge{layer, from, to};
  const auto fixed = fixed_.find(edge);
  if (fixed != fixed_.end()) return {all_[fixed->second]};
  std::vector<LibraryFunction> found;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (allowed_[i] && !forbids(edge, i)) found.push_back(all_[i]);
  return found;
}

bool Functions::allows(const Expr& e) const {
  return std::none_of(forbidden_.begin(), forbidden_.end(), [&](std::size_t f) { return contains(e, all_[f]); });
}

Expr Functions::spelled(const Expr& e) const {
  if (forbidden_.empty()) return e;
  if (!has_variable(e)) {
    const bool named =
        std::any_of(forbidden_.begin(), forbidden_.end(), [&](std::size_t f) { return is_written_with(e, all_[f]); });
    return named ? approximate(evaluate(e, {}, 1).front()) : e;
  }
  std::vector<Expr> args;
  for (const Expr& a : e->args) args.push_back(spelled(a));
  return args.empty() ? e : with_args(*e, std::move(args));
}

void Functions::require_edges(std::span<const std::size_t> widths, std::span<const std::size_t> multiply) const {
  const auto require = [&](const Edge& e, const char* key) {
    const LayerNodes nodes = e[0] + 1 < widths.size() ? layer_nodes(widths, multiply, e[0]) : LayerNodes{};
    if (e[0] + 1 < widths.size() && e[1] < widths[e[0]] && e[2] < nodes.sums()) return;
    std::string sums;
    if (nodes.products > 0) sums = fmt::format(" (edges of layer {} lead to {} sums)", e[0], nodes.sums());
    throw_invalid(fmt::format("{}: there is no edge {}.{}.{}; the network has layers of {} nodes{}, counted from 0",
                              key, e[0], e[1], e[2], fmt::join(widths, ", "), sums));
  };
  for (const auto& [edge, function] : fixed_) require(edge, "fix");
  for (const auto& [edge, function] : forbidden_on_) require(edge, "forbid");
}

}  // namespace gradloom::formula
