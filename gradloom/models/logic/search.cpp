#include "gradloom/models/logic/search.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "gradloom/base/random.h"
#include "gradloom/models/logic/harden.h"

namespace gradloom::logic {

namespace gate = kernels::gate;

namespace {

constexpr std::size_t kRuns = 2;     // of mutants, side by side, before one is chosen
constexpr std::size_t kLanes = 8;    // starts that a mutant is first tried on
constexpr std::size_t kScreens = 4;  // choices of these
constexpr std::size_t kJudged = 3;   // mutants of a round that are tried on all starts
constexpr std::size_t kMerged = 8;   // mutants of a round that are tried together
constexpr std::size_t kDrift = 2;    // gates that a circuit may gain without being better
constexpr std::size_t kSlack = 16;
constexpr std::size_t kHistory = 30;  // rounds that late acceptance looks back

constexpr int kDecided = 20;  // logits by which the function of a gate leads after a search
constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

struct Change {
  std::uint32_t logits;  // where those of the gate lie
  circuit::Op op;
};
using Changes = std::vector<Change>;

// Draws numbers one after the other.
class Draws {
 public:
  explicit Draws(RandomStream stream) : stream_(stream) {}
  std::uint32_t below(std::size_t n) { return stream_.below(position_++, static_cast<std::uint32_t>(n)); }

 private:
  RandomStream stream_;
  std::uint32_t position_ = 0;
};

// The bits that all looks compare.
std::uint64_t judged_bits(const std::vector<Trial>& trials) {
  std::uint64_t bits = 0;
  for (const Trial& trial : trials)
    for (const Trial::Look& look : trial.looks)
      bits += static_cast<std::uint64_t>(std::popcount(look.starts)) * trial.target.size();
  return bits;
}

// Half of the time one of the four largest logits, else any function; never `now`.
template <class T>
circuit::Op other_function(const T* logits, circuit::Op now, Draws& draws) {
  std::uint32_t order[gate::kFunctions];
  for (std::uint32_t i = 0; i < gate::kFunctions; ++i) order[i] = i;
  std::stable_sort(order, order + gate::kFunctions,
                   [&](std::uint32_t x, std::uint32_t y) { return logits[x] > logits[y]; });
  const std::size_t among = draws.below(2) == 0 ? 4 : gate::kFunctions;
  while (true) {
    const auto op = static_cast<circuit::Op>(order[draws.below(among)]);
    if (op != now) return op;
  }
}

}  // namespace

template <class T>
std::vector<std::uint32_t> logits_of_gates(const Automaton<T>& automaton) {
  std::vector<std::uint32_t> result;
  const std::size_t kernels = automaton.options().kernels;
  const auto add = [&](const auto& layer, std::size_t k, std::size_t j) {
    result.push_back(static_cast<std::uint32_t>(automaton.parameters()[layer.parameter].offset +
                                                (k * layer.gates + j) * gate::kFunctions));
  };
  for (std::size_t c = 0; c < automaton.options().channels; ++c)
    for (const auto& layer : automaton.perception())
      for (std::size_t j = 0; j < layer.gates; ++j)
        for (std::size_t k = 0; k < kernels; ++k) add(layer, k, j);
  for (const auto& layer : automaton.update())
    for (std::size_t j = 0; j < layer.gates; ++j) add(layer, 0, j);
  return result;
}

namespace {

// Sets of a few starts of the trials, repeated for as many mutants as a word has room for.
struct Screens {
  std::size_t groups = 0;
  std::vector<TrialRunner> runners;

