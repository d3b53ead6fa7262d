#include "gradloom/circuit/resubstitute.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <optional>

#include "gradloom/base/function_ref.h"
#include "gradloom/base/random.h"
#include "gradloom/circuit/simulate.h"

namespace gradloom::circuit {
namespace {

using Kind = NetworkNode::Kind;
using Table = std::vector<std::uint64_t>;

// (inner(b, c)) or outer(a, inner(b, c)), inverted if said so.
struct Replacement {
  unsigned gates = 0;  // new ones: 0 is the literal a, 1 is inner(b, c), 2 is all of it
  Kind outer = Kind::conjunction, inner = Kind::conjunction;
  Literal a = 0, b = 0, c = 0;
  bool flip_inner = false, flip = false;
};

enum class Want { saving, saving_or_equal };

class Search {
 public:
  Search(Network net, std::uint64_t seed) : random_(seed, RandomUse::restart), best_(std::move(net)) { set(best_); }

  std::size_t gates() const { return net_.gates(); }
  const Network& best() const { return best_; }

  // Visits every gate again and again until none can be replaced with a saving.
  void descend(unsigned most_gates) {
    loss_ = 0;
    for (bool saved = true; saved;) {
      saved = false;
      for (std::uint32_t n = net_.size(); n-- > net_.first_gate();) {
        if (n >= net_.size()) continue;
        if (const auto r = find(n, Want::saving, most_gates)) {
          replace(n, *r);
          saved = true;
        }
      }
    }
  }

  // One random gate, replaced by something as good or better; now and then by something worse, to leave a valley, but
  // never far above the best.
  void wander() {
    if (net_.gates() == 0) return;
    const std::uint32_t n = net_.first_gate() + below(static_cast<std::uint32_t>(net_.gates()));
    loss_ = below(kUphill) == 0 && net_.gates() < best_.gates() + kMostAbove ? 1 : 0;
    if (const auto r = find(n, Want::saving_or_equal, 2)) replace(n, *r);
  }

 private:
  std::uint32_t below(std::uint32_t n) { return random_.below(drawn_++, n); }

  void set(Network net) {
    net_ = std::move(net);
    if (net_.gates() < best_.gates()) best_ = net_;
    words_ = net_.inputs() > 6 ? std::size_t{1} << (net_.inputs() - 6) : 1;
    table_.assign(net_.size() * words_, 0);
    for (std::uint32_t i = 0; i < net_.inputs(); ++i)
      for (std::size_t w = 0; w < words_; ++w) table_[(1 + i) * words_ + w] = variable_word(i, w);
    for (std::uint32_t n = net_.first_gate(); n < net_.size(); ++n) evaluate(n, table_.data(), nullptr);
    references_.assign(net_.size(), 0);
    for (std::uint32_t n = net_.first_gate(); n < net_.size(); ++n) {
      ++references_[node_of(net_[n].a)];
      ++references_[node_of(net_[n].b)];
    }
    for (const Literal o : net_.outputs()) ++references_[node_of(o)];
  }

  // The table of node n into `to`, with operands from `to` where touched says so and from table_ otherwise.
  void evaluate(std::uint32_t n, std::uint64_t* to, const std::vector<bool>* touched) const {
    const NetworkNode& node = net_[n];
    const std::uint32_t a = node_of(node.a), b = node_of(node.b);
    const std::uint64_t* x = (touched && (*touched)[a] ? to : table_.data()) + a * words_;
    const std::uint64_t* y = (touched && (*touched)[b] ? to : table_.data()) + b * words_;
    const std::uint64_t flip_x = inverted(node.a) ? ~std::uint64_t{0} : 0,
                        flip_y = inverted(node.b) ? ~std::uint64_t{0} : 0;
    for (std::size_t w = 0; w < words_; ++w)
      to[n * words_ + w] = node.kind == Kind::parity ? x[w] ^ y[w] : (x[w] ^ flip_x) & (y[w] ^ flip_y);
  }

