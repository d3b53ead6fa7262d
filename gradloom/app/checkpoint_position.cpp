#include "gradloom/app/checkpoint_position.h"

#include <fmt/format.h>

#include "gradloom/app/settings.h"

namespace gradloom::app {

Result<void> check_position(const Config& recipe, std::size_t samples, const TrainPosition& at,
                            const std::string& file) {
  const auto wrong = [&](const std::string& what) -> Result<void> {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} {}; the checkpoint and recipe.toml are not of one run", file, what)};
  };
  const std::size_t stages = stage_count(recipe);
  if (at.stage >= stages) return wrong(fmt::format("is in stage {}, but the recipe has {}", at.stage + 1, stages));
  const std::uint64_t epochs = train_options(recipe, at.stage).epochs;
  if (at.epoch > epochs)
    return wrong(fmt::format("has done {} epochs of stage {}, but the recipe has {}", at.epoch, at.stage + 1, epochs));
  std::uint64_t before = 0;
  for (std::size_t s = 0; s < at.stage; ++s) before += train_options(recipe, s).epochs;
  if (at.run_epoch < at.epoch || at.run_epoch - at.epoch > before)
    return wrong(fmt::format("counts {} epochs in all and {} in stage {}, which cannot be", at.run_epoch, at.epoch,
                             at.stage + 1));
  if (at.batch > samples) return wrong(fmt::format("has done {} batches of an epoch of {} samples", at.batch, samples));
  return {};
}

}  // namespace gradloom::app
