#include "gradloom/app/sweep/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "gradloom/app/report/report.h"
#include "gradloom/data/csv.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

using nlohmann::json;

constexpr std::size_t kMostRuns = 10'000;

std::string folder_name(const SweepOptions& options, const std::vector<std::string>& overrides) {
  std::string name;
  for (std::size_t k = 0; k < options.keys.size(); ++k) name += (k == 0 ? "" : ",") + overrides[k];
  for (char& c : name)
    if (c == '/' || c == '"' || c == '\'' || c == ' ' || static_cast<unsigned char>(c) < 0x20) c = '_';
  constexpr std::size_t kLongestName = 200;
  return name.substr(0, kLongestName);
}

std::size_t combinations(const SweepOptions& options) {
  std::size_t count = 1;
  for (const SweepKey& key : options.keys) count = std::min(count * key.values.size(), kMostRuns + 1);
  return count;
}

}  // namespace

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

Result<SweepKey> parse_sweep(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0)
    return Error{ErrorCode::invalid_input,
                 fmt::format("'{}' is not a sweep; write KEY=VALUE,VALUE, for example optimizer.lr=0.1,0.01", text)};
  SweepKey sweep{text.substr(0, at), {""}};
  int depth = 0;
  char quote = 0;
  for (const char c : text.substr(at + 1)) {
    if (quote == 0 && c == ',' && depth == 0) {
      sweep.values.emplace_back();
      continue;
    }
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    if (quote == 0 && (c == '[' || c == '{')) ++depth;
    if (quote == 0 && (c == ']' || c == '}')) --depth;
    sweep.values.back() += c;
  }
  for (const std::string& value : sweep.values)
    if (value.empty()) return Error{ErrorCode::invalid_input, fmt::format("the sweep '{}' has an empty value", text)};
  return sweep;
}

Result<std::vector<SweepRun>> plan_sweep(const SweepOptions& options,
                                         const std::function<Config(std::vector<std::string>)>& load) {
  std::set<std::string> keys, folders;
  for (const SweepKey& key : options.keys)
    if (!keys.insert(key.key).second)
      return Error{ErrorCode::invalid_input,
                   fmt::format("the key '{}' is swept twice; name all its values at once", key.key)};
  if (keys.contains("seed"))
    return Error{ErrorCode::invalid_input, "seed cannot be swept; --seed and --seeds set the seeds of a sweep"};
  const std::size_t count = combinations(options);
  if (count * options.seeds > kMostRuns)
    return Error{ErrorCode::invalid_input, fmt::format("the sweep has more than {} runs", kMostRuns)};
  std::vector<SweepRun> runs;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::string> overrides(options.keys.size());
    for (std::size_t k = options.keys.size(), rest = i; k-- > 0;) {
      const auto& values = options.keys[k].values;
      overrides[k] = fmt::format("{}={}", options.keys[k].key, values[rest % values.size()]);
      rest /= values.size();
    }
    const std::filesystem::path folder = options.folder / folder_name(options, overrides);
    if (!folders.insert(folder.string()).second)
      return Error{ErrorCode::invalid_input,
                   fmt::format("two combinations of the sweep have the folder '{}'", folder.string())};
    for (unsigned s = 0; s < options.seeds; ++s) {
      const std::int64_t seed = options.first_seed + s;
      std::vector<std::string> all = overrides;
      all.push_back(fmt::format("seed={}", seed));
      Config recipe = load(all);
      runs.push_back({std::move(all), seed, std::move(recipe),
                      options.seeds == 1 ? folder : folder / fmt::format("seed-{}", seed)});
    }
  }
  return runs;
}

bool is_of_one_run(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input:
    case ErrorCode::not_found:
    case ErrorCode::numeric:
    case ErrorCode::unsupported:
    case ErrorCode::device_memory:
    case ErrorCode::out_of_memory:
      return true;
    default:
      return false;
  }
}

void run_sweep(std::vector<SweepRun>& runs, const SweepOptions& options, const RunOptions& run_options,
               const std::function<void(const SweepRun&)>& done) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> ended = false;
  std::mutex telling;
  const auto work = [&] {
    for (;;) {
      if (ended || (run_options.stop && *run_options.stop)) return;
      const std::size_t at = options.part + options.parts * next++;
      if (at >= runs.size()) return;
      SweepRun& run = runs[at];
      run.begun = true;
      RunOptions own = run_options;
      own.progress = {};
      auto summary = train(run.recipe, run.folder, own);
      const std::lock_guard lock(telling);
      if (summary)
        run.summary = to_json(*summary);
      else
        run.error = summary.error();
      if (run.error && !is_of_one_run(run.error->code)) ended = true;
      done(run);
    }
  };
  const std::size_t jobs = run_options.device ? 1 : std::min<std::size_t>(options.jobs, runs.size());
  std::vector<std::thread> workers;
  for (std::size_t w = 1; w < jobs; ++w) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
}