  // Where an output notices that n is wrong; and which nodes depend on n (n included).
  Table care_of(std::uint32_t n, std::vector<bool>& above) {
    above.assign(net_.size(), false);
    above[n] = true;
    flipped_.resize(table_.size());
    for (std::size_t w = 0; w < words_; ++w) flipped_[n * words_ + w] = ~table_[n * words_ + w];
    for (std::uint32_t m = n + 1; m < net_.size(); ++m) {
      if (!above[node_of(net_[m].a)] && !above[node_of(net_[m].b)]) continue;
      above[m] = true;
      evaluate(m, flipped_.data(), &above);
    }
    Table care(words_, 0);
    for (const Literal o : net_.outputs())
      if (above[node_of(o)])
        for (std::size_t w = 0; w < words_; ++w)
          care[w] |= flipped_[node_of(o) * words_ + w] ^ table_[node_of(o) * words_ + w];
    // Fewer than 64 assignments fill a word by repetition.
    return care;
  }

  // How many gates vanish with n while the kept literals stay in use.
  unsigned freed(std::uint32_t n, const Replacement& r) {
    std::vector<Literal> kept;
    if (r.gates != 1) kept.push_back(r.a);
    if (r.gates != 0) kept.insert(kept.end(), {r.b, r.c});
    for (const Literal l : kept) ++references_[node_of(l)];
    touched_.clear();
    unsigned count = 0;
    std::vector<std::uint32_t> waiting{n};
    while (!waiting.empty()) {
      const std::uint32_t m = waiting.back();
      waiting.pop_back();
      ++count;
      for (const Literal l : {net_[m].a, net_[m].b}) {
        touched_.push_back(node_of(l));
        if (--references_[node_of(l)] == 0 && node_of(l) >= net_.first_gate()) waiting.push_back(node_of(l));
      }
    }
    for (const std::uint32_t m : touched_) ++references_[m];
    for (const Literal l : kept) --references_[node_of(l)];
    return count;
  }

  // Calls found(kind, b, c, flip) for gates that are 1 on all of `on` and 0 on all of `off`, until it returns true.
  using Found = FunctionRef<bool(Kind, Literal, Literal, bool)>;
  bool gates_between(const Table& on, const Table& off, Found found) {
    above_on_.clear();
    below_off_.clear();
    for (const std::uint32_t d : divisors_) {
      const std::uint64_t* t = table_.data() + d * words_;
      bool up = true, up_inverse = true, down = true, down_inverse = true;
      for (std::size_t w = 0; w < words_ && (up || up_inverse || down || down_inverse); ++w) {
        up = up && (on[w] & ~t[w]) == 0;
        up_inverse = up_inverse && (on[w] & t[w]) == 0;
        down = down && (off[w] & t[w]) == 0;
        down_inverse = down_inverse && (off[w] & ~t[w]) == 0;
      }
      if (up) above_on_.push_back(literal(d));
      if (up_inverse) above_on_.push_back(literal(d, true));
      if (down) below_off_.push_back(literal(d));
      if (down_inverse) below_off_.push_back(literal(d, true));
    }
    const auto word = [&](Literal l, std::size_t w) {
      return table_[node_of(l) * words_ + w] ^ (inverted(l) ? ~std::uint64_t{0} : 0);
    };
    for (std::size_t i = 0; i < above_on_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        bool fits = true;
        for (std::size_t w = 0; w < words_ && fits; ++w)
          fits = (word(above_on_[i], w) & word(above_on_[j], w) & off[w]) == 0;
        if (fits && found(Kind::conjunction, above_on_[i], above_on_[j], false)) return true;
      }
    for (std::size_t i = 0; i < below_off_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        bool fits = true;
        for (std::size_t w = 0; w < words_ && fits; ++w)
          fits = (on[w] & ~(word(below_off_[i], w) | word(below_off_[j], w))) == 0;
        if (fits && found(Kind::conjunction, below_off_[i] ^ 1, below_off_[j] ^ 1, true)) return true;
      }
    for (std::size_t i = 0; i < divisors_.size(); ++i) {
      const std::uint64_t* x = table_.data() + divisors_[i] * words_;
      for (std::size_t j = 0; j < i; ++j) {
        const std::uint64_t* y = table_.data() + divisors_[j] * words_;
        bool equal = true, inverse = true;
        for (std::size_t w = 0; w < words_ && (equal || inverse); ++w) {
          const std::uint64_t parity = x[w] ^ y[w];
          equal = equal && (on[w] & ~parity) == 0 && (off[w] & parity) == 0;
          inverse = inverse && (on[w] & parity) == 0 && (off[w] & ~parity) == 0;
        }
        if ((equal || inverse) && found(Kind::parity, literal(divisors_[i]), literal(divisors_[j]), !equal))
          return true;
      }
    }
    return false;
  }

