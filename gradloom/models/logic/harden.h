// From soft gates to a hard circuit: every gate becomes the function with the largest logit.
#pragma once

#include "gradloom/circuit/circuit.h"
#include "gradloom/models/logic/automaton.h"
#include "gradloom/models/logic/classifier.h"

namespace gradloom::logic {

// The largest of 16 logits; the lowest number on ties.
template <class T>
circuit::Op hard_gate(const T* logits);

// 9 C inputs (channel * 9 + position), gate_evaluations() gates, C outputs: perception channel by channel, layer by
// layer, gate (j, k) in the order j K + k; then the update. Throws when the wires are not valid.
template <class T>
circuit::CellRule harden(const Automaton<T>& automaton, const ModelArrays<T>& arrays);

// `inputs` inputs, gates() gates; the outputs are the last layer's gates, so that class k counts outputs
// [k n, (k + 1) n) as the soft classifier does.
template <class T>
circuit::Circuit harden(const GateClassifier<T>& classifier, const ModelArrays<T>& arrays);

// Gates (those with logits of their own, so a kernel counts once for all channels) that are neither A nor B.
template <class T>
std::size_t active_gates(const Slices& slices, std::span<const T> parameters);

}  // namespace gradloom::logic
