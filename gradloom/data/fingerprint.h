// Fingerprints of data: a number that shows whether a run is resumed with the data that it was started with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "gradloom/data/batch.h"
#include "gradloom/data/graph.h"
#include "gradloom/data/graph_batch.h"
#include "gradloom/data/graph_pairs.h"
#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/data/rows.h"
#include "gradloom/io/checksum.h"

namespace gradloom {

// Takes values in order, XXH3 of their bytes; equal sequences give equal numbers, different ones almost never do. Made
// to notice mistakes, not forgeries.
class Fingerprint {
 public:
  void take(std::uint64_t word) { take_bytes(&word, 1); }
  template <class V>
  void take(std::span<const V> values) {
    take(values.size());
    take_bytes(values.data(), values.size());
  }
  void take(std::string_view text) { take(std::span(text.data(), text.size())); }
  template <class V>
  void take(View<const V, 2> rows) {
    take(rows.extent(0));
    take(rows.extent(1));
    for (std::size_t s = 0; s < rows.extent(0); ++s) {
      const V* row = rows.row(s);
      if (rows.stride(1) == 1)
        take_bytes(row, rows.extent(1));
      else
        for (std::size_t j = 0; j < rows.extent(1); ++j) take_bytes(row + j * rows.stride(1), 1);
    }
  }
  std::uint64_t value() const { return sum_.value(); }

 private:
  template <class V>
  void take_bytes(const V* values, std::size_t count) {
    static_assert(std::has_unique_object_representations_v<V> || std::is_floating_point_v<V>);
    sum_.add(std::as_bytes(std::span(values, count)));
  }

  Checksum sum_;
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

template <class T>
std::uint64_t fingerprint(const GraphDataset<T>& data) {
  Fingerprint f;
  add_to(f, data.all());
  if (const double& centre = data.arrays().target_centre; centre != 0.0) f.take(std::span(&centre, 1));
  return f.value();
}

// Of everything that graphs and their names hold.
std::uint64_t fingerprint(const GraphSet& set);

std::uint64_t fingerprint_of_text(std::string_view text);

}  // namespace gradloom
