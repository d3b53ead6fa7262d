// Whether a backward pass replaces the gradient or adds to it.
#pragma once

namespace gradloom {

enum class GradientMode { overwrite, accumulate };

}  // namespace gradloom
