#include "gradloom/app/ged/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "gradloom/app/ged/shared_pairs.h"
#include "gradloom/data/csv.h"
#include "gradloom/data/fingerprint.h"
#include "gradloom/data/npy.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostCostBytes = 16 << 20;

GraphSet load(const std::string& path, const GedFiles& files) {
  GraphSource source;
  source.path = path;
  source.format = files.format;
  source.direction = files.direction;
  source.folder = files.folder;
  return load_graphs(source).or_throw();
}

struct Chosen {
  GraphSet set;
  std::size_t index = 0;
};

// What was meant as the file, where there is none.
std::string without_position(const std::string& words) {
  const std::size_t at = words.rfind('#');
  const bool position = at != std::string::npos && at + 1 < words.size() &&
                        words.find_first_not_of("0123456789", at + 1) == std::string::npos;
  return position ? words.substr(0, at) : words;
}

// FILE, FILE:ID or FILE#POSITION; a file that really has such a name wins.
Chosen choose(const std::string& words, const GedFiles& files) {
  std::error_code ignored;
  if (fs::exists(words, ignored)) {
    Chosen chosen{load(words, files)};
    if (chosen.set.size() != 1)
      throw_invalid(fmt::format("{} holds {} graphs; name one: {}:{} or {}#0", words, chosen.set.size(), words,
                                chosen.set.ids.front(), words));
    return chosen;
  }
  if (const std::size_t at = words.rfind('#'); at != std::string::npos && fs::exists(words.substr(0, at), ignored)) {
    Chosen chosen{load(words.substr(0, at), files)};
    const char *begin = words.data() + at + 1, *end = words.data() + words.size();
    const auto [stop, error] = std::from_chars(begin, end, chosen.index);
    if (error != std::errc() || stop != end || chosen.index >= chosen.set.size())
      throw_invalid(fmt::format("'{}' is not a position from #0 to #{}", words.substr(at), chosen.set.size() - 1));
    return chosen;
  }
  // An id may hold colons, a path too: the first cut that leaves a file counts.
  for (std::size_t at = words.find(':'); at != std::string::npos; at = words.find(':', at + 1))
    if (fs::exists(words.substr(0, at), ignored)) {
      Chosen chosen{load(words.substr(0, at), files)};
      chosen.index = chosen.set.find(words.substr(at + 1)).or_throw();
      return chosen;
    }
  throw Exception(ErrorCode::not_found, fmt::format("there is no file '{}'", without_position(words)));
}

GedPairReport::Side side_of(const GraphSet& set, std::size_t index) {
  const Graph& g = set.graphs[index];
  return {set.ids[index], g.nodes(), g.edges()};
}

std::string cell(double lower, double upper) {
  return lower == upper ? fmt::format("{}", upper) : fmt::format("{}..{}", lower, upper);
}

Result<void> write_matrix(const fs::path& path, const GraphSet& set, const ged::AllPairs& pairs) {
  return write_file_atomic(path, [&](FileSink& sink) -> Result<void> {
    std::string text = fmt::format("{}\n{}\n", set.size(), fmt::join(set.ids, " "));
    for (std::size_t i = 1; i < set.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::size_t at = ged::AllPairs::at(i, j);
        if (j > 0) text += ' ';
        text += cell(pairs.lower[at], pairs.upper[at]);
      }
      text += '\n';
      if (text.size() < (1 << 16)) continue;
      if (auto written = sink.write(text); !written) return written;
      text.clear();
    }
    return sink.write(text);
  });
}

// A matrix of distances: a bracket for each pair of a row and a column.
struct DistanceMatrix {
  std::span<const std::string> rows, columns;                                        // ids
  std::function<std::pair<double, double>(std::size_t row, std::size_t column)> at;  // lower, upper
};

Result<void> write_csv(const fs::path& path, const DistanceMatrix& m) {
  return write_file_atomic(path, [&](FileSink& sink) -> Result<void> {
    std::string text = "id";
    for (const std::string& id : m.columns) text += ',' + csv_field(id);
    text += '\n';
    for (std::size_t i = 0; i < m.rows.size(); ++i) {
      text += csv_field(m.rows[i]);
      for (std::size_t j = 0; j < m.columns.size(); ++j) {
        const auto [lower, upper] = m.at(i, j);
        text += ',' + cell(lower, upper);
      }
      text += '\n';
      if (text.size() < (1 << 16)) continue;
      if (auto written = sink.write(text); !written) return written;
      text.clear();
    }
    return sink.write(text);
  });
}

