// libgradloom_mpi.so: the only file that includes MPI.
#include "gradloom/comm/mpi/plugin.h"

#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace {

std::string text;  // of the last error
MPI_Comm world = MPI_COMM_NULL;
struct Post {
  std::vector<MPI_Request> requests;  // sends, then receives
  const GradloomMpiMessage* out = nullptr;
  GradloomMpiMessage* in = nullptr;
  std::size_t outs = 0;
};
std::deque<Post> posts;  // that are under way, the oldest first
std::vector<MPI_Request> farewells;
std::vector<std::vector<char>> farewell_messages;

const char* error_of(int code) {
  if (code == MPI_SUCCESS) return nullptr;
  char message[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, message, &length);
  text.assign(message, static_cast<std::size_t>(length));
  return text.c_str();
}

const char* open(int* rank, int* size, const char** library) {
  int provided = 0;
  if (const char* error = error_of(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided))) return error;
  if (provided < MPI_THREAD_FUNNELED) return "this MPI does not allow threads beside the one that calls it";
  if (const char* error = error_of(MPI_Comm_dup(MPI_COMM_WORLD, &world))) return error;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world, rank);
  MPI_Comm_size(world, size);
  static char name[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(name, &length);
  if (char* end = std::strpbrk(name, ",\n")) *end = '\0';  // "Open MPI v4.1.4, package: ..."
  *library = name;
  return nullptr;
}

const char* post(const GradloomMpiMessage* out, int outs, GradloomMpiMessage* in, int ins) {
  Post& post = posts.emplace_back();
  post.requests.assign(static_cast<std::size_t>(outs + ins), MPI_REQUEST_NULL);
  post.out = out, post.in = in, post.outs = static_cast<std::size_t>(outs);
  for (int i = 0; i < ins + outs; ++i) {  // receives first: what arrives then has its place
    const bool receives = i < ins;
    const GradloomMpiMessage& m = receives ? in[i] : out[i - ins];
    if (m.bytes > INT_MAX) return "a piece of a message is longer than 2 GB";
    MPI_Request& request = post.requests[static_cast<std::size_t>(receives ? outs + i : i - ins)];
    const int count = static_cast<int>(m.bytes);
    const int code = receives ? MPI_Irecv(m.data, count, MPI_BYTE, m.rank, 0, world, &request)
                              : MPI_Isend(m.data, count, MPI_BYTE, m.rank, 0, world, &request);
    if (const char* error = error_of(code)) return error;
  }
  return nullptr;
}

const char* test(int* done, int* waiting_for) {
  *done = 1, *waiting_for = -1;
  if (posts.empty()) return nullptr;
  const Post& post = posts.front();
  std::vector<MPI_Request>& requests = posts.front().requests;
  for (std::size_t i = requests.size(); i-- > 0;) {  // a receive that lacks says more than a send
    if (requests[i] == MPI_REQUEST_NULL) continue;
    int complete = 0;
    MPI_Status status;
    if (const char* error = error_of(MPI_Test(&requests[i], &complete, &status))) return error;
    GradloomMpiMessage* in = i >= post.outs ? post.in + (i - post.outs) : nullptr;
    if (complete && in) {
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      in->bytes = static_cast<std::size_t>(count);
    }
    if (complete) continue;
    *done = 0;
    if (*waiting_for < 0) *waiting_for = in ? in->rank : post.out[i].rank;
  }
  if (*done) posts.pop_front();
  return nullptr;
}

const char* post_farewell(const GradloomMpiMessage* out, int outs) {
  for (int i = 0; i < outs; ++i) {
    const auto* bytes = static_cast<const char*>(out[i].data);
    farewell_messages.emplace_back(bytes, bytes + out[i].bytes);
    farewells.push_back(MPI_REQUEST_NULL);
    const int count = static_cast<int>(out[i].bytes);
    MPI_Isend(farewell_messages.back().data(), count, MPI_BYTE, out[i].rank, 0, world, &farewells.back());
  }
  for (int tries = 0; tries < 100; ++tries)  // small messages leave at once
    for (MPI_Request& request : farewells) {
      int complete = 0;
      MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    }
  return nullptr;
}

void close() { MPI_Finalize(); }

constexpr GradloomMpi kTable{kGradloomMpiAbi, GRADLOOM_VERSION, open, post, test, post_farewell, close};

}  // namespace

extern "C" const GradloomMpi* gradloom_mpi() { return &kTable; }
