#include "gradloom/comm/comm.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

// In front of every message. A farewell has a text behind it instead of what was expected, and nothing up to its end.
struct Header {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint32_t flags = 0;
  std::uint32_t mark = 0x676c6d31;
};
constexpr std::uint32_t kStop = 1, kFarewell = 2, kSave = 4;
// Pieces behind the first have no header: none is as long as a farewell, so that it can come instead of any of them.
constexpr std::size_t kFarewellBytes = 1024, kLeastPiece = 2 * kFarewellBytes;

Header header_of(std::span<const std::byte> message) {
  Header header;
  std::memcpy(&header, message.data(), sizeof(header));
  return header;
}

using Clock = std::chrono::steady_clock;

std::uint64_t nanoseconds(Clock::duration time) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

[[noreturn]] void throw_lost() {
  throw Exception(ErrorCode::io, "a rank that has left the others cannot exchange messages with them");
}

}  // namespace

Comm::Comm(unsigned rank, unsigned size, std::size_t piece_bytes)
    : rank_(rank), size_(size), piece_bytes_(std::max(piece_bytes, kLeastPiece)) {
  lane_at(0);
}

Comm::Lane& Comm::lane_at(std::size_t lane) {
  while (lanes_.size() <= lane) {
    Lane& made = lanes_.emplace_back();
    for (auto* messages : {&made.out, &made.in})
      messages->assign(size_, Message{std::vector<std::byte>(sizeof(Header)), sizeof(Header)});
    made.sends.reserve(size_), made.receives.reserve(size_);
  }
  return lanes_[lane];
}

void Comm::abandon_messages() {
  // Nobody waits for them; a network may still read and write there.
  static auto* const kept = new std::deque<std::deque<Lane>>();
  kept->push_back(std::move(lanes_));
  lanes_.clear(), started_.clear();
}

// Behind a failure the memory of messages may be in use.
void Comm::require_present() const {
  if (gone_ || (failed_ && under_way())) throw_lost();
}

std::span<std::byte> Comm::outgoing(unsigned to, std::size_t bytes, std::size_t lane) {
  if (failed_ && under_way()) throw_lost();
  Lane& own = lane_at(lane);
  if (!failed_ && std::find(started_.begin(), started_.end(), &own) != started_.end())
    throw_invalid("the messages of lane " + std::to_string(lane) + " are under way");
  Message& message = own.out[to];
  message.bytes = sizeof(Header) + bytes;
  if (message.memory.size() < message.bytes) message.memory.resize(message.bytes);
  return std::span(message.memory).subspan(sizeof(Header), bytes);
}

std::span<const std::byte> Comm::incoming(unsigned from, std::size_t lane) const {
  const Message& message = lanes_[lane].in[from];
  return std::span(message.memory).subspan(sizeof(Header), message.bytes - sizeof(Header));
}

void Comm::fill_header(Message& message, std::uint64_t sequence, std::uint32_t flags) const {
  const Header header{sequence, message.bytes - sizeof(Header), flags};
  std::memcpy(message.memory.data(), &header, sizeof(header));
}

void Comm::fail(unsigned who, const std::string& what) const {
  throw Exception(ErrorCode::io, "rank " + std::to_string(who) + " " + what);
}

void Comm::fail_silent(unsigned who, double seconds) const {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", seconds);
  fail(who, std::string("did not answer for ") + text + " s");
}

// Throws when it is a farewell.
void Comm::check_farewell(const Part& part) {
  if (part.received != kFarewellBytes) return;
  const Header header = header_of(part.bytes);
  if (header.mark != Header().mark || !(header.flags & kFarewell)) return;
  const auto text = part.bytes.subspan(sizeof(Header), std::min(header.bytes, kFarewellBytes - sizeof(Header)));
  gone_ = true;
  fail(part.rank, "has ended: " + std::string(reinterpret_cast<const char*>(text.data()), text.size()));
}

// Of the first piece. Returns whether the rank wants to stop.
bool Comm::check_head(const Part& part, std::uint64_t sequence, std::size_t expected) {
  const Header header = part.received < sizeof(Header) ? Header{.mark = 0} : header_of(part.bytes);
  if (header.mark != Header().mark || part.received != piece_at(0, sizeof(Header) + header.bytes))
    fail(part.rank, "sent something that is not a message of this program");
  if (header.sequence != sequence || header.bytes != expected)
    fail(part.rank, "is at another point of the run: its message " + std::to_string(header.sequence) + " has " +
                        std::to_string(header.bytes) + " bytes, message " + std::to_string(sequence) + " with " +
                        std::to_string(expected) + " was expected");
  if (part.rank == 0) save_ = header.flags & kSave;
  return header.flags & kStop;
}

