// Operations on the rows of a matrix, one number after the other: activation, normalisation, dropout.
//
// Letters: rows [begin, end) of matrices with W columns and rows of `stride` numbers; columns beyond W are padding,
// which is zero and stays zero (arrays of W numbers are padded, too). Sums over columns run in 8 lanes, c mod 8, from
// zero, which are added as a tree, +4, +2, +1 (reduce/lanes.h). Sums over rows run in order and give one array per
// block of rows, which dense::add_blocks adds. Fused (contract.h) are sums of products over columns or rows, x hat *
// gain + shift, and - x hat * mean; the integers that decide over dropout are computed in SIMD lanes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gradloom/base/choice.h"
#include "gradloom/base/random.h"
#include "gradloom/exec/exec.h"

namespace gradloom::kernels::rowwise {

struct Rows {
  std::size_t begin = 0, end = 0, width = 0, stride = 0;
};

enum class Activation { none, relu, silu };
// Those that a layer can be given.
inline constexpr Choice<Activation> kActivations[] = {
    {Activation::relu, "relu", "max(0, x)"},
    {Activation::silu, "silu", "x sigmoid(x)"},
};

// y = act(x + bias) + residual; bias (W) and residual may be null; relu of NaN is NaN, and the slope of relu at 0 is 0.
template <class T>
void activate(Variant variant, const Rows& r, Activation act, const T* x, const T* bias, const T* residual, T* y);
// dl_dx = dl_dy act'(x + bias).
template <class T>
void activate_gradient(Variant variant, const Rows& r, Activation act, const T* x, const T* bias, const T* dl_dy,
                       T* dl_dx);

// y += x.
template <class T>
void add(const Rows& r, const T* x, T* y);

inline constexpr double kNormEpsilon = 1e-5;

// Layer norm: over the columns of a row; y = (x - mean) inverse * gain + shift, inverse = 1 / sqrt(variance + epsilon).
// mean and inverse (rows) are kept.
template <class T>
struct LayerNorm {
  const T *x = nullptr, *gain = nullptr, *shift = nullptr;
  T *y = nullptr, *mean = nullptr, *inverse = nullptr;
};
template <class T>
void layer_norm(Variant variant, const Rows& r, const LayerNorm<T>& n);
// dl_dx, and the block's sums of dl_dy xhat (gain) and dl_dy (shift), each (stride), from zero.
template <class T>
void layer_norm_gradient(Variant variant, const Rows& r, const LayerNorm<T>& n, const T* dl_dy, T* dl_dx, T* dl_dgain,
                         T* dl_dshift);

// Batch norm: over the rows of a column; mean and inverse (stride).
template <class T>
struct BatchNorm {
  const T *x = nullptr, *gain = nullptr, *shift = nullptr, *mean = nullptr, *inverse = nullptr;
};
// The block's sum of (x - mean)^2, from zero.
template <class T>
void squared_deviation(Variant variant, const Rows& r, const T* x, const T* mean, T* sums);
template <class T>
void batch_norm(Variant variant, const Rows& r, const BatchNorm<T>& n, T* y);
// The block's sums of dl_dy xhat and dl_dy, from zero.
template <class T>
void batch_norm_sums(Variant variant, const Rows& r, const BatchNorm<T>& n, const T* dl_dy, T* dl_dgain, T* dl_dshift);
// dl_dx = gain inverse (dl_dy - mean_dy - xhat mean_dy_xhat); the means (stride) are null when statistics were fixed.
template <class T>
void batch_norm_gradient(Variant variant, const Rows& r, const BatchNorm<T>& n, const T* dl_dy, const T* mean_dy,
                         const T* mean_dy_xhat, T* dl_dx);

// What decides over dropout: number n is kept when 16 bits of philox4x32({n / 8, sample, epoch, use}, key), word n % 8
// / 2 of them, the lower half first, reach the threshold.
struct DropoutKey {
  std::uint32_t threshold = 0, sample = 0, epoch = 0, use = 0;
  std::array<std::uint32_t, 2> key{};
};

// Which numbers of a long array dropout keeps, as a function of (seed, epoch, sample, position) alone: 16 random bits
// decide, so the probability is rounded to a multiple of 2^-16.
class Dropout {
 public:
  Dropout(double probability, std::uint64_t seed, std::uint32_t epoch, std::uint32_t sample);
  // keep[n] = 1 or 0 for positions [begin, end); begin is a multiple of 8.
  void keep(std::size_t begin, std::size_t end, std::uint8_t* keep) const;
  double scale() const { return scale_; }  // 1 / (1 - probability)

 private:
  DropoutKey key_;
  double scale_;
};

// y[n] = keep[n] ? scale x[n] : 0.
template <class T>
void apply_dropout(const T* x, const std::uint8_t* keep, T scale, std::size_t begin, std::size_t end, T* y);

}  // namespace gradloom::kernels::rowwise
