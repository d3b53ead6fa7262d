#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/ranks.h"
#include "cli/text.h"
#include "gradloom/app/ged/run.h"

namespace gradloom::cli {
namespace {

// What `ged` and `bench ged` share.
struct CommonFlags {
  std::string costs, preset = "uniform", format = "auto", folder;
  bool directed = false;
  double seconds = 0.0;          // 0: no limit
  std::uint64_t expansions = 0;  // 0: no limit
  unsigned threads = 0;

  ged::Costs chosen_costs() const { return app::ged_costs(costs.empty() ? preset : costs).or_throw(); }
  app::GedFiles files() const {
    return {parse_graph_format(format).or_throw(), directed ? Direction::directed : Direction::undirected, folder};
  }
  ged::Limits limits() const {
    ged::Limits limits;
    if (seconds > 0.0) limits.seconds = seconds;
    if (expansions > 0) limits.expansions = expansions;
    return limits;
  }
};

void add_common_options(CLI::App& command, CommonFlags& flags) {
  auto* costs = command.add_option("--costs", flags.costs,
                                   "node_sub,node_indel,edge_sub,edge_indel such as 1,1,1,1, or a file.json");
  costs->type_name("COSTS");
  command
      .add_option("--preset", flags.preset, "uniform: every edit costs 1; topology: the same, and labels are ignored")
      ->type_name("NAME")
      ->check(CLI::IsMember({"uniform", "topology"}).description(""))
      ->excludes(costs);
  command
      .add_option("--format", flags.format,
                  "Format of the files: auto, tve, tu, gin, gxl, edges, tables, graphml, gml, json, planetoid")
      ->type_name("FORM");
  command
      .add_option("--folder", flags.folder,
                  "Folder of the files that a collection lists; default: the folder of the collection")
      ->type_name("DIR");
  command.add_flag("--directed", flags.directed, "Edges are directed where the file does not say");
  command
      .add_option("--time", flags.seconds,
                  "Time limit for each pair in seconds; then bounds are returned, which depend on the machine")
      ->type_name("S")
      ->default_str("none")
      ->check(number_between(1e-6, 1e9));
  command
      .add_option("--expand", flags.expansions,
                  "Limit of search nodes for each pair; then bounds are returned, equal on every machine")
      ->type_name("N")
      ->default_str("none")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62).description(""));
  add_threads_option(command, flags.threads);
}

constexpr std::array kHints = {KeyHint{"data.format", "--format sets data.format"},
                               KeyHint{"data.graph_folder", "--folder sets data.graph_folder"}};

struct GedFlags {
  CommonFlags common;
  std::vector<std::string> graphs;
  std::string solver = "dfs", out, against;
  std::optional<double> threshold;
  bool all_pairs = false;
};

// What is known of the distance, or of whether it is within a threshold.
std::string verdict(const app::GedPairReport& r) {
  if (r.within && !r.within->value)
    return fmt::format("edit distance from {} to {}: a limit was reached before it was known whether it is at most {}",
                       r.lower, r.upper, *r.threshold);
  if (r.within)
    return *r.within->value ? fmt::format("edit distance at most {}: within {}", r.upper, *r.threshold)
                            : fmt::format("edit distance at least {}: not within {}", r.lower, *r.threshold);
  return r.exact ? fmt::format("edit distance {}", r.upper)
                 : fmt::format("edit distance from {} to {}; a limit was reached", r.lower, r.upper);
}

int run_pair(const Output& out, const GedFlags& flags) {
  app::GedPairOptions o;
  o.first = flags.graphs[0];
  o.second = flags.graphs[1];
  o.files = flags.common.files();
  o.costs = flags.common.chosen_costs();
  o.ged.solver = value_of<ged::Solver>(ged::kSolvers, flags.solver, "--solver").or_throw();
  o.ged.limits = flags.common.limits();
  o.ged.threshold = flags.threshold;
  o.threads = flags.common.threads;
  const app::GedPairReport r = app::ged_pair(o).or_throw();
  const auto side = [](const app::GedPairReport::Side& s) {
    return fmt::format("{} ({}, {})", s.id, counted(s.nodes, "node"), counted(s.edges, "edge"));
  };
  out.print(out.paint(Paint::bold, verdict(r) + "\n"));
  std::string mapping;
  for (const auto& image : r.mapping)
    mapping += (mapping.empty() ? "" : " ") + (image.value ? fmt::format("{}", *image.value) : "-");
  out.print_rows({{"first", side(r.first)},
                  {"second", side(r.second)},
                  {"mapping", mapping},
                  {"expanded", fmt::format("{}", r.expanded)},
                  {"seconds", fmt::format("{:.3f}", r.seconds)}});
  for (const app::GedPairReport::Edit& e : r.path)
    if (e.cost > 0.0)
      out.print(fmt::format("  {:<16}{:>8}{:<3} {:<8}cost {}\n", e.edit, fmt::format("{}", fmt::join(e.from, "-")),
                            e.from.empty() || e.to.empty() ? "" : " ->", fmt::format("{}", fmt::join(e.to, "-")),
                            e.cost));
  out.result(to_json(r));
  return kDone;
}

