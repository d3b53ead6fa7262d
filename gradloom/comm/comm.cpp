#include "gradloom/comm/comm.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

// In front of every message. A farewell has a text behind it instead of what was expected.
struct Header {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint32_t flags = 0;
  std::uint32_t mark = 0x676c6d31;
};
constexpr std::uint32_t kStop = 1, kFarewell = 2, kSave = 4;
constexpr std::size_t kLongestFarewell = 1000;

Header header_of(std::span<const std::byte> message) {
  Header header;
  std::memcpy(&header, message.data(), sizeof(header));
  return header;
}

}  // namespace

Comm::Comm(unsigned rank, unsigned size) : rank_(rank), size_(size), out_(size), in_(size) {
  for (auto& message : out_) message.resize(sizeof(Header));
  sends_.reserve(size), receives_.reserve(size);
}

std::span<std::byte> Comm::outgoing(unsigned to, std::size_t bytes) {
  out_[to].resize(sizeof(Header) + bytes);
  return std::span(out_[to]).subspan(sizeof(Header));
}

std::span<const std::byte> Comm::incoming(unsigned from) const {
  return std::span(in_[from]).subspan(sizeof(Header), header_of(in_[from]).bytes);
}

void Comm::fill_header(std::vector<std::byte>& message, std::uint32_t flags) const {
  const Header header{sequence_, message.size() - sizeof(Header), flags};
  std::memcpy(message.data(), &header, sizeof(header));
}

void Comm::fail(unsigned who, const std::string& what) const {
  throw Exception(ErrorCode::io, "rank " + std::to_string(who) + " " + what);
}

void Comm::fail_silent(unsigned who, double seconds) const {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", seconds);
  fail(who, std::string("did not answer for ") + text + " s");
}

void Comm::check_message(const Part& part, std::size_t expected) {
  const Header header = part.received < sizeof(Header) ? Header{.mark = 0} : header_of(part.bytes);
  if (header.mark != Header().mark || part.received != sizeof(Header) + header.bytes)
    fail(part.rank, "sent something that is not a message of this program");
  if (header.flags & kFarewell) {
    const auto text = part.bytes.subspan(sizeof(Header), header.bytes);
    gone_ = true;
    fail(part.rank, "has ended: " + std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  }
  if (header.sequence != sequence_ || header.bytes != expected)
    fail(part.rank, "is at another point of the run: its message " + std::to_string(header.sequence) + " has " +
                        std::to_string(header.bytes) + " bytes, message " + std::to_string(sequence_) + " with " +
                        std::to_string(expected) + " was expected");
  stop_ = stop_ || (header.flags & kStop);
  if (part.rank == 0) save_ = header.flags & kSave;
}

void Comm::exchange(std::span<const std::size_t> expected, Patience patience) {
  if (gone_) throw Exception(ErrorCode::io, "a rank that has left the others cannot exchange messages with them");
  const auto start = std::chrono::steady_clock::now();
  const std::uint32_t flags = (wants_stop_ ? kStop : 0) | (wants_save_ ? kSave : 0);
  sends_.clear(), receives_.clear();
  for (unsigned i = 1; i < size_; ++i) {  // each rank begins with another one
    const unsigned to = (rank_ + i) % size_, from = (rank_ + size_ - i) % size_;
    fill_header(out_[to], flags);
    sends_.push_back({to, out_[to]});
    in_[from].resize(sizeof(Header) + std::max(expected[from], kLongestFarewell));
    receives_.push_back({from, in_[from]});
    ++counters_.messages;
    counters_.bytes += out_[to].size();
  }
  transfer(sends_, receives_, patience);
  stop_ = stop_ || wants_stop_;
  if (rank_ == 0) save_ = wants_save_;
  for (const Part& part : receives_) check_message(part, expected[part.rank]);
  for (auto& message : out_) message.resize(sizeof(Header));
  ++sequence_, ++counters_.exchanges;
  counters_.nanoseconds += static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
}

void Comm::allgather(std::span<const std::byte> own, std::span<std::byte> all) {
  if (all.size() != own.size() * size_)
    throw_invalid("allgather: the output is not of the size of the parts of all ranks");
  for (unsigned to = 0; to < size_; ++to)
    if (to != rank_) std::copy(own.begin(), own.end(), outgoing(to, own.size()).begin());
  exchange(std::vector<std::size_t>(size_, own.size()));
  for (unsigned from = 0; from < size_; ++from) {
    const std::span<const std::byte> part = from == rank_ ? own : incoming(from);
    std::copy(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(from * own.size()));
  }
}

std::string Comm::broadcast(std::string_view text) {
  std::uint64_t length = text.size();
  std::vector<std::uint64_t> lengths(size_);
  allgather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)));
  std::vector<std::size_t> expected(size_, 0);
  expected[0] = lengths[0];
  if (rank_ == 0)
    for (unsigned to = 1; to < size_; ++to) std::memcpy(outgoing(to, text.size()).data(), text.data(), text.size());
  exchange(expected);
  if (rank_ == 0) return std::string(text);
  const auto bytes = incoming(0);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> Comm::gather(std::string_view text, Patience patience) {
  barrier(patience);
  std::uint64_t length = text.size();
  std::vector<std::uint64_t> lengths(size_);
  allgather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)));
  std::vector<std::size_t> expected(size_, 0);
  if (rank_ == 0)
    expected.assign(lengths.begin(), lengths.end());
  else
    std::memcpy(outgoing(0, text.size()).data(), text.data(), text.size());
  exchange(expected);
  std::vector<std::string> all;
  for (unsigned from = 0; rank_ == 0 && from < size_; ++from)
    all.emplace_back(from == 0 ? text
                               : std::string_view(reinterpret_cast<const char*>(incoming(from).data()), lengths[from]));
  return all;
}

void Comm::barrier(Patience patience) { exchange(std::vector<std::size_t>(size_, 0), patience); }

void Comm::leave(std::string_view why) {
  if (gone_) return;
  gone_ = true;
  why = why.substr(0, kLongestFarewell);
  sends_.clear();
  for (unsigned i = 1; i < size_; ++i) {
    const unsigned to = (rank_ + i) % size_;
    std::memcpy(outgoing(to, why.size()).data(), why.data(), why.size());
    fill_header(out_[to], kFarewell);
    sends_.push_back({to, out_[to]});
  }
  send_farewell(sends_);
}

}  // namespace gradloom
