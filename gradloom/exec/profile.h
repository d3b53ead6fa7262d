// Profile: where the time of a step goes, by named phase; summed over all workers.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "gradloom/exec/exec.h"

namespace gradloom {

// Phases are registered before the work starts (that allocates); adding time to a phase does not allocate and may
// happen on every worker at once.
class Profile {
 public:
  explicit Profile(unsigned workers) : workers_(workers) {}

  std::size_t phase(const std::string& name);  // finds or registers
  void add(std::size_t phase, unsigned worker, std::uint64_t nanoseconds) {
    cells_[worker][phase].nanoseconds += nanoseconds;
  }
  void clear();

  struct Entry {
    std::string name;
    double milliseconds;  // by the clock, added up over the workers that entered the phase
  };
  std::vector<Entry> entries() const;

 private:
  static constexpr std::size_t kMaxPhases = 128;
  struct alignas(64) Cell {
    std::uint64_t nanoseconds = 0;
  };
  unsigned workers_;
  std::vector<std::string> names_;
  std::vector<std::array<Cell, kMaxPhases>> cells_{workers_};
};

// Adds the time from construction to destruction to a phase; does nothing when the Exec has no profile.
class ProfileScope {
 public:
  ProfileScope(const Exec& ex, std::size_t phase, unsigned worker = 0)
      : profile_(ex.profile()), phase_(phase), worker_(worker) {
    if (profile_) start_ = std::chrono::steady_clock::now();
  }
  ~ProfileScope() {
    if (profile_)
      profile_->add(
          phase_, worker_,
          static_cast<std::uint64_t>(
              std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count()));
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profile* profile_;
  std::size_t phase_;
  unsigned worker_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace gradloom