  explicit Screens(const std::vector<Trial>& trials) {
    std::uint64_t used = 0;
    for (const Trial::Look& look : trials[0].looks) used |= look.starts;
    const auto starts = static_cast<std::size_t>(std::bit_width(used));
    const std::size_t lanes = std::min(kLanes, std::bit_floor(std::max<std::size_t>(1, starts)));
    groups = 64 / lanes;
    for (std::size_t s = 0; s < kScreens; ++s) {
      std::vector<unsigned> chosen;
      for (std::size_t k = 0; k < lanes; ++k)
        chosen.push_back(static_cast<unsigned>((k * starts / lanes + s) % starts));
      runners.push_back(TrialRunner(trials[s % trials.size()]).repeat(chosen));
    }
  }
};

// A circuit that changes step by step, and what is known about it.
template <class T>
class Search {
 public:
  Search(const Automaton<T>& automaton, const std::vector<Trial>& trials, const SearchOptions& options,
         std::span<const T> parameters, circuit::Circuit start)
      : options_(options), logits_(logits_of_gates(automaton)), parameters_(parameters), now_(std::move(start)) {
    gates_of_.resize(parameters.size() / gate::kFunctions);
    for (std::size_t g = 0; g < logits_.size(); ++g)
      gates_of_[logits_[g] / gate::kFunctions].push_back(static_cast<std::uint32_t>(g));
    for (const Trial& trial : trials) full_.emplace_back(trial);
    const Screens screens(trials);
    for (Run& run : runs_) {
      run.screens = screens.runners;
      run.wrong.resize(screens.groups);
      run.mutants.resize(screens.groups);
    }
    for (std::size_t g = 0; g < screens.groups; ++g)
      masks_.push_back((screens.groups == 1 ? ~std::uint64_t{0} : (std::uint64_t{1} << (64 / screens.groups)) - 1)
                       << (g * (64 / screens.groups)));
    wrong_ = judge(now_, kUnknown);
    size_ = compiler_.compile(now_).gates;
    largest_ = size_ + size_ / 2 + kSlack;
    best_wrong_ = wrong_;
    best_ = now_;
    history_.assign(kHistory, wrong_ + wrong_ / 4 + kSlack);
    accepted();
  }

  std::uint64_t wrong() const { return best_wrong_; }
  circuit::Op best(std::size_t gate) const { return best_.gates[gates_of_[gate][0]].op; }
  circuit::Op op(std::size_t gate) const { return now_.gates[gates_of_[gate][0]].op; }
  bool has_gate(std::size_t gate) const { return !gates_of_[gate].empty(); }
  std::size_t mutants_of_a_round() const { return kRuns * (masks_.size() - 1); }

  void round(const Exec& ex, std::uint32_t number) {
    const std::size_t screen = number % kScreens;
    // Late acceptance: as good as the circuit of some rounds ago is good enough.
    const std::uint64_t late = std::max(wrong_, history_[number % history_.size()]);
    slack_ = (late - wrong_) / masks_.size();
    ex.parallel_for(kRuns, [&](std::size_t r, unsigned) { mutate(runs_[r], r, number, screen); });
    std::vector<std::pair<std::uint64_t, const Changes*>> survivors;
    for (Run& run : runs_) {
      if (!run.complete) continue;
      most_[screen] = run.wrong[0];
      for (std::size_t g = 1; g < masks_.size(); ++g)
        if (run.wrong[g] <= run.wrong[0] + slack_) survivors.push_back({run.wrong[g], &run.mutants[g]});
    }
    std::stable_sort(survivors.begin(), survivors.end(),
                     [](const auto& x, const auto& y) { return x.first < y.first; });
    // Many at once first: most changes do not meddle with each other.
    Changes merged;
    for (std::size_t i = 0; i < std::min(kMerged, survivors.size()); ++i)
      merged.insert(merged.end(), survivors[i].second->begin(), survivors[i].second->end());
    bool found = survivors.size() > 1 && accepts(merged, wrong_);
    for (std::size_t i = 0; !found && i < std::min(kJudged, survivors.size()); ++i)
      found = accepts(*survivors[i].second, late);
    history_[number % history_.size()] = wrong_;
    if (wrong_ < best_wrong_) {
      best_wrong_ = wrong_;
      best_ = now_;
    }
  }

 private:
  struct Run {
    TrialCompiler compiler;
    std::vector<TrialRunner> screens;
    std::vector<Changes> mutants;
    std::vector<Mutation> mutations;
    std::vector<std::uint64_t> wrong;
    bool complete = false;
  };

  std::uint64_t judge(const circuit::Circuit& circuit, std::uint64_t most) {
    const TrialProgram& program = compiler_.compile(circuit);
    std::uint64_t sum = 0;
    for (TrialRunner& trial : full_) {
      sum += trial.wrong(program, most - sum);
      if (sum > most) break;
    }
    return sum;
  }

