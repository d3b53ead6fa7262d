#include "gradloom/app/bench/dense_blas.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "gradloom/app/bench/timing.h"
#include "gradloom/base/float_mode.h"
#include "gradloom/base/rounding.h"
#include "gradloom/kernels/optimizer/optimizer.h"
#include "gradloom/models/kan/panels.h"

namespace gradloom::app {
namespace {

namespace spline = kernels::spline;

constexpr std::size_t kRowsTogether = 16;  // samples whose rows stay in the cache

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

}  // namespace

Result<Blas> Blas::load(unsigned threads) {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);  // stays until the program ends
  if (!library)
    return Error{ErrorCode::not_found,
                 "there is no libopenblas.so.0; on Debian, install the package libopenblas0-pthread"};
  Blas blas;
  blas.sgemm_ = symbol<Sgemm>(library, "cblas_sgemm");
  const auto set_threads = symbol<void (*)(int)>(library, "openblas_set_num_threads");
  const auto config = symbol<char* (*)()>(library, "openblas_get_config");
  if (!blas.sgemm_ || !set_threads || !config)
    return Error{ErrorCode::unsupported, "libopenblas.so.0 has no cblas_sgemm, or lacks other functions of OpenBLAS"};
  set_threads(static_cast<int>(threads));
  blas.config_ = config();
  return blas;
}

void Blas::multiply(Transposed a_is, Transposed b_is, std::size_t m, std::size_t n, std::size_t k, const float* a,
                    std::size_t lda, const float* b, std::size_t ldb, float* c, std::size_t ldc) const {
  constexpr int kRowMajor = 101;
  const auto count = [](std::size_t size) { return static_cast<int>(size); };
  sgemm_(kRowMajor, static_cast<int>(a_is), static_cast<int>(b_is), count(m), count(n), count(k), 1.0f, a, count(lda),
         b, count(ldb), 0.0f, c, count(ldc));
}

double sgemm_gflops(const Blas& blas, double seconds) {
  constexpr std::size_t kSize = 512;
  const std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f);
  std::vector<float> c(kSize * kSize);
  using enum Blas::Transposed;
  const Timing timing = repeat(
      seconds, [&] { blas.multiply(no, no, kSize, kSize, kSize, a.data(), kSize, b.data(), kSize, c.data(), kSize); });
  return 2.0 * kSize * kSize * kSize / timing.fastest * 1e-3;
}

DenseNetwork::DenseNetwork(const Blas& blas, const kan::Network<float>& network, const ModelArrays<float>& arrays,
                           std::size_t batch)
    : blas_(blas),
      network_(network),
      batch_(batch),
      parameters_(arrays.parameters.size()),
      buffers_(arrays.buffers.size()),
      gradient_(parameters_.size()),
      first_(parameters_.size()),
      second_(parameters_.size()) {
  std::copy(arrays.parameters.begin(), arrays.parameters.end(), parameters_.data());
  std::copy(arrays.buffers.begin(), arrays.buffers.end(), buffers_.data());
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const spline::Shape& s = network.shape(l);
    const std::size_t q = spline::basis_stride(s.degree), wide = s.in * s.spline_rows();
    DenseLayer layer;
    layer.x = Buffer<float>(s.in_padded() * batch);
    layer.value = Buffer<float>(s.in * batch * q);
    layer.slope = Buffer<float>(s.in * batch * q);
    layer.span.resize(s.in * batch);
    layer.basis = Buffer<float>(batch * wide);
    layer.dl_dbasis = Buffer<float>(batch * wide);
    layer.y = Buffer<float>(batch * s.out_padded());
    layer.dl_dy = Buffer<float>(batch * s.out_padded());
    layers_.push_back(std::move(layer));
  }
}

// The basis of a layer's inputs as a dense matrix (B, In R).
void DenseNetwork::evaluate(std::size_t l, bool slopes) {
  const spline::Shape& s = network_.shape(l);
  DenseLayer& at = layers_[l];
  spline::LayerTape<float> tape;
  tape.batch = batch_;
  tape.x = at.x.data();
  tape.span = at.span.data();
  tape.value = at.value.data();
  tape.slope = slopes ? at.slope.data() : nullptr;
  const ModelArrays<float> arrays{parameters_, buffers_};
  spline::evaluate_basis(Variant::fast, network_.layer(l, arrays), tape, {0, batch_});
  const std::size_t q = spline::basis_stride(s.degree), rows = s.spline_rows(), wide = s.in * rows;
  for (std::size_t first = 0; first < batch_; first += kRowsTogether) {
    const std::size_t last = std::min(batch_, first + kRowsTogether);
    std::fill(at.basis.data() + first * wide, at.basis.data() + last * wide, 0.0f);
    for (std::size_t i = 0; i < s.in; ++i)
      for (std::size_t b = first; b < last; ++b) {
        const float* from = at.value.data() + (i * batch_ + b) * q;
        float* to = at.basis.data() + b * wide + i * rows + at.span[i * batch_ + b];
        if (s.degree == 3)
          std::memcpy(to, from, 4 * sizeof(float));
        else
          std::copy_n(from, s.degree + 1, to);
      }
  }
}