Result<void> write_npy(const fs::path& path, const DistanceMatrix& m) {
  return write_file_atomic(path, [&](FileSink& sink) -> Result<void> {
    if (auto head = sink.write(npy_header("<f8", std::array{m.rows.size(), m.columns.size()})); !head) return head;
    std::vector<double> row(m.columns.size());
    for (std::size_t i = 0; i < m.rows.size(); ++i) {
      for (std::size_t j = 0; j < row.size(); ++j) {
        const auto [lower, upper] = m.at(i, j);
        row[j] = lower == upper ? upper : std::numeric_limits<double>::quiet_NaN();
      }
      const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(double));
      if (auto written = sink.write(bytes); !written) return written;
    }
    return {};
  });
}

// The pairs that took most expansions, the first ones on ties. `ids` names the two graphs of a pair.
using PairIds = std::function<std::pair<std::string, std::string>(std::size_t pair)>;
std::vector<GedAllPairsReport::Pair> hardest(const ged::PairDistances& pairs, const PairIds& ids) {
  std::vector<std::size_t> order(pairs.upper.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t count = std::min<std::size_t>(order.size(), 5);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return pairs.expanded[a] != pairs.expanded[b] ? pairs.expanded[a] > pairs.expanded[b] : a < b;
                    });
  std::vector<GedAllPairsReport::Pair> list;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t at = order[k];
    const auto [first, second] = ids(at);
    list.push_back({first, second, pairs.lower[at], pairs.upper[at], pairs.expanded[at]});
  }
  return list;
}

GedAllPairsReport report_of(const ged::PairDistances& pairs, const PairIds& ids, const fs::path& out, double seconds) {
  const auto count = static_cast<double>(pairs.upper.size());
  GedAllPairsReport r;
  r.pairs = pairs.upper.size();
  r.inexact = pairs.upper.size() - pairs.exact;
  r.exact_share = static_cast<double>(pairs.exact) / count;
  r.mean = std::accumulate(pairs.upper.begin(), pairs.upper.end(), 0.0) / count;
  r.expanded = std::accumulate(pairs.expanded.begin(), pairs.expanded.end(), std::uint64_t{0});
  r.hardest = hardest(pairs, ids);
  r.seconds = seconds;
  r.pairs_per_s = count / seconds;
  if (!out.empty()) r.out.value = out.string();
  return r;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::uint64_t fingerprint_of_costs(const ged::Costs& costs) {
  Fingerprint f;
  const double numbers[] = {costs.node_sub, costs.node_delete, costs.node_insert,
                            costs.edge_sub, costs.edge_delete, costs.edge_insert};
  f.take(std::span<const double>(numbers));
  f.take(static_cast<std::uint64_t>(costs.labels));
  for (const auto* pairs : {&costs.node_pairs, &costs.edge_pairs}) {
    f.take(pairs->size());
    for (const ged::PairCost& pair : *pairs) {
      f.take(pair.a);
      f.take(pair.b);
      f.take(std::bit_cast<std::uint64_t>(pair.cost));
    }
  }
  for (const auto* labels : {&costs.node_deletes, &costs.node_inserts, &costs.edge_deletes, &costs.edge_inserts}) {
    f.take(labels->size());
    for (const ged::LabelCost& label : *labels) {
      f.take(label.label);
      f.take(std::bit_cast<std::uint64_t>(label.cost));
    }
  }
  return f.value();
}

std::uint64_t fingerprint_of_limits(const ged::Limits& limits) {
  Fingerprint f;
  f.take(std::bit_cast<std::uint64_t>(limits.seconds));
  f.take(limits.expansions);
  return f.value();
}

// The graphs of one file against those of another.
GedAllPairsReport cross_distances(const GedAllPairsOptions& o) {
  if (!o.out.empty() && o.out.extension() != ".csv" && o.out.extension() != ".npy")
    throw_invalid(fmt::format("{}: distances between two files are written as .csv or .npy", o.out.string()));
  GraphSet set = load(o.file, o.files);
  const std::size_t rows = set.size();
  set.append(load(o.against, o.files));
  const std::span<const std::string> ids(set.ids);
  const ged::CostTable costs(o.costs, set.node_labels, set.edge_labels);
  const Exec ex({.threads = o.threads});
  const auto start = std::chrono::steady_clock::now();
  const ged::CrossPairs pairs = ged::cross_pairs(ex, set, rows, costs, o.ged);
  const double seconds = seconds_since(start);
  const DistanceMatrix matrix{ids.first(rows), ids.subspan(rows), [&](std::size_t i, std::size_t j) {
                                const std::size_t at = i * pairs.columns + j;
                                return std::pair(pairs.lower[at], pairs.upper[at]);
                              }};
  if (!o.out.empty()) (o.out.extension() == ".csv" ? write_csv : write_npy)(o.out, matrix).or_throw();
  const auto names = [&](std::size_t at) { return std::pair(ids[at / pairs.columns], ids[rows + at % pairs.columns]); };
  GedAllPairsReport r = report_of(pairs, names, o.out, seconds);
  r.graphs = rows;
  r.against = pairs.columns;
  return r;
}

}  // namespace