  std::optional<Replacement> find(std::uint32_t n, Want want, unsigned most_gates) {
    std::vector<bool> above;
    const Table care = care_of(n, above);
    Table on(words_), off(words_);
    for (std::size_t w = 0; w < words_; ++w) {
      on[w] = table_[n * words_ + w] & care[w];
      off[w] = ~table_[n * words_ + w] & care[w];
    }
    divisors_.clear();
    for (std::uint32_t d = 1; d < net_.size(); ++d)
      if (!above[d] && (d < net_.first_gate() || references_[d] > 0)) divisors_.push_back(d);
    if (want == Want::saving_or_equal)
      for (std::size_t i = divisors_.size(); i > 1; --i)
        std::swap(divisors_[i - 1], divisors_[below(static_cast<std::uint32_t>(i))]);

    std::optional<Replacement> choice;
    // True when the search may end.
    const auto offer = [&](const Replacement& r) {
      const unsigned gone = freed(n, r);
      if (gone > r.gates) {
        choice = r;
        return true;
      }
      if (want == Want::saving || choice || gone + loss_ < r.gates || r.gates < 2 * loss_) return false;
      const bool itself =
          r.gates == 1 && net_[n].kind == r.inner &&
          std::minmax(node_of(r.b), node_of(r.c)) == std::minmax(node_of(net_[n].a), node_of(net_[n].b));
      if (!itself) choice = r;
      return false;
    };
    if (offer_signal(on, off, offer)) return choice;
    const unsigned all = freed(n, {});
    const unsigned slack = want == Want::saving ? 1 : 0;
    if (all < 1 + slack || most_gates < 1) return choice;
    if (gates_between(on, off, [&](Kind kind, Literal b, Literal c, bool flip) {
          return offer({1, kind, kind, 0, b, c, false, flip});
        }))
      return choice;
    if (all + loss_ < (choice ? 3 : 2 + slack) || most_gates < 2) return choice;
    offer_two(n, care, on, off, offer);
    return choice;
  }

  template <class Offer>
  bool offer_signal(const Table& on, const Table& off, Offer&& offer) {
    const auto none = [](const Table& t) {
      return std::all_of(t.begin(), t.end(), [](std::uint64_t w) { return w == 0; });
    };
    if (none(on)) return offer(Replacement{.a = kFalse});
    if (none(off)) return offer(Replacement{.a = kTrue});
    for (const std::uint32_t d : divisors_) {
      const std::uint64_t* t = table_.data() + d * words_;
      bool equal = true, inverse = true;
      for (std::size_t w = 0; w < words_ && (equal || inverse); ++w) {
        equal = equal && (on[w] & ~t[w]) == 0 && (off[w] & t[w]) == 0;
        inverse = inverse && (on[w] & t[w]) == 0 && (off[w] & ~t[w]) == 0;
      }
      if ((equal || inverse) && offer(Replacement{.a = literal(d, !equal)})) return true;
    }
    return false;
  }

