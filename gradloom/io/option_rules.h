// What a schema says of values that fit their types and ranges: which of them do nothing, and which cannot be computed
// with.
#pragma once

#include <string>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/io/option_schema.h"

namespace gradloom {

// A sentence for each value that differs from its default and has no effect, or no good one, by the rules of its key
// (SchemaKey::effect), in the order of the keys. A value of the run counts when this holds in every stage, one of a
// stage when it holds there.
std::vector<std::string> idle_keys(const AnyOptionSchema& schema, const Config& config);

// The numbers that a floating-point type holds beside 0.
struct FloatLimits {
  std::string type;  // "float32"
  double least = 0.0, most = 0.0;
  std::string remedy;  // what else helps than another number; empty: nothing
};

// Fails with invalid_input on the first number of a computed key that is neither 0 nor within the range: it would
// become 0 or infinite.
Result<void> check_computed(const Config& config, const FloatLimits& range);

}  // namespace gradloom
