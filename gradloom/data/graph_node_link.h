// Graphs as networkx writes them by node_link_data().
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gradloom/data/graph_source.h"

namespace gradloom {

// Whether an object is of this form: it has `links`, `multigraph`, or edges with a `source`.
bool is_node_link(const nlohmann::json& object);

// Adds the graph `object`, which stands at `where` in the file; without a name it is called by `position`. Throws
// invalid_input.
void add_node_link(const nlohmann::json& object, const std::string& where, std::size_t position,
                   const GraphSource& source, GraphSetBuilder& set);

// The text of a name, which is a text, a number or a boolean. Throws invalid_input, naming `where`, on a number that is
// too large to keep its digits: several names would become one.
std::string name_in_json(const nlohmann::json& value, const std::string& where);

}  // namespace gradloom
