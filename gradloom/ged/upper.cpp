#include "gradloom/ged/upper.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gradloom::ged {
namespace {

// The edge between two rows at two columns, beyond what is inserted there.
Cost between(const Problem& p, std::uint32_t i, std::uint32_t k, std::uint32_t a, std::uint32_t b) {
  return p.gain(p.relation1(i, k), a == kErased || b == kErased ? 0u : p.relation2(a, b));
}

std::vector<std::uint32_t> by_degree(const Problem& p) {
  std::vector<std::uint32_t> degree(p.rows()), order(p.rows());
  for (std::uint32_t i = 0; i < p.rows(); ++i)
    for (std::uint32_t k = 0; k < p.rows(); ++k) degree[i] += p.relation1(i, k) != 0;
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return degree[a] > degree[b]; });
  return order;
}

}  // namespace

std::vector<std::uint32_t> greedy_mapping(const Problem& p, const Deadline& deadline) {
  bool late = false;
  std::vector<std::uint32_t> image(p.rows(), kErased), done;
  std::vector<bool> used(p.columns());
  for (std::uint32_t i : by_degree(p)) {
    late = late || deadline.passed();
    Cost best = std::numeric_limits<Cost>::max();
    const auto consider = [&](std::uint32_t j) {
      Cost cost = j == kErased ? p.erase(i) : p.node(i, j) - p.insert(j);
      if (!late)
        for (std::uint32_t k : done) cost += between(p, i, k, j, image[k]);
      if (cost >= best) return;
      best = cost;
      image[i] = j;
    };
    for (std::uint32_t j = 0; j < p.columns(); ++j)
      if (!used[j]) consider(j);
    if (!p.full()) consider(kErased);
    if (image[i] != kErased) used[image[i]] = true;
    done.push_back(i);
  }
  return image;
}

Cost improve_by_swaps(const Problem& p, std::vector<std::uint32_t>& image, unsigned rounds, const Deadline& deadline) {
  Cost cost = p.cost(image);
  std::vector<bool> used(p.columns());
  for (std::uint32_t j : image)
    if (j != kErased) used[j] = true;
  std::vector<Cost> share(p.rows());  // of each row where it is
  for (std::uint32_t i = 0; i < p.rows(); ++i) share[i] = p.share(image, i, image[i]);
  const auto place = [&](std::uint32_t i, std::uint32_t to) {
    for (std::uint32_t k = 0; k < p.rows(); ++k)
      if (k != i) share[k] += between(p, k, i, image[k], to) - between(p, k, i, image[k], image[i]);
    image[i] = to;
    share[i] = p.share(image, i, to);
  };
  bool better = true;
  for (unsigned round = 0; better && round < rounds; ++round) {
    better = false;
    for (std::uint32_t i = 0; i < p.rows(); ++i) {
      if (deadline.passed()) return cost;
      for (std::uint32_t k = i + 1; k < p.rows(); ++k) {
        const std::uint32_t a = image[i], b = image[k];
        // Both shares contain the edge between the two, of which none is left where both are at one column.
        const Cost old = share[i] + share[k] - between(p, i, k, a, b);
        const Cost now =
            p.share(image, i, b) + p.share(image, k, a) - 2 * p.gain(p.relation1(i, k), 0) + between(p, i, k, b, a);
        if (now >= old) continue;
        place(i, b);
        place(k, a);
        cost += now - old;
        better = true;
      }
      const Cost old = share[i];
      Cost best = old;
      std::uint32_t to = image[i];
      for (std::uint32_t j = 0; j < p.columns(); ++j) {
        if (used[j]) continue;
        if (const Cost now = p.share(image, i, j); now < best) {
          best = now;
          to = j;
        }
      }
      if (!p.full() && image[i] != kErased)
        if (const Cost now = p.share(image, i, kErased); now < best) {
          best = now;
          to = kErased;
        }
      if (best == old) continue;
      if (image[i] != kErased) used[image[i]] = false;
      if (to != kErased) used[to] = true;
      place(i, to);
      cost += best - old;
      better = true;
    }
  }
  return cost;
}

}  // namespace gradloom::ged
