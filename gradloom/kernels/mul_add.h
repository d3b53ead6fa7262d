// mul_add and neg_mul_add of numbers, in the namespaces split and fused (contract.h).
#pragma once

#include "gradloom/kernels/contract.h"

#define GRADLOOM_EACH_ARITHMETIC "gradloom/kernels/mul_add.inc"
#include "gradloom/kernels/each_arithmetic.inc"
