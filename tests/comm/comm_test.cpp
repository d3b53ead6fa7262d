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

TEST(Comm, CutsLongMessagesIntoPieces) {
  constexpr std::size_t kPiece = 2048, kHeader = 24, kFarewell = 1024;
  for (const std::size_t length : {kPiece - kHeader, kPiece - kHeader + 1, kPiece + kFarewell - kHeader, 3 * kPiece,
                                   3 * kPiece + kFarewell - kHeader, std::size_t{100000}}) {
    const auto failures = run_ranks(
        3,
        [&](Comm& comm) {
          const auto bytes = [&](unsigned from, unsigned to) { return from == 2 ? length + to : 10 * from + to; };
          const auto byte = [](unsigned from, unsigned to, std::size_t i) { return std::byte(i * 7 + 3 * from + to); };
          for (int round = 0; round < 3; ++round) {
            std::vector<std::size_t> expected(3);
            for (unsigned other = 0; other < 3; ++other) {
              expected[other] = bytes(other, comm.rank());
              if (other == comm.rank()) continue;
              const auto out = comm.outgoing(other, bytes(comm.rank(), other));
              for (std::size_t i = 0; i < out.size(); ++i) out[i] = byte(comm.rank(), other, i);
            }
            comm.exchange(expected);
            for (unsigned other = 0; other < 3; ++other) {
              if (other == comm.rank()) continue;
              const auto in = comm.incoming(other);
              ASSERT_EQ(in.size(), expected[other]);
              for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(in[i], byte(other, comm.rank(), i));
            }
          }
          const std::size_t pieces = (length + kHeader + kPiece - 1) / kPiece;
          EXPECT_GE(comm.counters().messages, comm.rank() == 2 ? 6 * pieces : 6);
        },
        120, kPiece);
    EXPECT_THAT(failures, Each(StrEq(""))) << length;
  }
}

TEST(Comm, SeveralExchangesAreUnderWayAtOnce) {
  constexpr std::size_t kLanes = 4;
  const auto length = [](unsigned from, unsigned to, std::size_t lane) {
    return lane == 1 ? 9000u : from + to + 5 * lane;
  };
  for (const std::size_t piece : {std::size_t{2048}, kPieceBytes}) {
    const auto failures = run_ranks(
        4,
        [&](Comm& comm) {
          const unsigned own = comm.rank();
          for (unsigned round = 0; round < 10; ++round) {
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
              std::vector<std::size_t> expected(4);
              for (unsigned other = 0; other < 4; ++other) {
                expected[other] = length(other, own, lane);
                if (other == own) continue;
                const auto out = comm.outgoing(other, length(own, other, lane), lane);
                std::fill(out.begin(), out.end(), std::byte(16 * own + other + 64 * lane));
              }
              comm.start(expected, lane);
              if ((round + own) % 3 != 0) comm.progress();
            }
            EXPECT_THROW(comm.barrier(), Exception);
            EXPECT_THROW(comm.all_of(true), Exception);
            comm.finish();
            for (std::size_t lane = 0; lane < kLanes; ++lane)
              for (unsigned from = 0; from < 4; ++from) {
                if (from == own) continue;
                ASSERT_EQ(comm.incoming(from, lane).size(), length(from, own, lane));
                EXPECT_THAT(comm.incoming(from, lane), Each(std::byte(16 * from + own + 64 * lane)));
              }
            comm.progress();
            comm.barrier();
          }
          EXPECT_EQ(comm.counters().exchanges, 10 * (kLanes + 1));
        },
        120, piece);
    EXPECT_THAT(failures, Each(StrEq("")));
  }
}

TEST(Comm, ARankThatLeavesBetweenTwoExchangesThatAreUnderWayIsNamed) {
  for (const bool looks : {false, true}) {
    const auto failures = run_ranks(3, [&](Comm& comm) {
      const std::array<std::size_t, 3> none{};
      comm.start(none, 0);
      if (comm.rank() == 1) throw Exception(ErrorCode::io, "the disk is full");
      comm.start(none, 1), comm.start(none, 2);
      for (int i = 0; looks && i < 100; ++i) comm.progress();
      comm.finish();
    });
    EXPECT_EQ(failures[1], "the disk is full");
    for (unsigned rank : {0u, 2u}) EXPECT_THAT(failures[rank], HasSubstr("has ended: "));
  }
}

TEST(Comm, AllRanksStopAndSaveAlikeBehindSeveralExchanges) {
  const auto failures = run_ranks(3, [](Comm& comm) {
    const std::array<std::size_t, 3> none{};
    unsigned rounds = 0;
    std::vector<unsigned> saves;
    while (!comm.agree_to_stop(comm.rank() == 2 && rounds >= 5)) {
      if (comm.agree_to_save(comm.rank() == 0 && rounds == 2)) saves.push_back(rounds);
      for (std::size_t lane = 0; lane < 3; ++lane) comm.start(none, lane);
      comm.finish();
      ++rounds;
    }
    EXPECT_EQ(rounds, 6u);
    EXPECT_THAT(saves, ::testing::ElementsAre(3));
  });
  EXPECT_THAT(failures, Each(StrEq("")));
}

