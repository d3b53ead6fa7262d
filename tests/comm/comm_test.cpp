#include "gradloom/comm/comm.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <map>

#include "gradloom/comm/launch.h"
#include "gradloom/comm/mpi.h"
#include "tests/comm/other_plugin.h"
#include "tests/support/ranks.h"

namespace gradloom {
namespace {

using test::run_ranks;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StrEq;

TEST(Comm, GivesEveryRankTheMessageThatWasMeantForIt) {
  const auto failures = run_ranks(5, [](Comm& comm) {
    for (unsigned round = 0; round < 20; ++round) {
      // Rank f sends f + to + round bytes of value 16 f + to; some messages are empty.
      const auto length = [&](unsigned from, unsigned to) { return (from + to + round) % 7 * 100; };
      std::vector<std::size_t> expected(5);
      for (unsigned other = 0; other < 5; ++other) {
        expected[other] = length(other, comm.rank());
        if (other == comm.rank()) continue;
        const auto out = comm.outgoing(other, length(comm.rank(), other));
        std::fill(out.begin(), out.end(), std::byte(16 * comm.rank() + other));
      }
      comm.exchange(expected);
      for (unsigned from = 0; from < 5; ++from) {
        if (from == comm.rank()) continue;
        ASSERT_EQ(comm.incoming(from).size(), expected[from]);
        for (std::byte b : comm.incoming(from)) ASSERT_EQ(b, std::byte(16 * from + comm.rank()));
      }
    }
    EXPECT_EQ(comm.counters().exchanges, 20u);
    EXPECT_EQ(comm.counters().messages, 80u);
    EXPECT_GT(comm.counters().bytes, 80 * 24u);
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

TEST(Comm, GathersAndBroadcasts) {
  const auto failures = run_ranks(3, [](Comm& comm) {
    const std::uint32_t own = 10 + comm.rank();
    std::array<std::uint32_t, 3> all{};
    comm.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
    EXPECT_THAT(all, ::testing::ElementsAre(10, 11, 12));
    EXPECT_EQ(comm.broadcast(comm.rank() == 0 ? std::string(100000, 'x') : "ignored"), std::string(100000, 'x'));
    EXPECT_EQ(comm.broadcast(""), "");
    const auto texts = comm.gather(std::string(comm.rank() * 2, 'y'));
    if (comm.rank() == 0)
      EXPECT_THAT(texts, ::testing::ElementsAre("", "yy", "yyyy"));
    else
      EXPECT_TRUE(texts.empty());
    comm.barrier();
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

TEST(Comm, AllRanksStopAtTheSameExchangeWhenOneWantsTo) {
  const auto failures = run_ranks(4, [](Comm& comm) {
    unsigned rounds = 0;
    while (!comm.agree_to_stop(comm.rank() == 2 && rounds >= 3)) {
      comm.barrier();
      ++rounds;
    }
    EXPECT_EQ(rounds, 4u);
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

TEST(Comm, AllRanksSaveAtTheSameExchangeOnceForEachWishOfRankZero) {
  const auto failures = run_ranks(3, [](Comm& comm) {
    std::vector<unsigned> saves;
    bool due = false;
    for (unsigned round = 0; round < 12; ++round) {
      due = due || round == 3 || round == 8;
      if (comm.agree_to_save(due && comm.rank() == 0)) saves.push_back(round), due = false;
      comm.barrier();
      comm.barrier();
    }
    EXPECT_THAT(saves, ::testing::ElementsAre(4, 9));
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

TEST(Comm, ARankThatLeavesIsNamedWithItsReason) {
  const auto failures = run_ranks(4, [](Comm& comm) {
    comm.barrier();
    if (comm.rank() == 1) throw Exception(ErrorCode::io, "the disk is full");
    comm.barrier();
  });
  EXPECT_EQ(failures[1], "the disk is full");
  for (unsigned rank : {0u, 2u, 3u}) EXPECT_THAT(failures[rank], HasSubstr("has ended: "));
  EXPECT_EQ(failures[0], "rank 1 has ended: the disk is full");
}

TEST(Comm, ARankThatDoesSomethingElseIsNamed) {
  const auto failures = run_ranks(2, [](Comm& comm) {
    const std::size_t bytes = comm.rank() == 0 ? 8 : 4;
    comm.outgoing(1 - comm.rank(), bytes);
    comm.exchange(std::array<std::size_t, 2>{bytes, bytes});
  });
  EXPECT_THAT(failures[0], HasSubstr("rank 1 is at another point of the run"));
}

TEST(Comm, ARankThatNeverComesIsNamedAfterTheStatedTime) {
  auto ranks = make_thread_ranks(2, 0.1);
  try {
    ranks[0]->barrier();
    FAIL() << "nobody answered";
  } catch (const Exception& e) {
    EXPECT_THAT(e.what(), HasSubstr("rank 1 did not answer for"));
    EXPECT_EQ(e.code(), ErrorCode::io);
  }
}

std::optional<Launch> launch_of(const std::map<std::string, std::string>& environment) {
  return find_launch([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, IsFoundInTheEnvironmentOfOpenMpiMpichAndSlurm) {
  const auto open_mpi = launch_of({{"OMPI_COMM_WORLD_RANK", "3"},
                                   {"OMPI_COMM_WORLD_SIZE", "8"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                   {"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "2"}});
  ASSERT_TRUE(open_mpi);
  EXPECT_EQ(open_mpi->launcher, "Open MPI");
  EXPECT_EQ(open_mpi->rank, 3u);
  EXPECT_EQ(open_mpi->size, 8u);
  EXPECT_EQ(open_mpi->local_size, 4u);
  const auto mpich = launch_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  ASSERT_TRUE(mpich);
  EXPECT_EQ(mpich->launcher, "MPICH");
  EXPECT_EQ(mpich->rank, 1u);
  const auto slurm =
      launch_of({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}});
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm->launcher, "Slurm");
  EXPECT_EQ(slurm->local_size, 4u);
}

TEST(Launch, OneProcessIsNone) {
  EXPECT_FALSE(launch_of({}));
  EXPECT_FALSE(launch_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  // A job script is not one of its tasks.
  EXPECT_FALSE(launch_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
}

TEST(Launch, RefusesARankBeyondTheSize) { EXPECT_THROW(launch_of({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}), Exception); }

TEST(Launch, ThreadsAreTheProcessorsOfARank) {
  const Launch four{.launcher = "Open MPI", .rank = 0, .size = 8, .local_size = 4};
  EXPECT_EQ(threads_of_rank(four, 2, 8), 2u);  // bound to two processors each
  EXPECT_EQ(threads_of_rank(four, 8, 8), 2u);  // not bound: shared
  EXPECT_EQ(threads_of_rank(four, 2, 2), 1u);  // more ranks than processors
  EXPECT_EQ(threads_of_rank(four, 64, 64), 16u);
}

TEST(Mpi, WithoutThePlugInSaysWhatToDo) {
  const auto comm = open_mpi({.launcher = "Open MPI", .rank = 1, .size = 4},
                             {.places = {"/nowhere/libgradloom_mpi.so"}, .version = "0.1.0"});
  ASSERT_FALSE(comm);
  EXPECT_EQ(comm.error().code, ErrorCode::unsupported);
  EXPECT_THAT(comm.error().message, HasSubstr("rank 1 of 4, started by Open MPI"));
  EXPECT_THAT(comm.error().message, HasSubstr("libopenmpi-dev"));
}

// What open_mpi() says of a plug-in with which something is wrong.
std::string said_of(OtherPlugin what) {
  void* library = dlopen(GRADLOOM_OTHER_PLUGIN, RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  const auto choose = reinterpret_cast<void (*)(OtherPlugin)>(dlsym(library, "choose_other_plugin"));
  choose(what);
  const auto comm = open_mpi({.launcher = "MPICH", .rank = 0, .size = 2},
                             {.places = {GRADLOOM_OTHER_PLUGIN}, .version = kTestedVersion, .seconds = 0.2});
  EXPECT_FALSE(comm);
  return comm ? "" : comm.error().message;
}

TEST(Mpi, APlugInOfAnotherVersionIsRefused) {
  EXPECT_EQ(said_of(OtherPlugin::another_version),
            "libgradloom_mpi.so is of version 0.0.1, this program of version 9.9.1; install both together");
  EXPECT_THAT(said_of(OtherPlugin::another_abi), HasSubstr("version unknown, this program of version 9.9.1"));
}

TEST(Mpi, ThatDoesNotStartOrBelongsToAnotherLauncherIsNamed) {
  EXPECT_EQ(said_of(OtherPlugin::does_not_start), "rank 0 of 2, started by MPICH: MPI does not start: no network");
  EXPECT_THAT(said_of(OtherPlugin::another_size), HasSubstr("is rank 0 of 1 for Other MPI 1"));
}

TEST(Mpi, ARankOfAnotherVersionIsNamed) {
  EXPECT_EQ(said_of(OtherPlugin::peer_of_another_version),
            "rank 1 runs version 8.9.1 of gradloom, rank 0 version 9.9.1");
}

TEST(Mpi, ARankThatNeverAnswersIsNamedAfterTheStatedTime) {
  EXPECT_EQ(said_of(OtherPlugin::silent_peer), "rank 1 did not answer for 0.2 s");
}

}  // namespace
}  // namespace gradloom
