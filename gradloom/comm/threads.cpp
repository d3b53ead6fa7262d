#include "gradloom/comm/threads.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

// Messages on their way, by sender and receiver.
struct Mailboxes {
  explicit Mailboxes(unsigned ranks) : size(ranks), box(std::size_t{ranks} * ranks) {}
  std::deque<std::vector<std::byte>>& from_to(unsigned from, unsigned to) { return box[std::size_t{from} * size + to]; }

  unsigned size;
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<std::deque<std::vector<std::byte>>> box;
};

class ThreadComm final : public Comm {
 public:
  ThreadComm(unsigned rank, std::shared_ptr<Mailboxes> mail, double seconds, std::size_t piece_bytes)
      : Comm(rank, mail->size, piece_bytes), mail_(std::move(mail)), seconds_(seconds) {}
  std::string library() const override { return "threads of one process"; }

 private:
  void post(std::span<const Part> out, std::span<Part>) override { send_farewell(out); }

  bool test(std::span<Part> in) override {
    const std::lock_guard lock(mail_->mutex);
    for (const Part& part : in)
      if (mail_->from_to(part.rank, rank()).empty()) return false;
    for (Part& part : in) take(part);
    return true;
  }

  void wait(std::span<Part> in, Patience patience) override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_);
    std::unique_lock lock(mail_->mutex);
    for (Part& part : in) {
      auto& box = mail_->from_to(part.rank, rank());
      const auto there = [&] { return !box.empty(); };
      if (patience == Patience::unlimited)
        mail_->arrived.wait(lock, there);
      else if (!mail_->arrived.wait_until(lock, deadline, there))
        fail_silent(part.rank, seconds_);
      take(part);
    }
  }

  void take(Part& part) {
    auto& box = mail_->from_to(part.rank, rank());
    if (box.front().size() > part.bytes.size()) fail(part.rank, "sent more than was expected");
    std::copy(box.front().begin(), box.front().end(), part.bytes.begin());
    part.received = box.front().size();
    box.pop_front();
  }

  void send_farewell(std::span<const Part> out) override {
    {
      const std::lock_guard lock(mail_->mutex);
      for (const Part& part : out) mail_->from_to(rank(), part.rank).emplace_back(part.bytes.begin(), part.bytes.end());
    }
    mail_->arrived.notify_all();
  }

  std::shared_ptr<Mailboxes> mail_;
  double seconds_;
};

}  // namespace

std::vector<std::unique_ptr<Comm>> make_thread_ranks(unsigned size, double seconds, std::size_t piece_bytes) {
  if (size == 0) throw_invalid("there must be at least one rank");
  const auto mail = std::make_shared<Mailboxes>(size);
  std::vector<std::unique_ptr<Comm>> ranks;
  for (unsigned rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<ThreadComm>(rank, mail, seconds, piece_bytes));
  return ranks;
}

}  // namespace gradloom
