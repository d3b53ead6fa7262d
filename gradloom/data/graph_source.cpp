#include "gradloom/data/graph_source.h"
