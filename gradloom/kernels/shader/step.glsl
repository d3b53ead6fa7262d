// The scalars of a step, from the head of a batch (gradloom/kernels/shader/step.h). Include it behind the declaration of
// the batch's elements, `real batch[]`.
#ifndef GRADLOOM_STEP_GLSL
#define GRADLOOM_STEP_GLSL

struct StepScalars {
#define GRADLOOM_LOSS_SCALAR(number, name) real name;
#define GRADLOOM_STEP_SCALAR GRADLOOM_LOSS_SCALAR
#include "gradloom/kernels/shader/step_scalars.inc"
};

StepScalars load_step() {
#ifdef GRADLOOM_DOUBLE
  const uint scalars = 32;  // first element behind the whole numbers
#else
  const uint scalars = 64;
#endif
  StepScalars c;
#define GRADLOOM_LOSS_SCALAR(number, name) c.name = batch[scalars + number];
#define GRADLOOM_STEP_SCALAR GRADLOOM_LOSS_SCALAR
#include "gradloom/kernels/shader/step_scalars.inc"
  return c;
}

#endif
