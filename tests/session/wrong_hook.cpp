// Does not compile, on purpose: a family whose hook has a wrong signature (tests/CMakeLists.txt).
#include "gradloom/data/rows.h"
#include "gradloom/models/kan/network.h"
#include "gradloom/session/families/kan/options.h"
#include "gradloom/session/family.h"

template <class T>
class WrongFamily
    : public gradloom::Family<T, gradloom::kan::Network<T>, gradloom::RowDataset<T>, gradloom::KanOptions> {
 public:
  bool before_epoch(const gradloom::Exec&, std::size_t, std::uint32_t, gradloom::TrainState<T>&) const override {
    return true;
  }
};

template class WrongFamily<float>;