// One line that is redrawn on a terminal; nothing elsewhere.
class PairsLine {
 public:
  explicit PairsLine(bool show) : show_(show && terminal_of(stderr).redraws) {}
  ~PairsLine() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
  }
  PairsLine(const PairsLine&) = delete;
  PairsLine& operator=(const PairsLine&) = delete;
  void update(std::size_t done, std::size_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!show_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    drawn_ = true;
    fmt::print(stderr, "\r\x1b[K{} of {} pairs", done, total);
    std::fflush(stderr);
  }

 private:
  bool show_, drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

int run_all_pairs(const Output& out, const GedFlags& flags) {
  refuse_overwriting(flags.out, {flags.graphs[0], flags.against, flags.common.costs});
  app::GedAllPairsOptions o;
  o.file = flags.graphs[0];
  o.against = flags.against;
  o.files = flags.common.files();
  o.costs = flags.common.chosen_costs();
  o.ged.limits = flags.common.limits();
  o.threads = flags.common.threads;
  if (out.comm() && o.threads == 0) o.threads = threads_of_this_rank();
  o.comm = out.comm();
  o.out = flags.out;
  app::GedAllPairsReport r;
  {
    PairsLine line(!out.quiet());
    o.ged.progress = [&](std::size_t done, std::size_t total) { line.update(done, total); };
    r = app::ged_all_pairs(o).or_throw();
  }
  if (!out.writes()) return kDone;
  std::string title = fmt::format("{} of {}", counted(r.pairs, "pair"), counted(r.graphs, "graph"));
  if (r.against) title += fmt::format(" against {}", *r.against);
  out.print(fmt::format("{}\n", out.paint(Paint::bold, title)));
  std::vector<std::pair<std::string, std::string>> rows = {{"exact", fmt::format("{:.2f} %", 100 * r.exact_share)},
                                                           {"mean", fmt::format("{:.4f}", r.mean)},
                                                           {"seconds", fmt::format("{:.2f}", r.seconds)},
                                                           {"pairs per second", fmt::format("{:.0f}", r.pairs_per_s)},
                                                           {"expanded", fmt::format("{}", r.expanded)}};
  for (const app::GedAllPairsReport::Pair& pair : r.hardest)
    rows.emplace_back("hardest", fmt::format("{} and {}: {} expanded", pair.first, pair.second, pair.expanded));
  rows.emplace_back("written", flags.out.empty() ? "nothing; --out FILE writes the distance of every pair" : flags.out);
  out.print_rows(rows);
  out.result(to_json(r));
  return kDone;
}

int run_ged(const Output& out, const GedFlags& flags) {
  const bool many = flags.all_pairs || !flags.against.empty();
  if (flags.all_pairs && !flags.against.empty()) throw_invalid("--all-pairs and --against exclude each other");
  if (!flags.against.empty() && flags.graphs.size() != 1)
    throw_invalid("--against compares one file with another: gradloom ged FILE --against OTHER");
  if (flags.all_pairs && flags.graphs.size() != 1) throw_invalid("--all-pairs takes one file with several graphs");
  if (!many && flags.graphs.size() != 2)
    throw Failure({ErrorCode::invalid_input,
                   fmt::format("ged needs two graphs, but {} given", flags.graphs.size() == 1 ? "one is" : "more are")},
                  "write gradloom ged A B, or gradloom ged FILE --all-pairs");
  if (!many && !flags.out.empty())
    throw_invalid("--out needs --all-pairs or --against; --json prints the result of one pair");
  if (many && flags.threshold) throw_invalid("--threshold is for two graphs, not for --all-pairs or --against");
  if (many && flags.solver != "dfs") throw_invalid("--all-pairs and --against have only the solver dfs");
  return many ? run_all_pairs(out, flags) : run_pair(out, flags);
}

