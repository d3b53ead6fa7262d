#include "gradloom/session/checkpoint_position.h"

#include <fmt/format.h>

namespace gradloom {

Result<void> check_position(std::span<const std::uint64_t> epochs, std::size_t samples, const TrainPosition& at,
                            const std::string& file) {
  const auto wrong = [&](const std::string& what) -> Result<void> {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} {}; the checkpoint and the options are not of the same run", file, what)};
  };
  if (at.stage >= epochs.size())
    return wrong(fmt::format("is in stage {}, but the options have {}", at.stage + 1, epochs.size()));
  if (at.epoch > epochs[at.stage])
    return wrong(fmt::format("has finished {} epochs of stage {}, but the options have {}", at.epoch, at.stage + 1,
                             epochs[at.stage]));
  std::uint64_t before = 0;
  for (std::size_t s = 0; s < at.stage; ++s) before += epochs[s];
  if (at.run_epoch < at.epoch || at.run_epoch - at.epoch > before)
    return wrong(fmt::format("has {} epochs in all and {} in stage {}, which contradict each other", at.run_epoch,
                             at.epoch, at.stage + 1));
  if (at.batch > samples)
    return wrong(
        fmt::format("has finished {} batches of an epoch of {} samples, which is too many", at.batch, samples));
  return {};
}

}  // namespace gradloom
