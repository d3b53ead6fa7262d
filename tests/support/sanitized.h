// Whether a sanitizer watches, which costs a factor of ten: long tests then take a part of their cases.
#pragma once

#include <cstddef>
#include <vector>

namespace gradloom::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// All of them; every third, beginning with the first, under a sanitizer.
template <class Case>
std::vector<Case> thinned(std::vector<Case> cases) {
  if (!kSanitized) return cases;
  std::vector<Case> some;
  for (std::size_t i = 0; i < cases.size(); i += 3) some.push_back(cases[i]);
  return some;
}

}  // namespace gradloom::test
