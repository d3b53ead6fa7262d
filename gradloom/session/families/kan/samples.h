// A spline network as values on rows (formula/edges.h).
#pragma once

#include "gradloom/data/rows.h"
#include "gradloom/formula/edges.h"
#include "gradloom/models/kan/network.h"

namespace gradloom {

inline constexpr std::size_t kSampledRows = 1000;

// On the first rows: kSampledRows of them, fewer the more functions the network has beyond some thousands.
template <class T>
formula::NetworkSamples network_samples(const Exec& ex, const kan::Network<T>& network, const ModelArrays<T>& arrays,
                                        const RowDataset<T>& rows);

}  // namespace gradloom
