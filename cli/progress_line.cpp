#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/progress.h"
#include "cli/text.h"

namespace gradloom::cli {
namespace {

std::string bar(double share, std::size_t cells, bool utf8) {
  const auto full = static_cast<std::size_t>(std::floor(share * static_cast<double>(cells) + 1e-9));
  std::string text;
  for (std::size_t i = 0; i < cells; ++i) text += i < full ? (utf8 ? "━" : "=") : (utf8 ? "┄" : ".");
  return text;
}

}  // namespace

double progress_share(const app::Progress& p) {
  const double stage = p.epochs == 0 ? 1.0 : static_cast<double>(p.epoch) / static_cast<double>(p.epochs);
  const double stages = static_cast<double>(std::max<std::size_t>(p.stages, 1));
  return std::clamp((static_cast<double>(p.stage) + stage) / stages, 0.0, 1.0);
}

std::string progress_line(const app::Progress& p, const ProgressStyle& style) {
  constexpr std::size_t kMaxBar = 24, kMinBar = 6;
  enum Piece { stage, note, epoch, graph, loss, validation, extra, speed, left, kPieces };
  std::array<std::string, kPieces> pieces;
  if (p.stages > 1) pieces[stage] = fmt::format("stage {}/{}", p.stage + 1, p.stages);
  pieces[note] = p.note;
  // Padded, so that what follows stays where it is.
  const std::string epochs = fmt::format("{}", p.epochs);
  pieces[epoch] = fmt::format("epoch {:>{}}/{}", p.epoch, epochs.size(), epochs);
  if (std::isfinite(p.loss)) pieces[loss] = fmt::format("loss {:<9}", fmt::format("{:.3e}", p.loss));
  if (std::isfinite(p.validation)) pieces[validation] = fmt::format("val {:<9}", fmt::format("{:.3e}", p.validation));
  pieces[extra] = p.extra;
  pieces[speed] = fmt::format("{} samples/s", rate(p.samples_per_second));
  if (p.seconds_left >= 1.0)
    pieces[left] = fmt::format("{}{} left", p.has_goal ? "at most " : "", clock_time(p.seconds_left));

  const auto width = [&] {
    std::size_t sum = 0;
    for (const std::string& piece : pieces)
      if (!piece.empty()) sum += display_width(piece) + (sum ? 2 : 0);
    return sum;
  };
  constexpr std::array kLeastFirst = {speed, note, stage, extra, validation, left};
  std::size_t dropped = 0;
  // The bar takes what is left over; it is worth more than the speed, less than the rest.
  const auto bar_room = [&] { return style.width > width() + 2 ? style.width - width() - 2 : 0; };
  if (style.bar && bar_room() < kMinBar) pieces[kLeastFirst[dropped++]].clear();
  if (style.bar && bar_room() >= kMinBar)
    pieces[graph] = bar(progress_share(p), std::min(kMaxBar, bar_room()), style.utf8);
  while (width() > style.width && dropped < kLeastFirst.size()) pieces[kLeastFirst[dropped++]].clear();

  std::string line;
  for (const std::string& piece : pieces)
    if (!piece.empty()) line.append(line.empty() ? "" : "  ").append(piece);
  while (display_width(line) > style.width) {
    while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0) == 0x80) line.pop_back();
    line.pop_back();
  }
  return line;
}

}  // namespace gradloom::cli
