#include "gradloom/session/family.h"

#include <algorithm>

namespace gradloom {

template <class T>
void check_row_loss(const LossOptions& loss, const RowBatch<T>& rows, std::size_t outputs) {
  check_loss_batch<T>(loss, rows, outputs);
  if (loss.kind == LossKind::binary_cross_entropy && !rows.target.empty())
    for (std::size_t s = 0; s < rows.size; ++s)
      for (std::size_t j = 0; j < rows.target.extent(1); ++j)
        if (!(rows.target(s, j) >= 0 && rows.target(s, j) <= 1))
          throw_invalid(fmt::format("target {} of sample {} is {}; it must lie between 0 and 1", j + 1, s + 1,
                                    rows.target(s, j)));
  if (!rows.weight.empty() && std::all_of(rows.weight.begin(), rows.weight.end(), [](T w) { return w == 0; }))
    throw_invalid("every sample has weight 0");
}

void check_same_slices(const Slices& trained, const Slices& asked) {
  const auto shape_text = [](const Slices& slices, std::size_t i) {
    if (i >= slices.size()) return std::string("nothing");
    std::string text = slices[i].name + " (";
    for (const std::size_t extent : slices[i].shape)
      text += fmt::format("{}{}", text.back() == '(' ? "" : ", ", extent);
    return text + ")";
  };
  for (std::size_t i = 0; i < std::max(trained.size(), asked.size()); ++i)
    if (shape_text(trained, i) != shape_text(asked, i))
      throw_invalid(fmt::format("the trained network has {} where the new one has {}", shape_text(trained, i),
                                shape_text(asked, i)));
}

template void check_row_loss(const LossOptions&, const RowBatch<float>&, std::size_t);
template void check_row_loss(const LossOptions&, const RowBatch<double>&, std::size_t);

}  // namespace gradloom
