// What the report shows of a spline network: its functions, and which of them matter.
#pragma once

#include "gradloom/app/report/report.h"
#include "gradloom/data/rows.h"
#include "gradloom/exec/exec.h"
#include "gradloom/models/kan/network.h"

namespace gradloom::app {

// Importance is measured on the first rows of `rows`: up to 2000, fewer the larger a layer is. Every function is drawn
// when they are few; otherwise the most important ones are, and of small layers the importance of every edge is kept,
// so that memory and time stay bounded for layers of any width.
template <class T>
SplineNetwork spline_picture(const Exec& ex, const kan::Network<T>& network, const ModelArrays<T>& arrays,
                             const RowDataset<T>& rows);

}  // namespace gradloom::app
