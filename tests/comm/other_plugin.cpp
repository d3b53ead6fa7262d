// A plug-in that is not what it should be, for tests of what is said about it.
#include "tests/comm/other_plugin.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "gradloom/comm/mpi/plugin.h"

namespace {

GradloomMpi table;
const GradloomMpiMessage* sent = nullptr;
GradloomMpiMessage* received = nullptr;
OtherPlugin mode;
int posts = 0;
std::vector<char> copy;  // of what was sent last

const char* open(int* rank, int* size, const char** library) {
  *rank = 0, *size = mode == OtherPlugin::another_size ? 1 : 2;
  *library = "Other MPI 1";
  return mode == OtherPlugin::does_not_start ? "no network" : nullptr;
}

const char* post(const GradloomMpiMessage* out, int, GradloomMpiMessage* in, int) {
  sent = out, received = in;
  ++posts;
  const auto* bytes = static_cast<const char*>(out->data);
  copy.assign(bytes, bytes + out->bytes);
  return nullptr;
}

// Rank 1 answers what rank 0 has said, or nothing.
const char* test(int* done, int* waiting_for) {
  *done = mode == OtherPlugin::peer_of_another_version || (mode == OtherPlugin::silent_later && posts == 1);
  *waiting_for = *done ? -1 : 1;
  if (!*done) return nullptr;
  auto* message = static_cast<char*>(received->data);
  std::memcpy(message, sent->data, sent->bytes);
  received->bytes = sent->bytes;
  constexpr std::string_view version = kTestedVersion;
  char* at = std::search(message, message + sent->bytes, version.begin(), version.end());
  if (mode == OtherPlugin::peer_of_another_version && at != message + sent->bytes) *at = '8';
  return nullptr;
}

const char* post_farewell(const GradloomMpiMessage*, int) { return nullptr; }
void close() {}

}  // namespace

extern "C" const GradloomMpi* gradloom_mpi() { return &table; }

extern "C" void choose_other_plugin(OtherPlugin chosen) {
  mode = chosen, posts = 0;
  table = {kGradloomMpiAbi, kTestedVersion, open, post, test, post_farewell, close};
  if (mode == OtherPlugin::another_version) table.version = "0.0.1";
  if (mode == OtherPlugin::another_abi) ++table.abi;
}

extern "C" bool other_plugin_sees_what_was_sent() {
  return sent->rank == 1 && sent->bytes == copy.size() && std::memcmp(sent->data, copy.data(), copy.size()) == 0;
}