struct BenchGedFlags {
  CommonFlags common;
  app::BenchGedOptions options;
};

int run_bench(const Output& out, const BenchGedFlags& flags) {
  app::BenchGedOptions o = flags.options;
  o.files = flags.common.files();
  o.costs = flags.common.chosen_costs();
  o.limits = flags.common.limits();
  o.threads = flags.common.threads;
  const app::BenchGedReport r = app::bench_ged(o).or_throw();
  out.print(fmt::format("{}  {}, {}\n", out.paint(Paint::bold, "ged"), counted(r.graphs, "graph"),
                        counted(r.threads, "thread")));
  out.print_rows({{"pairs per second", fmt::format("{:.0f}", r.pairs_per_s)},
                  {"exact", fmt::format("{:.2f} %", 100 * r.exact_share)},
                  {"expanded per pair", fmt::format("{:.1f}", r.expanded_per_pair)},
                  {"most expanded", fmt::format("{}", r.most_expanded)},
                  {"pairs checked first", fmt::format("{}", r.checked)}});
  out.result(to_json(r));
  return kDone;
}

}  // namespace

void add_ged_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("ged", "Graph edit distance, with mapping and edits");
  auto flags = std::make_shared<GedFlags>();
  command
      ->add_option("GRAPHS", flags->graphs,
                   "Two graphs, each FILE, FILE:ID or FILE#POSITION; one FILE with --all-pairs or --against")
      ->type_name("")
      ->required();
  command->add_flag("--all-pairs", flags->all_pairs, "Distances between all graphs of the file");
  command->add_option("--against", flags->against, "Distances of the graphs of FILE to those of this file")
      ->type_name("OTHER");
  command->add_option("--out", flags->out, "Write the distances of --all-pairs or --against: .csv, .npy, else text")
      ->type_name("FILE")
      ->check(names_a_file);
  add_common_options(*command, flags->common);
  command
      ->add_option("--solver", flags->solver,
                   "dfs, or best-first: an independent search to compare with, for small graphs")
      ->type_name("HOW")
      ->check(name_in(ged::kSolvers));
  command
      ->add_option("--threshold", flags->threshold, "Decide only whether the distance is at most T; often much faster")
      ->type_name("T")
      ->check(number_between(0, 1e12));
  add_quiet_option(*command, choice.flags);
  add_output_options(*command, choice.flags);
  command->footer(
      "Examples:\n  gradloom ged a.gxl b.gxl\n  gradloom ged set.txt:4 set.txt:21 --costs 1,1,1,1\n"
      "  gradloom ged set.txt --all-pairs --out distances.csv\n"
      "  gradloom ged new.graphml --against known.graphml --out distances.csv");
  command->callback([flags, &choice] {
    if (flags->all_pairs) choice.who = Who::all_ranks;
    choice.run = [flags](const Output& out) { return with_hints(kHints, [&] { return run_ged(out, *flags); }); };
  });
}

void add_bench_ged_command(CLI::App& bench, Choice& choice) {
  CLI::App* command = bench.add_subcommand("ged", "Graph edit distances: pairs per second, after checking some");
  auto flags = std::make_shared<BenchGedFlags>();
  app::BenchGedOptions& o = flags->options;
  command->add_option("--file", o.file, "Graphs to compare; default: random graphs")->type_name("FILE");
  add_count_option(*command, "--graphs", o.graphs, "Maximum number of graphs", 2, 100000);
  add_count_option(*command, "--nodes", o.nodes, "Nodes of the largest random graph", 1, 1000);
  command->add_option("--seed", o.seed, "Seed of the random graphs")->type_name("S");
  add_seconds_option(*command, o.seconds, "Approximate time for the figure");
  add_common_options(*command, flags->common);
  add_output_options(*command, choice.flags);
  command->footer("Example:\n  gradloom bench ged --graphs 100 --nodes 10 --threads 2");
  command->callback([flags, &choice] {
    choice.run = [flags](const Output& out) { return with_hints(kHints, [&] { return run_bench(out, *flags); }); };
  });
}

}  // namespace gradloom::cli
