#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "gradloom/data/archive.h"

namespace gradloom {
namespace {

constexpr std::size_t kTarBlock = 512;

// A text up to its first zero.
std::string_view field(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view text = header.substr(at, size);
  return text.substr(0, text.find('\0'));
}

std::optional<std::size_t> octal(std::string_view text) {
  std::size_t value = 0, digits = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\0') {
      if (digits > 0) break;
      continue;
    }
    if (c < '0' || c > '7' || ++digits > 20) return std::nullopt;
    value = value * 8 + static_cast<std::size_t>(c - '0');
  }
  return digits == 0 ? std::nullopt : std::optional(value);
}

// The sum of all bytes, with blanks in the place of the sum itself.
bool has_right_sum(std::string_view header) {
  const auto add = [](std::size_t sum, char c) { return sum + static_cast<unsigned char>(c); };
  const std::size_t sum = std::accumulate(header.begin(), header.begin() + 148, std::size_t{0}, add) + 8 * ' ' +
                          std::accumulate(header.begin() + 156, header.end(), std::size_t{0}, add);
  return octal(header.substr(148, 8)) == sum;
}

}  // namespace

Result<ArchiveFiles> parse_tar(std::string_view bytes, std::size_t max_bytes, std::string_view source,
                               WantedFile wanted) {
  const auto fail = [&](const std::string& message) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: {}", source, message)};
  };
  ArchiveFiles files;
  std::string long_name;
  while (bytes.size() >= kTarBlock) {
    const std::string_view header = bytes.substr(0, kTarBlock);
    bytes.remove_prefix(kTarBlock);
    if (std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; })) return files;
    if (!has_right_sum(header)) return fail("the archive is damaged: the checksum of an entry is wrong");
    const auto size = octal(header.substr(124, 12));
    if (!size || *size > bytes.size()) return fail("the archive is truncated or damaged");
    const std::string_view content = bytes.substr(0, *size);
    bytes.remove_prefix(std::min(bytes.size(), (*size + kTarBlock - 1) / kTarBlock * kTarBlock));
    const char kind = header[156];
    if (kind == 'L') {  // GNU: the name of the next entry
      long_name = content.substr(0, std::min<std::size_t>(content.find('\0'), 4096));
      continue;
    }
    const std::string_view prefix = field(header, 257, 5) == "ustar" ? field(header, 345, 155) : "";
    std::string name = !long_name.empty()
                           ? std::move(long_name)
                           : fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", field(header, 0, 100));
    long_name.clear();
    constexpr std::string_view kAbout = "xgK";  // what follows, by pax and GNU: times, owners, the end of a link
    if (kAbout.find(kind) != std::string_view::npos || !wanted(name)) continue;
    if (kind == '1' || kind == '2')
      return fail(fmt::format("'{}' is a link, which is not followed; archive the file itself", name));
    if (kind != '0' && kind != '\0') return fail(fmt::format("'{}' is not a regular file", name));
    if (*size > max_bytes) return fail(fmt::format("the content is longer than the limit, at '{}'", name));
    max_bytes -= *size;
    if (!files.emplace(name, content).second) return fail(fmt::format("the archive holds '{}' twice", name));
  }
  return fail("the archive is truncated: its end is missing");
}

bool looks_like_archive(std::string_view bytes) {
  return bytes.starts_with("PK\3\4") || (bytes.size() >= kTarBlock && bytes.substr(257, 5) == "ustar");
}

Result<ArchiveFiles> parse_archive(std::string_view bytes, std::size_t max_bytes, std::string_view source,
                                   WantedFile wanted) {
  return bytes.starts_with("PK") ? parse_zip(bytes, max_bytes, source, wanted)
                                 : parse_tar(bytes, max_bytes, source, wanted);
}

}  // namespace gradloom
