#include "gradloom/ged/upper.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gradloom::ged {
namespace {

// Edges between row i at column j and all other rows except `skip`, and the node itself.
Cost share(const Problem& p, const std::vector<std::uint32_t>& image, std::uint32_t i, std::uint32_t j,
           std::uint32_t skip) {
  Cost cost = j == kErased ? p.erase(i) : p.node(i, j) - p.insert(j);
  for (std::uint32_t k = 0; k < p.rows(); ++k) {
    if (k == i || k == skip) continue;
    const std::uint32_t b = j == kErased || image[k] == kErased ? 0u : p.relation2(j, image[k]);
    cost += p.pair(p.relation1(i, k), b) - p.pair(0, b);
  }
  return cost;
}

Cost between(const Problem& p, std::uint32_t i, std::uint32_t k, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t r = a == kErased || b == kErased ? 0u : p.relation2(a, b);
  return p.pair(p.relation1(i, k), r) - p.pair(0, r);
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
  bool better = true;
  for (unsigned round = 0; better && round < rounds; ++round) {
    better = false;
    for (std::uint32_t i = 0; i < p.rows(); ++i) {
      if (deadline.passed()) return cost;
      for (std::uint32_t k = i + 1; k < p.rows(); ++k) {
        const std::uint32_t a = image[i], b = image[k];
        const Cost old = share(p, image, i, a, k) + share(p, image, k, b, i) + between(p, i, k, a, b);
        const Cost now = share(p, image, i, b, k) + share(p, image, k, a, i) + between(p, i, k, b, a);
        if (now >= old) continue;
        std::swap(image[i], image[k]);
        cost += now - old;
        better = true;
      }
      const Cost old = share(p, image, i, image[i], i);
      Cost best = old;
      std::uint32_t to = image[i];
      for (std::uint32_t j = 0; j < p.columns(); ++j) {
        if (used[j]) continue;
        if (const Cost now = share(p, image, i, j, i); now < best) {
          best = now;
          to = j;
        }
      }
      if (!p.full() && image[i] != kErased)
        if (const Cost now = share(p, image, i, kErased, i); now < best) {
          best = now;
          to = kErased;
        }
      if (best == old) continue;
      if (image[i] != kErased) used[image[i]] = false;
      if (to != kErased) used[to] = true;
      image[i] = to;
      cost += best - old;
      better = true;
    }
  }
  return cost;
}

}  // namespace gradloom::ged
