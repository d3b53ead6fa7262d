// The first bytes of a batch on its way to the device: 64 whole numbers, then the scalars of the step. The numbers are
// those of StepScalar in gradloom/kernels/shader/step.h.
#ifndef GRADLOOM_STEP_GLSL
#define GRADLOOM_STEP_GLSL

#include "gradloom/kernels/shader/real.glsl"

#ifdef GRADLOOM_DOUBLE
const uint kScalars = 32;  // first element behind the whole numbers
#else
const uint kScalars = 64;
#endif

const uint kLossFactor = kScalars + 0, kHuberDelta = kScalars + 1, kGradientScale = kScalars + 2,
           kGradientLimit = kScalars + 3, kL2 = kScalars + 4, kRate = kScalars + 5, kMomentum = kScalars + 6,
           kBeta1 = kScalars + 7, kRest1 = kScalars + 8, kBeta2 = kScalars + 9, kRest2 = kScalars + 10,
           kEpsilon = kScalars + 11, kKeep = kScalars + 12, kRootCorrection = kScalars + 13, kClipNorm = kScalars + 14;

#endif