// The length of the piece that begins there, of a message of so many bytes with its header.
std::size_t Comm::piece_at(std::size_t at, std::size_t bytes) const {
  const std::size_t rest = bytes - at;
  if (rest <= piece_bytes_) return rest;
  return rest - piece_bytes_ == kFarewellBytes ? piece_bytes_ - 1 : piece_bytes_;
}

void Comm::begin_messages(Lane& lane, std::span<const std::size_t> expected) {
  lane.sequence = sequence_++, lane.stop = wants_stop_;
  if (rank_ == 0) save_ = wants_save_;
  const std::uint32_t flags = (wants_stop_ ? kStop : 0) | (wants_save_ ? kSave : 0);
  for (unsigned other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    fill_header(lane.out[other], lane.sequence, flags);
    Message& in = lane.in[other];
    in.bytes = sizeof(Header) + expected[other];
    // A farewell may come instead of any piece.
    if (in.memory.size() < in.bytes + kFarewellBytes) in.memory.resize(in.bytes + kFarewellBytes);
    lane.out[other].done = in.done = 0;
  }
}

// The next piece of every message that has one. False: all is done.
bool Comm::post_pieces(Lane& lane) {
  lane.sends.clear(), lane.receives.clear();
  for (unsigned i = 1; i < size_; ++i) {  // each rank begins with another one
    const unsigned to = (rank_ + i) % size_, from = (rank_ + size_ - i) % size_;
    Message &out = lane.out[to], &in = lane.in[from];
    if (const std::size_t length = piece_at(out.done, out.bytes)) {
      lane.sends.push_back({to, std::span(out.memory).subspan(out.done, length)});
      out.done += length;
      ++counters_.messages;
      counters_.bytes += length;
    }
    if (const std::size_t length = piece_at(in.done, in.bytes))
      lane.receives.push_back({from, std::span(in.memory).subspan(in.done, std::max(length, kFarewellBytes))});
  }
  if (lane.sends.empty() && lane.receives.empty()) return false;
  ++under_way_;
  post(lane.sends, lane.receives);
  return true;
}

void Comm::wait_for(Lane& lane, Patience patience) {
  wait(lane.receives, patience);
  --under_way_;
}

void Comm::check_pieces(Lane& lane) {
  for (const Part& part : lane.receives) {
    Message& in = lane.in[part.rank];
    const std::size_t length = piece_at(in.done, in.bytes);
    check_farewell(part);
    if (in.done == 0) lane.stop = check_head(part, lane.sequence, in.bytes - sizeof(Header)) || lane.stop;
    if (part.received != length) fail(part.rank, "sent something that is not a message of this program");
    in.done += length;
  }
}

// Posts first pieces alone: the others follow in finish(), so that the order of all is the same on every rank.
void Comm::start(std::span<const std::size_t> expected, std::size_t lane) {
  require_present();
  const auto begin = Clock::now();
  if (std::exchange(failed_, false)) started_.clear();
  Lane& begun = lane_at(lane);
  if (std::find(started_.begin(), started_.end(), &begun) != started_.end())
    throw_invalid("an exchange of lane " + std::to_string(lane) + " is under way");
  if (started_.empty()) arrived_ = 0;
  begin_messages(begun, expected);
  started_.push_back(&begun);
  failed_ = true;
  post_pieces(begun);
  failed_ = false;
  since_ = Clock::now();
  counters_.nanoseconds += nanoseconds(since_ - begin);
}

void Comm::progress() {
  if (failed_ || !under_way()) return;
  const auto begin = Clock::now();
  counters_.hidden_nanoseconds += nanoseconds(begin - since_);
  failed_ = true;
  for (; arrived_ < started_.size() && test(started_[arrived_]->receives); ++arrived_) --under_way_;
  failed_ = false;
  since_ = Clock::now();
  counters_.nanoseconds += nanoseconds(since_ - begin);
}