Result<ged::Costs> ged_costs(const std::string& words) {
  if (words == "uniform") return ged::uniform_costs();
  if (words == "topology") return ged::topology_costs();
  if (!words.ends_with(".json")) return ged::parse_costs(words);
  auto text = read_file(words, kMostCostBytes);
  if (!text) return text.error();
  return ged::parse_costs_json(*text, words);
}

Result<GedPairReport> ged_pair(const GedPairOptions& o) try {
  Chosen first = choose(o.first, o.files), second = choose(o.second, o.files);
  GedPairReport r;
  r.first = side_of(first.set, first.index);
  r.second = side_of(second.set, second.index);
  const std::size_t a = first.index, b = first.set.size() + second.index;
  first.set.append(std::move(second.set));  // so that equal names are equal labels
  const GraphSet& set = first.set;
  const ged::CostTable costs(o.costs, set.node_labels, set.edge_labels);
  const Exec ex({.threads = o.threads});
  const ged::Distance d = ged::edit_distance(ex, set.graphs[a], set.graphs[b], costs, o.ged);
  r.lower = d.lower;
  r.upper = d.upper;
  r.exact = d.exact;
  r.smallest = d.smallest;
  r.threshold = o.ged.threshold;
  if (o.ged.threshold) r.within = Nullable<bool>{d.within};
  for (std::uint32_t image : d.mapping)
    r.mapping.push_back({image == ged::kErased ? std::nullopt : std::optional(image)});
  for (ged::EditOperation& e : ged::edit_path(set.graphs[a], set.graphs[b], costs, d.mapping))
    r.path.push_back({ged::edit_name(e.edit), std::move(e.from), std::move(e.to), e.cost});
  r.bounds = {
      ged::label_bound(set.graphs[a], set.graphs[b], costs),
      ged::assignment_bound(set.graphs[a], set.graphs[b], costs, std::max(0.0, o.ged.limits.seconds - d.seconds))};
  r.expanded = d.expanded;
  r.seconds = d.seconds;
  return r;
} catch (const Exception& e) {
  return e.error();
}

Result<GedAllPairsReport> ged_all_pairs(const GedAllPairsOptions& o) try {
  if (!o.against.empty()) return cross_distances(o);
  const GraphSet set = load(o.file, o.files);
  if (set.size() < 2)
    return Error{ErrorCode::invalid_input, fmt::format("{} holds one graph; all pairs need at least two", o.file)};
  if (o.comm)
    require_same(*o.comm, {{"other graphs", fingerprint(set)},
                           {"other costs", fingerprint_of_costs(o.costs)},
                           {"other limits", fingerprint_of_limits(o.ged.limits)}});
  const ged::CostTable costs(o.costs, set.node_labels, set.edge_labels);
  const Exec ex({.threads = o.threads});
  const auto start = std::chrono::steady_clock::now();
  const ged::AllPairs pairs =
      o.comm ? shared_pairs(*o.comm, ex, set, costs, o.ged) : ged::all_pairs(ex, set, costs, o.ged);
  if (o.comm && o.comm->rank() > 0) return GedAllPairsReport();
  const double seconds = seconds_since(start);
  const DistanceMatrix matrix{set.ids, set.ids, [&](std::size_t i, std::size_t j) {
                                if (i == j) return std::pair(0.0, 0.0);
                                const std::size_t at = ged::AllPairs::at(std::max(i, j), std::min(i, j));
                                return std::pair(pairs.lower[at], pairs.upper[at]);
                              }};
  if (o.out.extension() == ".csv")
    write_csv(o.out, matrix).or_throw();
  else if (o.out.extension() == ".npy")
    write_npy(o.out, matrix).or_throw();
  else if (!o.out.empty())
    write_matrix(o.out, set, pairs).or_throw();
  const auto names = [&](std::size_t at) {
    std::size_t i = 1;
    while (ged::AllPairs::at(i + 1, 0) <= at) ++i;
    return std::pair(set.ids[at - ged::AllPairs::at(i, 0)], set.ids[i]);
  };
  GedAllPairsReport r = report_of(pairs, names, o.out, seconds);
  r.graphs = set.size();
  if (o.comm) r.ranks = o.comm->size();
  return r;
} catch (const Exception& e) {
  return e.error();
}

}  // namespace gradloom::app
