// A processor without FMA, for tests.
#pragma once

namespace gradloom {

// Until the scope ends, fused arithmetic is not available() to this thread.
class WithoutFma {
 public:
  WithoutFma();
  ~WithoutFma();
  WithoutFma(const WithoutFma&) = delete;
  WithoutFma& operator=(const WithoutFma&) = delete;
};

}  // namespace gradloom
