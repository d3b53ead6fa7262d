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
  void descend(unsigned max_new_gates) {
    allowed_cost_ = 0;
    for (bool saved = true; saved;) {
      saved = false;
      for (std::uint32_t n = net_.size(); n-- > net_.first_gate();) {
        if (n >= net_.size()) continue;
        if (const auto r = find(n, Want::saving, max_new_gates)) {
          replace(n, *r);
          saved = true;
        }
      }
    }
  }

  // One random gate, replaced by something as good or better; now and then by something worse, to leave a valley, but
  // never far above the best.
  void random_move() {
    if (net_.gates() == 0) return;
    const std::uint32_t n = net_.first_gate() + below(static_cast<std::uint32_t>(net_.gates()));
    allowed_cost_ = below(kUphill) == 0 && net_.gates() < best_.gates() + kMostAbove ? 1 : 0;
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

  // The care set of n: where an output notices that n is wrong. And its transitive fanout, n included.
  Table care_of(std::uint32_t n, std::vector<bool>& tfo) {
    tfo.assign(net_.size(), false);
    tfo[n] = true;
    flipped_.resize(table_.size());
    for (std::size_t w = 0; w < words_; ++w) flipped_[n * words_ + w] = ~table_[n * words_ + w];
    for (std::uint32_t m = n + 1; m < net_.size(); ++m) {
      if (!tfo[node_of(net_[m].a)] && !tfo[node_of(net_[m].b)]) continue;
      tfo[m] = true;
      evaluate(m, flipped_.data(), &tfo);
    }
    Table care(words_, 0);
    for (const Literal o : net_.outputs())
      if (tfo[node_of(o)])
        for (std::size_t w = 0; w < words_; ++w)
          care[w] |= flipped_[node_of(o) * words_ + w] ^ table_[node_of(o) * words_ + w];
    // Fewer than 64 assignments fill a word by repetition.
    return care;
  }

  // The gates of n's maximum fanout-free cone (MFFC): those that vanish with n, while the operands of r stay in use.
  unsigned mffc_size(std::uint32_t n, const Replacement& r) {
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

  // Calls found(kind, b, c, flip) for gates of two divisors that are 1 on all of `on` and 0 on all of `off`, until it
  // returns true. Unate divisors, which cover `on` or avoid `off`, are operands of an AND or an OR.
  using Found = FunctionRef<bool(Kind, Literal, Literal, bool)>;
  bool find_gates(const Table& on, const Table& off, Found found) {
    and_divisors_.clear();
    or_divisors_.clear();
    for (const std::uint32_t d : divisors_) {
      const std::uint64_t* t = table_.data() + d * words_;
      bool up = true, up_inverse = true, down = true, down_inverse = true;
      for (std::size_t w = 0; w < words_ && (up || up_inverse || down || down_inverse); ++w) {
        up = up && (on[w] & ~t[w]) == 0;
        up_inverse = up_inverse && (on[w] & t[w]) == 0;
        down = down && (off[w] & t[w]) == 0;
        down_inverse = down_inverse && (off[w] & ~t[w]) == 0;
      }
      if (up) and_divisors_.push_back(literal(d));
      if (up_inverse) and_divisors_.push_back(literal(d, true));
      if (down) or_divisors_.push_back(literal(d));
      if (down_inverse) or_divisors_.push_back(literal(d, true));
    }
    const auto word = [&](Literal l, std::size_t w) {
      return table_[node_of(l) * words_ + w] ^ (inverted(l) ? ~std::uint64_t{0} : 0);
    };
    for (std::size_t i = 0; i < and_divisors_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        bool fits = true;
        for (std::size_t w = 0; w < words_ && fits; ++w)
          fits = (word(and_divisors_[i], w) & word(and_divisors_[j], w) & off[w]) == 0;
        if (fits && found(Kind::conjunction, and_divisors_[i], and_divisors_[j], false)) return true;
      }
    for (std::size_t i = 0; i < or_divisors_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        bool fits = true;
        for (std::size_t w = 0; w < words_ && fits; ++w)
          fits = (on[w] & ~(word(or_divisors_[i], w) | word(or_divisors_[j], w))) == 0;
        if (fits && found(Kind::conjunction, or_divisors_[i] ^ 1, or_divisors_[j] ^ 1, true)) return true;
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

  std::optional<Replacement> find(std::uint32_t n, Want want, unsigned max_new_gates) {
    std::vector<bool> tfo;
    const Table care = care_of(n, tfo);
    Table on(words_), off(words_);
    for (std::size_t w = 0; w < words_; ++w) {
      on[w] = table_[n * words_ + w] & care[w];
      off[w] = ~table_[n * words_ + w] & care[w];
    }
    divisors_.clear();
    for (std::uint32_t d = 1; d < net_.size(); ++d)
      if (!tfo[d] && (d < net_.first_gate() || references_[d] > 0)) divisors_.push_back(d);
    if (want == Want::saving_or_equal)
      for (std::size_t i = divisors_.size(); i > 1; --i)
        std::swap(divisors_[i - 1], divisors_[below(static_cast<std::uint32_t>(i))]);

    std::optional<Replacement> choice;
    // True when the search may end.
    const auto offer = [&](const Replacement& r) {
      const unsigned freed = mffc_size(n, r);
      if (freed > r.gates) {
        choice = r;
        return true;
      }
      if (want == Want::saving || choice || freed + allowed_cost_ < r.gates || r.gates < 2 * allowed_cost_)
        return false;
      const bool itself =
          r.gates == 1 && net_[n].kind == r.inner &&
          std::minmax(node_of(r.b), node_of(r.c)) == std::minmax(node_of(net_[n].a), node_of(net_[n].b));
      if (!itself) choice = r;
      return false;
    };
    if (resub0(on, off, offer)) return choice;
    const unsigned all = mffc_size(n, {});
    const unsigned slack = want == Want::saving ? 1 : 0;
    if (all < 1 + slack || max_new_gates < 1) return choice;
    if (resub1(on, off, offer)) return choice;
    if (all + allowed_cost_ < (choice ? 3 : 2 + slack) || max_new_gates < 2) return choice;
    resub2(n, care, on, off, offer);
    return choice;
  }

  // Replacements by zero, one and two gates of divisors. True when the offer was taken.
  template <class Offer>
  bool resub0(const Table& on, const Table& off, Offer&& offer) {
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

  template <class Offer>
  bool resub1(const Table& on, const Table& off, Offer&& offer) {
    return find_gates(on, off, [&](Kind kind, Literal b, Literal c, bool flip) {
      return offer(Replacement{1, kind, kind, 0, b, c, false, flip});
    });
  }

  // outer(a, inner(b, c)): for each a that may stand outside, what is left for the gate inside.
  template <class Offer>
  void resub2(std::uint32_t n, const Table& care, const Table& on, const Table& off, Offer&& offer) {
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
          if (find_gates(on, inner_off, [&](Kind kind, Literal b, Literal c, bool flip_inner) {
                return offer(Replacement{2, Kind::conjunction, kind, a, b, c, flip_inner, false});
              }))
            return;
        }
        if (inside) {  // n = a | inner
          for (std::size_t w = 0; w < words_; ++w) inner_on[w] = on[w] & ~word(w);
          if (find_gates(inner_on, off, [&](Kind kind, Literal b, Literal c, bool flip_inner) {
                return offer(Replacement{2, Kind::conjunction, kind, a ^ 1, b, c, !flip_inner, true});
              }))
            return;
        }
      }
      for (std::size_t w = 0; w < words_; ++w) {  // n = a ^ inner
        inner_on[w] = (table_[n * words_ + w] ^ t[w]) & care[w];
        inner_off[w] = ~(table_[n * words_ + w] ^ t[w]) & care[w];
      }
      if (find_gates(inner_on, inner_off, [&](Kind kind, Literal b, Literal c, bool flip_inner) {
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
  unsigned allowed_cost_ = 0;  // gates that the next replacement may cost
  Network best_, net_{0};
  std::size_t words_ = 1;
  Table table_, flipped_;
  std::vector<std::uint32_t> references_, touched_, divisors_;
  std::vector<Literal> and_divisors_, or_divisors_;
};

}  // namespace

Network resubstitute(const Network& net, const ResubstituteOptions& options) {
  assert(net.inputs() <= kMaxTableInputs);
  Search search(net.without_dead(), options.seed);
  search.descend(0);
  search.descend(1);
  search.descend(2);
  for (std::uint32_t m = 0; m < options.moves; ++m) search.random_move();
  return search.best();
}

}  // namespace gradloom::circuit