SweepTable sweep_table(const std::vector<SweepRun>& runs, const SweepOptions& options) {
  SweepTable table;
  for (const SweepKey& key : options.keys) table.columns.push_back(key.key);
  std::vector<std::pair<std::string, std::string>> metrics;  // part and name, in order
  bool has_goal = false, has_unfinished = false;
  for (const SweepRun& run : runs) {
    if (run.error) table.failures.emplace_back(fmt::format("{}", fmt::join(run.overrides, " ")), run.error->message);
    has_unfinished = has_unfinished || (!run.error && !run.ended());
    if (!run.ended()) continue;
    ++table.ended;
    has_goal = has_goal || run.summary.contains("success");
    for (const char* part : {"validation", "test"})
      if (run.summary.contains(part) && run.summary[part].is_object())
        for (const auto& [name, _] : run.summary[part].items())
          if (std::find(metrics.begin(), metrics.end(), std::pair<std::string, std::string>(part, name)) ==
              metrics.end())
            metrics.emplace_back(part, name);
  }
  std::stable_sort(metrics.begin(), metrics.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [part, name] : metrics) table.columns.push_back(part + " " + name);
  table.columns.push_back("failed");
  if (has_goal) table.columns.push_back("success_rate");
  if (has_unfinished) table.columns.push_back("unfinished");
  table.columns.push_back("seconds");
  for (std::size_t first = 0; first < runs.size(); first += options.seeds) {
    std::vector<std::string> row;
    for (std::size_t k = 0; k < options.keys.size(); ++k)
      row.push_back(runs[first].overrides[k].substr(options.keys[k].key.size() + 1));
    std::size_t failed = 0, ended = 0, reached = 0;
    double seconds = 0.0;
    for (std::size_t i = first; i < first + options.seeds; ++i) {
      failed += runs[i].error.has_value();
      ended += runs[i].ended();
      reached += runs[i].ended() && runs[i].summary.value("success", true);
      seconds += runs[i].summary.value("seconds", 0.0);
    }
    if (failed + ended == 0) continue;
    for (const auto& [part, name] : metrics) {
      std::vector<double> values;
      for (std::size_t i = first; i < first + options.seeds; ++i) {
        const json found = runs[i].ended() ? runs[i].summary.value(part, json()) : json();
        if (found.is_object() && found.contains(name) && found[name].is_number())
          values.push_back(found[name].get<double>());
      }
      row.push_back(values.empty() ? "" : fmt::format("{:.6g}", median_of(std::move(values))));
    }
    row.push_back(fmt::format("{}", failed));
    if (has_goal)
      row.push_back(fmt::format("{:.3g}", static_cast<double>(reached) / static_cast<double>(failed + ended)));
    if (has_unfinished) row.push_back(fmt::format("{}", options.seeds - failed - ended));
    row.push_back(fmt::format("{:.2f}", seconds));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Result<void> write_sweep(const SweepTable& table, const SweepOptions& options, const std::string& title) {
  std::string csv;
  const auto add = [&](const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) csv += (c == 0 ? "" : ",") + csv_field(cells[c]);
    csv += '\n';
  };
  add(table.columns);
  for (const auto& row : table.rows) add(row);
  if (auto r = write_file_atomic(options.folder / "sweep.csv", csv); !r) return r;
  Table shown{"All combinations",
              options.seeds == 1 ? "" : fmt::format("Medians of {} seeds each.", options.seeds),
              table.columns,
              {}};
  for (const auto& row : table.rows) {
    std::vector<Value> cells;
    for (const std::string& cell : row) {
      double number = 0.0;
      if (parse_number(cell, number))
        cells.emplace_back(number);
      else
        cells.emplace_back(cell);
    }
    shown.rows.push_back(std::move(cells));
  }
  Report report;
  report.title = title;
  report.subtitle = fmt::format("a sweep; {} ended, {} failed", counted(table.ended, "run"), table.failures.size());
  report.sections.push_back(std::move(shown));
  Table failed{"Runs that failed", "", {"run", "what was wrong"}, {}};
  for (const auto& [run, message] : table.failures) failed.rows.push_back({run, message});
  if (!failed.rows.empty()) report.sections.push_back(std::move(failed));
  return write_file_atomic(options.folder / "report.html", report_html(report));
}

}  // namespace gradloom::app
