// Comm: several processes ("ranks") that work on one task, and the messages between them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradloom/base/function_ref.h"

namespace gradloom {

// What this rank sent so far, and how long that kept it from other work.
struct CommCounters {
  std::uint64_t exchanges = 0;
  std::uint64_t messages = 0;  // to other ranks; pieces of long ones count
  std::uint64_t bytes = 0;     // of them, headers included
  std::uint64_t nanoseconds = 0;
  // In which messages were under way and this rank did other work: from the return of start() or progress() to the next
  // progress(), which alone notices that they have arrived.
  std::uint64_t hidden_nanoseconds = 0;
  std::uint64_t shares = 0;  // of the common work that this rank did, as its callers count them
  std::uint64_t early = 0;   // exchanges that were started before this rank had done its share, as callers count
};

// The longest message that travels as a whole: MPI counts the bytes of one by an int. Longer ones travel in pieces.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

// Whether the time that other ranks may take is limited.
enum class Patience { limited, unlimited };

// All ranks call the same operations in the same order, one thread of each. A rank that leaves, dies or does something
// else makes the operation throw Exception{io} that names it on all others.
//
//   std::span<std::byte> message = comm.outgoing(to, bytes);   // for each other rank; fill it
//   comm.exchange(expected);                                   // bytes of each rank's message
//   std::span<const std::byte> theirs = comm.incoming(from);
//
// A rank can also compute while messages travel. Each exchange that is under way has a lane of its own (0, 1, ...); all
// ranks start them in the same order, and no other operation begins before they are finished.
//
//   std::span<std::byte> message = comm.outgoing(to, bytes, lane);
//   comm.start(expected, lane);                                // returns at once
//   comm.progress();                                           // now and then
//   comm.finish();                                             // waits for all that were started
//   std::span<const std::byte> theirs = comm.incoming(from, lane);
class Comm {
 public:
  virtual ~Comm() = default;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  unsigned rank() const { return rank_; }
  unsigned size() const { return size_; }
  virtual std::string library() const = 0;  // "Open MPI 4.1.4", for people

  // The message for a rank in the next exchange, as long as asked for; it is empty where nobody asked. Memory is kept.
  std::span<std::byte> outgoing(unsigned to, std::size_t bytes, std::size_t lane = 0);
  // Sends them, and receives messages of these sizes, expected[rank()] is ignored.
  void exchange(std::span<const std::size_t> expected, Patience patience = Patience::limited);
  // Of the last exchange of a lane, until its next one begins.
  std::span<const std::byte> incoming(unsigned from, std::size_t lane = 0) const;

  // exchange() in two halves.
  void start(std::span<const std::size_t> expected, std::size_t lane);
  void finish(Patience patience = Patience::limited);
  // Never waits; that a rank is missing or has left is told by finish().
  void progress();

  // Made of exchange(). All ranks have an array of the same parts, one for each rank, and each rank knows its own:
  // afterwards all know all of them. part(rank) are the bytes of a part.
  void share_parts(FunctionRef<std::span<std::byte>(unsigned rank)> part);
  // The same for parts that are not contiguous: bytes(rank) is the length of a part, put() fills a message with the own
  // one, take() stores that of another rank.
  void share_parts(FunctionRef<std::size_t(unsigned rank)> bytes, FunctionRef<void(std::span<std::byte> message)> put,
                   FunctionRef<void(unsigned from, std::span<const std::byte> message)> take);
  // Whether all ranks say so. All get the same answer.
  bool all_of(bool own);
  // `all` has size() parts as long as `own`.
  void allgather(std::span<const std::byte> own, std::span<std::byte> all);
  // The text of rank 0.
  std::string broadcast(std::string_view text);
  // The texts of all ranks, for rank 0; nothing for the others.
  std::vector<std::string> gather(std::string_view text, Patience patience = Patience::limited);
  void barrier(Patience patience = Patience::limited);

  // Whether all shall stop: some rank had said so when the last exchange began. All ranks get the same answer.
  bool agree_to_stop(bool own) {
    wants_stop_ = wants_stop_ || own;
    return stop_;
  }

