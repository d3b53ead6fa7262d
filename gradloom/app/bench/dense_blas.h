// A spline network as dense matrices, the way it is done without kernels for splines: the basis of every input is a row
// of G + p numbers, most of them zero, and OpenBLAS multiplies. What `bench kan` is compared with.
#pragma once

#include <memory>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/models/kan/network.h"

namespace gradloom::app {

// OpenBLAS, loaded at run time. Its kernels are chosen when it is loaded: whoever wants others sets OPENBLAS_CORETYPE
// before.
class Blas {
 public:
  // Fails with not_found where the library is not installed.
  static Result<Blas> load(unsigned threads);

  enum class Transposed : int { no = 111, yes = 112 };  // CBLAS's numbers
  // c (m, n) = a (m, k) b (k, n), row-major, with rows of lda, ldb, ldc.
  void multiply(Transposed a_is, Transposed b_is, std::size_t m, std::size_t n, std::size_t k, const float* a,
                std::size_t lda, const float* b, std::size_t ldb, float* c, std::size_t ldc) const;
  std::string config() const { return config_; }

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  Sgemm sgemm_ = nullptr;
  std::string config_;
};

// GFLOP/s of a product of two 512 x 512 matrices.
double sgemm_gflops(const Blas& blas, double seconds);

// One batch. Without base branch.
class DenseNetwork {
 public:
  DenseNetwork(const Blas& blas, const kan::Network<float>& network, const ModelArrays<float>& arrays,
               std::size_t batch);

  // y() = the network of x (B, In).
  void forward(View<const float, 2> x);
  // Forward, the gradient of the mean squared error to `target`, and a step of Adam.
  void train_step(View<const float, 2> x, View<const float, 2> target, float learning_rate);
  View<const float, 2> y() const;
  std::span<const float> gradient() const { return gradient_.span(); }

 private:
  struct DenseLayer {
    Buffer<float> x, value, slope, basis, dl_dbasis, y, dl_dy;
    std::vector<std::uint16_t> span;
  };
  void evaluate(std::size_t l, bool slopes);
  void backward(std::size_t l);

  const Blas& blas_;
  const kan::Network<float>& network_;
  std::size_t batch_;
  Buffer<float> parameters_, buffers_, gradient_, first_, second_;
  std::vector<DenseLayer> layers_;
  unsigned long steps_ = 0;
};

}  // namespace gradloom::app
