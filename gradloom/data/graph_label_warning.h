// What is to be said of how a network reads the labels of nodes.
#pragma once

#include <string>

#include "gradloom/data/graph_dataset.h"

namespace gradloom {

// Where `asked` is automatic: that labels are left out, or that they look like whole numbers to learn from, which
// become a feature for each value. Empty: neither.
std::string label_warning(const GraphSet& set, NodeFeatures asked);

}  // namespace gradloom
