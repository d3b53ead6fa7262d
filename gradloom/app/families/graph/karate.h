// Zachary's karate club (1977): who met whom outside the club, and with whom each member went when it split.
#pragma once

#include "gradloom/data/graph.h"

namespace gradloom::app {

// 34 members, 78 ties, two classes: 0 went with the instructor (member 0), 1 with the president (member 33).
GraphSet karate_club();

}  // namespace gradloom::app
