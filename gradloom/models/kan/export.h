// Trained spline networks for other programs: a C header, an ONNX file, tensors under the names of efficient-kan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gradloom/exec/arithmetic.h"
#include "gradloom/models/kan/network.h"

namespace gradloom::kan {

// What an export says beside the numbers of the network.
struct ExportHead {
  std::string name = "network";                     // of the function or graph: an identifier
  std::vector<std::string> features, outputs;       // names, In and Out of them, or none
  std::vector<double> input_centre, output_centre;  // subtracted before the network, added behind it; empty: none
  bool classes = false;                             // outputs are logits
};

// A C99 header with one function, `static inline void NAME(const R *x, R *y)`: In values to Out values. R is the
// scalar of the network, or double where columns are centred. The bits are those of forward_single in the given
// arithmetic, but that subnormal numbers are not flushed. Throws invalid_input on a name that C cannot have.
template <class T>
std::string to_c(const Network<T>& network, const ModelArrays<T>& arrays, const ExportHead& head,
                 Arithmetic arithmetic);

// An ONNX model of operator set 13, standard operators alone. Input "x" (rows, In), output "y" (rows, Out), of the type
// R above; with classes also "probabilities". Splines are dense: a row takes In (G + p) numbers. Fails with unsupported
// beyond the 2 GB that the format allows.
template <class T>
Result<std::string> to_onnx(const Network<T>& network, const ModelArrays<T>& arrays, const ExportHead& head);

// A tensor of its own, row-major.
template <class T>
struct ExportedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<T> values;
};

template <class T>
struct EfficientKan {
  // layers.N.grid (In, G + 2p + 1), .base_weight (Out, In), .spline_weight (Out, In, G + p), .spline_scaler (Out, In),
  // and where inputs are normalised input.mean, input.std (In).
  std::vector<ExportedTensor<T>> tensors;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> differences;  // what those tensors cannot say, a sentence each
};

// Biases and the scale of the output go into the last functions, which is exact inside of the grids. Throws unsupported
// for a network with multiplication nodes.
template <class T>
EfficientKan<T> to_efficient_kan(const Network<T>& network, const ModelArrays<T>& arrays, const ExportHead& head);

}  // namespace gradloom::kan
