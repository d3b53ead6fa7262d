#include "gradloom/kernels/simd_targets.h"

#include <atomic>

#include "gradloom/base/error.h"
#define GRADLOOM_AVX512
#include "gradloom/kernels/simd_config.h"
// after simd_config.h
#include <hwy/highway.h>

namespace gradloom::kernels {
namespace {

std::int64_t forced = 0;  // the mask of the innermost ForceSimdTarget, 0 without one

// What allowed_targets() answers; 0: the processor was not asked yet.
std::atomic<std::int64_t> allowed = 0;

void choose(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  const std::int64_t now = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(now);
  allowed.store(now, std::memory_order_relaxed);
}

std::vector<std::int64_t> available() {
  choose(0);
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  choose(forced);
  return targets;
}

}  // namespace

std::int64_t allowed_targets() {
  std::int64_t targets = allowed.load(std::memory_order_relaxed);
  if (targets != 0) return targets;
  targets = hwy::SupportedTargets();
  allowed.store(targets, std::memory_order_relaxed);
  return targets;
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : available()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::vector<std::string> simd_targets(Arithmetic arithmetic) {
  std::vector<std::string> names;
  for (const std::int64_t target : available()) {
    const bool fused = (target & GRADLOOM_FUSED_TARGETS) != 0;
    if (fused == (arithmetic == Arithmetic::fused)) names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

ForceSimdTarget::ForceSimdTarget(std::string_view name) : previous_(forced) {
  // The named one, and those that come after it for kernels that are not compiled for it.
  std::int64_t targets = 0;
  for (const std::int64_t target : available())
    if (targets != 0 || name == hwy::TargetName(target)) targets |= target;
  if (targets == 0) throw_invalid("no SIMD target '" + std::string(name) + "' in this program and processor");
  forced = targets;
  choose(forced);
}

ForceSimdTarget::~ForceSimdTarget() {
  forced = previous_;
  choose(forced);
}

}  // namespace gradloom::kernels
