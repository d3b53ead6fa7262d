// The schema of each family's options.
#pragma once

#include "gradloom/io/option_schema.h"

namespace gradloom::app {

struct KanOptions;
struct AutomatonOptions;
struct GatesOptions;
struct GraphOptions;
struct PairOptions;
struct RewriteOptions;

template <class O>
const OptionSchema<O>& option_schema();
template <>
const OptionSchema<KanOptions>& option_schema();
template <>
const OptionSchema<AutomatonOptions>& option_schema();
template <>
const OptionSchema<GatesOptions>& option_schema();
template <>
const OptionSchema<GraphOptions>& option_schema();
template <>
const OptionSchema<PairOptions>& option_schema();
template <>
const OptionSchema<RewriteOptions>& option_schema();

}  // namespace gradloom::app