  // outer(a, inner(b, c)): for each a that may stand outside, what is left for the gate inside.
  template <class Offer>
  void offer_two(std::uint32_t n, const Table& care, const Table& on, const Table& off, Offer&& offer) {
    Table inner_on(words_), inner_off(words_);
    for (const std::uint32_t d : divisors_) {
      const std::uint64_t* t = table_.data() + d * words_;
      for (const bool flip : {false, true}) {
        const Literal a = literal(d, flip);
        const auto word = [&](std::size_t w) { return flip ? ~t[w] : t[w]; };
        bool covers = true, inside = true;
        for (std::size_t w = 0; w < words_ && (covers || inside); ++w) {
          covers = covers && (on[w] & ~word(w)) == 0;
          inside = inside && (off[w] & word(w)) == 0;
        }
        if (covers) {  // n = a & inner
          for (std::size_t w = 0; w < words_; ++w) inner_off[w] = off[w] & word(w);
          if (gates_between(on, inner_off, [&](Kind kind, Literal b, Literal c, bool flip_inner) {
                return offer(Replacement{2, Kind::conjunction, kind, a, b, c, flip_inner, false});
              }))
            return;
        }
        if (inside) {  // n = a | inner
          for (std::size_t w = 0; w < words_; ++w) inner_on[w] = on[w] & ~word(w);
          if (gates_between(inner_on, off, [&](Kind kind, Literal b, Literal c, bool flip_inner) {
                return offer(Replacement{2, Kind::conjunction, kind, a ^ 1, b, c, !flip_inner, true});
              }))
            return;
        }
      }
      for (std::size_t w = 0; w < words_; ++w) {  // n = a ^ inner
        inner_on[w] = (table_[n * words_ + w] ^ t[w]) & care[w];
        inner_off[w] = ~(table_[n * words_ + w] ^ t[w]) & care[w];
      }
      if (gates_between(inner_on, inner_off, [&](Kind kind, Literal b, Literal c, bool flip_inner) {
            return offer(Replacement{2, Kind::parity, kind, literal(d), b, c, flip_inner, false});
          }))
        return;
    }
  }

  void replace(std::uint32_t n, const Replacement& r) {
    Network net(net_.inputs());
    constexpr Literal kUnknown = UINT32_MAX;
    std::vector<Literal> to(net_.size(), kUnknown);
    for (std::uint32_t i = 0; i < net_.first_gate(); ++i) to[i] = literal(i);
    const auto moved = [&](Literal l) { return to[node_of(l)] ^ (l & 1); };
    const auto made = [&](Kind kind, Literal a, Literal b) {
      return kind == Kind::parity ? net.parity(a, b) : net.conjunction(a, b);
    };
    // Depth first, because what replaces n may have a larger number.
    std::vector<std::uint32_t> stack;
    const auto build = [&](std::uint32_t root) {
      stack.push_back(root);
      while (!stack.empty()) {
        const std::uint32_t m = stack.back();
        if (to[m] != kUnknown) {
          stack.pop_back();
          continue;
        }
        std::vector<Literal> reads;
        if (m != n) reads = {net_[m].a, net_[m].b};
        if (m == n && r.gates != 1) reads.push_back(r.a);
        if (m == n && r.gates != 0) reads.insert(reads.end(), {r.b, r.c});
        bool ready = true;
        for (const Literal l : reads)
          if (to[node_of(l)] == kUnknown) {
            stack.push_back(node_of(l));
            ready = false;
          }
        if (!ready) continue;
        if (m != n) {
          to[m] = made(net_[m].kind, moved(net_[m].a), moved(net_[m].b));
        } else if (r.gates == 0) {
          to[m] = moved(r.a) ^ (r.flip ? 1 : 0);
        } else {
          Literal inner = made(r.inner, moved(r.b), moved(r.c));
          if (r.gates == 2) inner = made(r.outer, moved(r.a), inner ^ (r.flip_inner ? 1 : 0));
          to[m] = inner ^ (r.flip ? 1 : 0);
        }
        stack.pop_back();
      }
    };
    for (const Literal o : net_.outputs()) build(node_of(o));
    for (const Literal o : net_.outputs()) net.add_output(moved(o));
    set(net.without_dead());
  }

  static constexpr std::uint32_t kUphill = 6, kMostAbove = 2;

  RandomStream random_;
  std::uint32_t drawn_ = 0;
  unsigned loss_ = 0;  // gates that the next replacement may cost
  Network best_, net_{0};
  std::size_t words_ = 1;
  Table table_, flipped_;
  std::vector<std::uint32_t> references_, touched_, divisors_;
  std::vector<Literal> above_on_, below_off_;
};

}  // namespace

Network resubstitute(const Network& net, const ResubstituteOptions& options) {
  assert(net.inputs() <= kMaxTableInputs);
  Search search(net.without_dead(), options.seed);
  search.descend(0);
  search.descend(1);
  search.descend(2);
  for (std::uint32_t m = 0; m < options.moves; ++m) search.wander();
  return search.best();
}

}  // namespace gradloom::circuit