  void mutate(Run& run, std::size_t r, std::uint32_t round, std::size_t screen) const {
    run.mutations.clear();
    for (std::uint32_t g = 1; g < masks_.size(); ++g) {
      // Sample 0 of this use belongs to the seeds of restarts; g is never 0.
      Draws draws(RandomStream(options_.seed, RandomUse::restart, round, static_cast<std::uint32_t>(r << 8 | g)));
      Changes& changes = run.mutants[g];
      changes.clear();
      const std::size_t count = 1 + (draws.below(3) == 0);
      for (std::size_t n = 0; n < count; ++n) {
        const std::uint32_t at = matter_[draws.below(matter_.size())];
        const Change change{at, other_function(parameters_.data() + at, op(at / gate::kFunctions), draws)};
        if (n == 1 && changes[0].logits == at) break;
        changes.push_back(change);
        for (const std::uint32_t gate : gates_of_[at / gate::kFunctions]) run.mutations.push_back({gate, change.op, g});
      }
    }
    std::stable_sort(run.mutations.begin(), run.mutations.end(),
                     [](const Mutation& x, const Mutation& y) { return x.gate < y.gate; });
    const TrialProgram& program = run.compiler.compile(now_, run.mutations, masks_);
    const std::uint64_t most = most_[screen] == kUnknown ? kUnknown : most_[screen] + slack_;
    run.complete = run.screens[screen].wrong_by_group(program, most, run.wrong);
  }

  bool accepts(const Changes& changes, std::uint64_t late) {
    circuit::Circuit next = now_;
    for (const Change& change : changes)
      for (const std::uint32_t g : gates_of_[change.logits / gate::kFunctions]) next.gates[g].op = change.op;
    const std::uint64_t wrong = judge(next, late);
    if (wrong > late) return false;
    const std::size_t size = compiler_.compile(next).gates;
    // A circuit that is only as good may grow a little: drift finds ways that improvement alone does not.
    if (wrong >= wrong_ && size > std::min(size_ + kDrift, largest_)) return false;
    now_ = std::move(next);
    wrong_ = wrong;
    size_ = size;
    accepted();
    return true;
  }

  void accepted() {
    std::fill_n(most_, kScreens, kUnknown);
    const std::vector<std::uint8_t> reached = TrialCompiler::reached(now_);
    matter_.clear();
    for (std::size_t g = 0; g < reached.size(); ++g)
      if (reached[g]) matter_.push_back(logits_[g]);
    std::sort(matter_.begin(), matter_.end());
    matter_.erase(std::unique(matter_.begin(), matter_.end()), matter_.end());
  }

  SearchOptions options_;
  std::vector<std::uint32_t> logits_;                 // of each gate
  std::vector<std::vector<std::uint32_t>> gates_of_;  // of each 16 logits
  std::span<const T> parameters_;
  circuit::Circuit now_;
  std::uint64_t wrong_ = 0, best_wrong_ = 0, slack_ = 0;
  circuit::Circuit best_;
  std::vector<std::uint64_t> history_;
  std::size_t size_ = 0, largest_ = 0;
  std::vector<std::uint32_t> matter_;  // logits of gates that are reached, each once
  std::vector<std::uint64_t> masks_;   // of each mutant; the first has no mutation
  std::uint64_t most_[kScreens] = {};  // wrong bits of the circuit on each screen, where known
  TrialCompiler compiler_;
  std::vector<TrialRunner> full_;
  Run runs_[kRuns];
};

}  // namespace

template <class T>
SearchReport search_gates(const Exec& ex, const Automaton<T>& automaton, const std::vector<Trial>& trials,
                          const SearchOptions& options, std::span<const T> buffers, std::span<T> parameters) {
  Search<T> search(automaton, trials, options, parameters, harden(automaton, {parameters, buffers}).circuit);
  SearchReport report;
  report.before = report.after = search.wrong();
  if (static_cast<double>(report.before) > options.hopeless * static_cast<double>(judged_bits(trials))) return report;
  for (std::uint32_t round = 0; search.wrong() > 0 && report.mutants < options.mutants; ++round) {
    search.round(ex, round);
    report.mutants += search.mutants_of_a_round();
  }
  report.after = search.wrong();
  if (report.mutants == 0) return report;
  for (std::size_t at = 0; at + gate::kFunctions <= parameters.size(); at += gate::kFunctions) {
    if (!search.has_gate(at / gate::kFunctions)) continue;
    T* z = parameters.data() + at;
    T& chosen = z[static_cast<std::size_t>(search.best(at / gate::kFunctions))];
    T others = -std::numeric_limits<T>::infinity();
    for (std::size_t i = 0; i < gate::kFunctions; ++i)
      if (z + i != &chosen) others = std::max(others, z[i]);
    chosen = std::max(chosen, others + T(kDecided));
  }
  return report;
}

#define GRADLOOM_INSTANTIATE(T)                                                                      \
  template std::vector<std::uint32_t> logits_of_gates<T>(const Automaton<T>&);                       \
  template SearchReport search_gates<T>(const Exec&, const Automaton<T>&, const std::vector<Trial>&, \
                                        const SearchOptions&, std::span<const T>, std::span<T>);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::logic