// A rank that fails between two pieces.
TEST(Comm, AFarewellIsUnderstoodInsteadOfAPiece) {
  for (const std::size_t length : {std::size_t{1500}, std::size_t{2048}, std::size_t{9000}}) {
    const auto failures = run_ranks(
        3,
        [&](Comm& comm) {
          // Rank 0 sends rank 1 less than that waits for; rank 1 leaves while rank 2 waits for its pieces.
          const auto bytes = [&](unsigned from, unsigned to) { return from == 1 && to == 2 ? 3000 + length : 8; };
          std::vector<std::size_t> expected(3);
          for (unsigned other = 0; other < 3; ++other) {
            expected[other] = bytes(other, comm.rank());
            if (comm.rank() == 1 && other == 0) expected[other] = 16;
            if (other != comm.rank()) comm.outgoing(other, bytes(comm.rank(), other));
          }
          comm.exchange(expected);
          comm.barrier();
        },
        120, 2048);
    EXPECT_THAT(failures[1], HasSubstr("rank 0 is at another point of the run"));
    EXPECT_THAT(failures[2], HasSubstr("rank 1 has ended: rank 0 is at another point of the run"));
    EXPECT_THAT(failures[0], HasSubstr("has ended: "));  // it waits for rank 2, which passes on why it goes
  }
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

TEST(Comm, SharesPartsOfAnyLengthAndAnswersWhetherAllSayYes) {
  const auto failures = run_ranks(4, [](Comm& comm) {
    // Rank r knows r bytes; rank 0 nothing.
    std::array<std::byte, 6> all{};
    const auto part = [&](unsigned rank) { return std::span(all).subspan(rank * (rank - (rank > 0)) / 2, rank); };
    for (std::byte& b : part(comm.rank())) b = std::byte(10 * comm.rank());
    comm.share_parts(part);
    for (unsigned rank = 0; rank < 4; ++rank) EXPECT_THAT(part(rank), Each(std::byte(10 * rank)));
    EXPECT_EQ(comm.counters().exchanges, 1u);
    EXPECT_TRUE(comm.all_of(true));
    EXPECT_FALSE(comm.all_of(comm.rank() != 2));
    EXPECT_FALSE(comm.all_of(false));
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

TEST(Comm, RefusesInputsThatDifferAndNamesTheFirstRankThatHasThem) {
  auto failures = run_ranks(3, [](Comm& comm) { require_same(comm, {{"other graphs", 7}, {"other costs", 8}}); });
  EXPECT_THAT(failures, Each(StrEq("")));
  failures = run_ranks(4, [](Comm& comm) {
    require_same(comm, {{"other graphs", 7}, {"other costs", comm.rank() < 2 ? 8u : comm.rank()}});
  });
  EXPECT_THAT(failures, Each(StrEq("rank 2 has other costs than rank 0; start all ranks alike, with the same files")));
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

template <class F>
F* from_other_plugin(const char* symbol) {
  void* library = dlopen(GRADLOOM_OTHER_PLUGIN, RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  return reinterpret_cast<F*>(dlsym(library, symbol));
}

Result<std::unique_ptr<Comm>> open_other(OtherPlugin what) {
  from_other_plugin<void(OtherPlugin)>("choose_other_plugin")(what);
  return open_mpi({.launcher = "MPICH", .rank = 0, .size = 2},
                  {.places = {GRADLOOM_OTHER_PLUGIN}, .version = kTestedVersion, .seconds = 0.2});
}

// What open_mpi() says of a plug-in with which something is wrong.
std::string said_of(OtherPlugin what) {
  const auto comm = open_other(what);
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
            "rank 1 runs version 8.9.1 of gradloom, but rank 0 version 9.9.1");
}

TEST(Mpi, ARankThatNeverAnswersIsNamedAfterTheStatedTime) {
  EXPECT_EQ(said_of(OtherPlugin::silent_peer), "rank 1 did not answer for 0.2 s");
}

TEST(Mpi, ARankThatNeverAnswersOneOfSeveralExchangesIsNamed) {
  auto comm = open_other(OtherPlugin::silent_later).or_throw();
  const std::array<std::size_t, 2> none{};
  comm->start(none, 0), comm->start(none, 1);
  comm->progress();
  try {
    comm->finish();
    FAIL() << "nobody answered";
  } catch (const Exception& e) {
    EXPECT_STREQ(e.what(), "rank 1 did not answer for 0.2 s");
  }
  EXPECT_THROW(comm->outgoing(1, 5000, 1), Exception) << "the memory is in use";
  EXPECT_THROW(comm->start(none, 2), Exception);
}

TEST(Mpi, MessagesUnderWayStayAsTheyAreWhenTheRankLeavesAndEnds) {
  const auto intact = from_other_plugin<bool()>("other_plugin_sees_what_was_sent");
  auto comm = open_other(OtherPlugin::silent_later).or_throw();
  const auto message = comm->outgoing(1, 5000);
  std::fill(message.begin(), message.end(), std::byte(7));
  EXPECT_THROW(comm->exchange(std::array<std::size_t, 2>{0, 5000}), Exception);
  EXPECT_TRUE(intact());
  EXPECT_THROW(comm->outgoing(1, 5000), Exception) << "the memory is in use";
  EXPECT_THROW(comm->barrier(), Exception);
  comm->leave(std::string(900, 'x'));
  EXPECT_TRUE(intact());
  comm.reset();
  const std::vector<std::byte> others(5024, std::byte(9));  // would take the place of what is freed
  EXPECT_TRUE(intact());
}

}  // namespace
}  // namespace gradloom
