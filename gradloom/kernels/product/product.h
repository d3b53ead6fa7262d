// Multiplication nodes of a spline network: the nodes of a layer from its sums (docs/math/spline.md).
//
// Letters: B samples; of the N nodes of a layer the last M multiply, so N + M sums v become N nodes z
// (base/layer_nodes.h). Layouts: panel matrices of spline/spline.h; S samples lie from one panel to the next in all of
// them.
//
// - forward: z_j = v_j for j < N - M; z_j = v_j * v_{j+M} for N - M <= j < N.
// - backward, with g = dl_dz: dl_dv_j = g_j for j < N - M; dl_dv_j = g_j * v_{j+M} and dl_dv_{j+M} = g_j * v_j for
//   N - M <= j < N.
// Each product is rounded once and enters no sum here: the bits are the same in both arithmetics.
//
// Every function here is serial, allocates nothing, and must run with subnormals flushed. Pointers never alias. Ranges
// of samples may be worked on by different threads at once.
#pragma once

#include "gradloom/base/layer_nodes.h"
#include "gradloom/kernels/spline/spline.h"

namespace gradloom::kernels::product {

// sums (N + M, B); nodes (N, B): the columns of `samples` are overwritten, padding lanes with zeros.
template <class T>
void forward(Variant variant, const LayerNodes& shape, std::size_t stride, spline::Range samples, const T* sums,
             T* nodes);

// sums of the forward pass, dl_dnodes (N, B); dl_dsums (N + M, B) is overwritten likewise.
template <class T>
void backward(Variant variant, const LayerNodes& shape, std::size_t stride, spline::Range samples, const T* sums,
              const T* dl_dnodes, T* dl_dsums);

}  // namespace gradloom::kernels::product
