#include "gradloom/io/checksum.h"

#define XXH_INLINE_ALL  // the header alone: whoever links the library needs nothing more
#include <fmt/format.h>
#include <xxhash.h>

#include "gradloom/io/checksum_text.h"

namespace gradloom {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->xxh3); }

namespace {

constexpr std::string_view kChecksumKind = "xxh3-64:";
constexpr std::size_t kChecksumDigits = 16;

// What stands between the quotes of checksum_text().
std::string_view checksum_body(std::string_view text) { return text.substr(1, text.size() - 2); }

}  // namespace

std::string checksum_text(std::uint64_t value) { return fmt::format("\"{}{:016x}\"", kChecksumKind, value); }

bool is_checksum(std::string_view text) {
  return text.size() == kChecksumKind.size() + kChecksumDigits + 2 && text.front() == '"' && text.back() == '"' &&
         checksum_body(text).starts_with(kChecksumKind);
}

std::uint64_t checksum_of_file(std::string header, std::string_view text, FunctionRef<void(Checksum&)> add_data) {
  if (const std::size_t at = header.find(checksum_body(text)); at != std::string::npos)
    header.replace(at + kChecksumKind.size(), kChecksumDigits, kChecksumDigits, '0');
  Checksum sum;
  const std::uint64_t length = header.size();
  sum.add(std::as_bytes(std::span(&length, 1)));
  sum.add(std::as_bytes(std::span(header)));
  add_data(sum);
  return sum.value();
}

void set_checksum(std::string& header, std::uint64_t value) {
  const std::string zero = checksum_text(0), text = checksum_text(value);
  const std::size_t at = header.find(checksum_body(zero));
  header.replace(at, checksum_body(text).size(), checksum_body(text));
}

}  // namespace gradloom