void DenseNetwork::forward(View<const float, 2> x) {
  using enum Blas::Transposed;
  const FlushSubnormals flush;
  const ModelArrays<float> arrays{parameters_, buffers_};
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const spline::Shape& s = network_.shape(l);
    DenseLayer& at = layers_[l];
    const auto row = [&](std::size_t b) {
      return l == 0 ? x.row(b) : layers_[l - 1].y.data() + b * network_.shape(l - 1).out_padded();
    };
    kan::to_panels(spline::Range{0, batch_}, s.in, batch_, at.x.data(), row, [](float v, std::size_t) { return v; });
    evaluate(l, l > 0);
    const spline::Layer<float> layer = network_.layer(l, arrays);
    const std::size_t wide = s.in * s.spline_rows();
    blas_.multiply(no, no, batch_, s.out, wide, at.basis.data(), wide, layer.weight, s.out_padded(), at.y.data(),
                   s.out_padded());
    for (std::size_t b = 0; layer.bias && b < batch_; ++b)
      for (std::size_t j = 0; j < s.out; ++j) at.y[b * s.out_padded() + j] += layer.bias[j];
  }
}

View<const float, 2> DenseNetwork::y() const {
  const spline::Shape& s = network_.shape(layers_.size() - 1);
  return {layers_.back().y.data(), {batch_, s.out}, {s.out_padded(), 1}};
}

// dl_dw, dl_db, and dl_dy of the layer below.
void DenseNetwork::backward(std::size_t l) {
  using enum Blas::Transposed;
  const spline::Shape& s = network_.shape(l);
  DenseLayer& at = layers_[l];
  const std::size_t rows = s.spline_rows(), wide = s.in * rows, out = s.out_padded(),
                    q = spline::basis_stride(s.degree);
  const ModelArrays<float> arrays{parameters_, buffers_};
  const spline::Layer<float> layer = network_.layer(l, arrays);
  float* dl_dw = gradient_.data() + (layer.weight - parameters_.data());
  blas_.multiply(yes, no, wide, s.out, batch_, at.basis.data(), wide, at.dl_dy.data(), out, dl_dw, out);
  if (layer.bias) {
    float* dl_db = gradient_.data() + (layer.bias - parameters_.data());
    std::fill_n(dl_db, s.out, 0.0f);
    for (std::size_t b = 0; b < batch_; ++b)
      for (std::size_t j = 0; j < s.out; ++j) dl_db[j] += at.dl_dy[b * out + j];
  }
  if (l == 0) return;
  blas_.multiply(no, yes, batch_, wide, s.out, at.dl_dy.data(), out, layer.weight, out, at.dl_dbasis.data(), wide);
  DenseLayer& below = layers_[l - 1];
  const std::size_t below_out = network_.shape(l - 1).out_padded();
  for (std::size_t first = 0; first < batch_; first += kRowsTogether)
    for (std::size_t i = 0; i < s.in; ++i)
      for (std::size_t b = first; b < std::min(batch_, first + kRowsTogether); ++b) {
        const float* slope = at.slope.data() + (i * batch_ + b) * q;  // of differences of rows (spline.h)
        const float* of = at.dl_dbasis.data() + b * wide + i * rows + at.span[i * batch_ + b];
        float sum = 0;
        for (unsigned k = 0; k < s.degree; ++k) sum += slope[k] * (of[k + 1] - of[k]);
        below.dl_dy[b * below_out + i] = sum;
      }
}

void DenseNetwork::train_step(View<const float, 2> x, View<const float, 2> target, float learning_rate) {
  forward(x);
  const FlushSubnormals flush;
  const spline::Shape& last = network_.shape(layers_.size() - 1);
  const float scale = 2.0f / static_cast<float>(batch_ * last.out);
  for (std::size_t b = 0; b < batch_; ++b)
    for (std::size_t j = 0; j < last.out; ++j)
      layers_.back().dl_dy[b * last.out_padded() + j] = scale * (y()(b, j) - target(b, j));
  for (std::size_t l = layers_.size(); l-- > 0;) backward(l);
  using namespace kernels::optimizer;
  const auto step = make_step<float>(
      Rule::adam, {.learning_rate = learning_rate, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}, ++steps_);
  update<float>(Variant::fast, Rule::adam, step, parameters_.span(), gradient_.span(), first_.span(), second_.span());
}

}  // namespace gradloom::app
