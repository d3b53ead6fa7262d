// Fingerprints of data: a number that tells whether a run goes on with the data it began with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "gradloom/base/hash.h"
#include "gradloom/data/batch.h"
#include "gradloom/data/graph_batch.h"
#include "gradloom/data/graph_pairs.h"
#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/data/rows.h"

namespace gradloom {

// Takes values in order; equal sequences give equal numbers, different ones almost never do. Made to notice mistakes,
// not forgeries.
class Fingerprint {
 public:
  void take(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 29;
  }
  template <class V>
  void take(std::span<const V> values) {
    take(values.size());
    for (const V& v : values) take_bits(v);
  }
  template <class V>
  void take(View<const V, 2> rows) {
    take(rows.extent(0));
    take(rows.extent(1));
    for (std::size_t s = 0; s < rows.extent(0); ++s)
      for (std::size_t j = 0; j < rows.extent(1); ++j) take_bits(rows.row(s)[j * rows.stride(1)]);
  }
  std::uint64_t value() const { return state_; }

 private:
  template <class V>
  void take_bits(const V& v) {
    static_assert(sizeof(V) <= sizeof(std::uint64_t));
    std::uint64_t word = 0;
    std::memcpy(&word, &v, sizeof(V));
    take(word);
  }

  std::uint64_t state_ = kHashStart;
};

// What everything else in a batch follows from.
template <class T>
void add_to(Fingerprint& f, const RowBatch<T>& batch) {
  f.take(batch.size);
  f.take(batch.x);
  f.take(batch.target);
  f.take(batch.label);
  f.take(batch.mask);
  f.take(batch.weight);
}

template <class T>
void add_to(Fingerprint& f, const GraphBatch<T>& batch) {
  add_to(f, static_cast<const RowBatch<T>&>(batch));
  f.take(batch.arcs.ptr);
  f.take(batch.arcs.index);
  f.take(batch.graph_ptr);
  f.take(batch.edge_weight);
  f.take(batch.edge_x);
  f.take(batch.features.ptr);
  f.take(batch.features.index);
  f.take(batch.feature_value);
}

template <class T>
void add_to(Fingerprint& f, const PairBatch<T>& batch) {
  add_to(f, static_cast<const GraphBatch<T>&>(batch));
  f.take(batch.first);
  f.take(batch.second);
}

template <class T>
void add_to(Fingerprint& f, const TreeBatch<T>& batch) {
  add_to(f, static_cast<const RowBatch<T>&>(batch));
  f.take(batch.graph_ptr);
  f.take(batch.symbol);
  f.take(batch.parent);
  f.take(batch.edit);
  f.take(batch.insert);
}

// Of a whole data set.
template <class D>
std::uint64_t fingerprint(const D& data) {
  Fingerprint f;
  add_to(f, data.all());
  return f.value();
}

// Rows that differ by an offset alone have other centres.
template <class T>
std::uint64_t fingerprint(const RowDataset<T>& data) {
  Fingerprint f;
  add_to(f, data.all());
  for (const std::vector<double>* centre : {&data.parts().centre.x, &data.parts().centre.target})
    if (!centre->empty()) f.take(std::span<const double>(*centre));
  return f.value();
}

}  // namespace gradloom