  // Whether rank 0 wanted to save when the last exchange began; once for a wish. All ranks get the same answer.
  bool agree_to_save(bool own) {
    wants_save_ = own && !save_;
    return std::exchange(save_, false);
  }

  // Tells the others, who wait for this rank or will, why it is gone. No exchange may follow.
  void leave(std::string_view why);

  const CommCounters& counters() const { return counters_; }
  void count_share() { ++counters_.shares; }
  void count_early() { ++counters_.early; }

 protected:
  // Messages are cut into pieces of so many bytes, at least 2048; all ranks cut alike.
  Comm(unsigned rank, unsigned size, std::size_t piece_bytes);
  bool gone() const { return gone_; }  // this rank has left, or another has said that it leaves
  // Whether something was posted and has not been sent and received.
  bool under_way() const { return under_way_ > 0; }
  // For who ends then: keeps the memory of all messages until the process ends.
  void abandon_messages();

  struct Part {
    unsigned rank = 0;  // the other one
    std::span<std::byte> bytes;
    std::size_t received = 0;  // of a message to this rank, filled when it is done
  };
  // Starts to send all, and to receive into `in` messages that are at most as long. Several posts may be under way;
  // each rank's messages come in the order in which it posted them. The lists and the memory stay as they are until
  // test() or wait() says that the post is done, or where they throw, until this is destroyed.
  virtual void post(std::span<const Part> out, std::span<Part> in) = 0;
  // About the oldest post that is not done, whose `in` it was: whether it is done now; waits until it is.
  virtual bool test(std::span<Part> in) = 0;
  virtual void wait(std::span<Part> in, Patience patience) = 0;
  // For a message that nobody may ever take; returns soon. The memory is not used afterwards.
  virtual void send_farewell(std::span<const Part> out) = 0;

  [[noreturn]] void fail(unsigned who, const std::string& what) const;
  [[noreturn]] void fail_silent(unsigned who, double seconds) const;  // it did not answer

 private:
  // A header, then the message; memory is kept.
  struct Message {
    std::vector<std::byte> memory;
    std::size_t bytes = 0;  // with the header
    std::size_t done = 0;   // bytes that were sent or received
  };
  struct Lane {
    std::vector<Message> out, in;       // by rank
    std::vector<Part> sends, receives;  // of what was posted last
    std::uint64_t sequence = 0;
    bool stop = false;  // some rank wants to
  };
  Lane& lane_at(std::size_t lane);
  void require_present() const;
  void fill_header(Message& message, std::uint64_t sequence, std::uint32_t flags) const;
  std::size_t piece_at(std::size_t at, std::size_t bytes) const;
  void begin_messages(Lane& lane, std::span<const std::size_t> expected);
  bool post_pieces(Lane& lane);
  void wait_for(Lane& lane, Patience patience);
  void check_pieces(Lane& lane);
  bool check_head(const Part& part, std::uint64_t sequence, std::size_t expected);
  void check_farewell(const Part& part);

  unsigned rank_, size_;
  std::size_t piece_bytes_;
  std::uint64_t sequence_ = 0;
  bool wants_stop_ = false, stop_ = false, wants_save_ = false, save_ = false;
  bool left_ = false, gone_ = false;
  bool failed_ = false;        // of the exchanges in started_
  std::size_t under_way_ = 0;  // posts
  std::deque<Lane> lanes_;
  std::vector<Lane*> started_;                   // in this order
  std::size_t arrived_ = 0;                      // of started_: what progress() found done
  std::chrono::steady_clock::time_point since_;  // when this rank went on with other work
  std::vector<std::byte> farewell_;
  std::vector<std::size_t> part_bytes_;  // of share_parts(), by rank
  CommCounters counters_;
};

// One input of ranks that work together: what a rank has that has another hash ("other graphs"), and the hash.
struct InputHash {
  const char* other;
  std::uint64_t hash = 0;
};

// All ranks call it with as many. Where one of them differs from rank 0, all throw Exception{io}: "rank 2 has other
// graphs than rank 0; ...".
void require_same(Comm& comm, std::initializer_list<InputHash> own);

}  // namespace gradloom
