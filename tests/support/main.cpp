// The main function of every test program: runs GoogleTest, and fails a test that does what its labels do not tell.
// ctest passes the labels of tests/labels.txt in GRADLOOM_TEST_LABELS; a test that is started by hand is not judged.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>

namespace {

std::atomic<int> threads_started = 0;

bool mentions(const testing::TestResult& result, const std::string& word) {
  for (int i = 0; i < result.total_part_count(); ++i)
    if (std::string(result.GetTestPartResult(i).message()).find(word) != std::string::npos) return true;
  return false;
}

class LabelCheck : public testing::EmptyTestEventListener {
 public:
  explicit LabelCheck(const std::string& labels) {
    std::istringstream in(labels);
    for (std::string label; in >> label;) labels_.insert(label);
  }

  void OnTestStart(const testing::TestInfo&) override { threads_started = 0; }

  void OnTestEnd(const testing::TestInfo& test) override {
    // A driver has threads of its own, so a device test need not have both labels.
    if (threads_started > 0 && !has("threads") && !has("device"))
      ADD_FAILURE() << "started " << threads_started << " threads and lacks the label `threads`" << kRemedy;
    if (!has("data") && test.result()->Skipped() && mentions(*test.result(), "GRADLOOM_DATA"))
      ADD_FAILURE() << "looks for GRADLOOM_DATA and lacks the label `data`" << kRemedy;
  }

  bool has(const std::string& label) const { return labels_.contains(label); }

 private:
  static constexpr const char* kRemedy = "; see tests/labels.txt";
  std::set<std::string> labels_;
};

}  // namespace

#ifdef GRADLOOM_COUNT_THREADS
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  ++threads_started;
  return create(thread, attributes, start, argument);
}
#endif

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (const char* labels = std::getenv("GRADLOOM_TEST_LABELS")) {
    auto* check = new LabelCheck(labels);  // GoogleTest deletes it
    if (!check->has("data")) unsetenv("GRADLOOM_DATA");
    testing::UnitTest::GetInstance()->listeners().Append(check);
  }
  return RUN_ALL_TESTS();
}