void Comm::finish(Patience patience) {
  require_present();
  if (failed_) throw_lost();
  const auto begin = Clock::now();
  failed_ = true;
  for (std::size_t i = 0; i < started_.size(); ++i) {
    if (i >= arrived_ && size_ > 1) wait_for(*started_[i], patience);
    check_pieces(*started_[i]);  // a farewell in here has taken the place of what comes later
  }
  bool stop = false;
  for (Lane* lane : started_) {
    while (post_pieces(*lane)) {
      wait_for(*lane, patience);
      check_pieces(*lane);
    }
    stop = stop || lane->stop;
    for (Message& message : lane->out) message.bytes = sizeof(Header);
  }
  failed_ = false;
  stop_ = stop_ || stop;
  counters_.exchanges += started_.size();
  started_.clear(), arrived_ = 0;
  counters_.nanoseconds += nanoseconds(Clock::now() - begin);
}

void Comm::exchange(std::span<const std::size_t> expected, Patience patience) {
  if (!failed_ && !started_.empty()) throw_invalid("an exchange that was started is not finished");
  start(expected, 0);
  finish(patience);
}

void Comm::share_parts(FunctionRef<std::size_t(unsigned)> bytes, FunctionRef<void(std::span<std::byte>)> put,
                       FunctionRef<void(unsigned, std::span<const std::byte>)> take) {
  part_bytes_.resize(size_);
  for (unsigned other = 0; other < size_; ++other) part_bytes_[other] = bytes(other);
  for (unsigned to = 0; to < size_; ++to)
    if (to != rank_) put(outgoing(to, part_bytes_[rank_]));
  exchange(part_bytes_);
  for (unsigned from = 0; from < size_; ++from)
    if (from != rank_) take(from, incoming(from));
}

void Comm::share_parts(FunctionRef<std::span<std::byte>(unsigned)> part) {
  const auto bytes = [&](unsigned rank) { return part(rank).size(); };
  const auto put = [&](std::span<std::byte> message) {
    const std::span<const std::byte> own = part(rank_);
    std::copy(own.begin(), own.end(), message.begin());
  };
  const auto take = [&](unsigned from, std::span<const std::byte> message) {
    std::copy(message.begin(), message.end(), part(from).begin());
  };
  share_parts(bytes, put, take);
}

bool Comm::all_of(bool own) {
  const auto said = static_cast<std::byte>(own);
  std::vector<std::byte> all(size_);
  allgather(std::span(&said, 1), all);
  return std::find(all.begin(), all.end(), std::byte(0)) == all.end();
}

void Comm::allgather(std::span<const std::byte> own, std::span<std::byte> all) {
  if (all.size() != own.size() * size_)
    throw_invalid("allgather: the output is not of the size of the parts of all ranks");
  const auto part = [&](unsigned rank) { return all.subspan(rank * own.size(), own.size()); };
  std::copy(own.begin(), own.end(), part(rank_).begin());
  share_parts(part);
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
  if (left_) return;
  // Also where another rank has said so: some may wait for this one before they hear of it.
  left_ = gone_ = true;
  // In memory of its own: what was sent before may still be under way.
  farewell_.assign(kFarewellBytes, std::byte(0));
  why = why.substr(0, kFarewellBytes - sizeof(Header));
  const Header header{sequence_, why.size(), kFarewell};
  std::memcpy(farewell_.data(), &header, sizeof(header));
  std::memcpy(farewell_.data() + sizeof(header), why.data(), why.size());
  std::vector<Part> sends;
  for (unsigned i = 1; i < size_; ++i) sends.push_back({(rank_ + i) % size_, farewell_});
  send_farewell(sends);
}

void require_same(Comm& comm, std::initializer_list<InputHash> own) {
  std::vector<std::uint64_t> hashes, all(own.size() * comm.size());
  for (const InputHash& input : own) hashes.push_back(input.hash);
  comm.allgather(std::as_bytes(std::span(hashes)), std::as_writable_bytes(std::span(all)));
  for (unsigned rank = 1; rank < comm.size(); ++rank)
    for (std::size_t i = 0; i < own.size(); ++i)
      if (all[rank * own.size() + i] != all[i])
        throw Exception(ErrorCode::io, "rank " + std::to_string(rank) + " has " + own.begin()[i].other +
                                           " than rank 0; start all ranks alike, with the same files");
}

}  // namespace gradloom
