// The scalar of a shader: float, or double when it is compiled with GRADLOOM_DOUBLE; and how groups are numbered.
//
// Every variable that arithmetic ends in is `precise`, so that no compiler fuses or reorders: the order of operations is
// that of the C++ definition, and so are the bits. What is fused stands as mul_add, as in C++: rounded once
// where the pipeline is made with kFused, which Device::kernel() says; else the product is rounded first.
#ifndef GRADLOOM_REAL_GLSL
#define GRADLOOM_REAL_GLSL

#ifdef GRADLOOM_DOUBLE
#define real double
#define real4 dvec4
#else
#define real float
#define real4 vec4
#endif

layout(constant_id = 20) const bool kFused = false;  // kFusedConstant of exec/vulkan/spirv.h

// For tests (sloppy.glsl): a device's fma() that is fused, on devices that have none.
#if defined(GRADLOOM_SLOPPY) && !defined(GRADLOOM_DOUBLE)
#include "gradloom/kernels/shader/sloppy_fma.glsl"
#else
#define GRADLOOM_FMA fma
#endif

// a b + c and c - a b: gradloom/kernels/contract.h.
#define GRADLOOM_MUL_ADD(type)                       \
  type mul_add(type a, type b, type c) {             \
    precise type product = a * b;                    \
    precise type split_sum = c + product;            \
    precise type fused_sum = GRADLOOM_FMA(a, b, c);  \
    return kFused ? fused_sum : split_sum;           \
  }                                                  \
  type neg_mul_add(type a, type b, type c) {         \
    precise type product = a * b;                    \
    precise type split_sum = c - product;            \
    precise type fused_sum = GRADLOOM_FMA(-a, b, c); \
    return kFused ? fused_sum : split_sum;           \
  }
GRADLOOM_MUL_ADD(real)
GRADLOOM_MUL_ADD(real4)
real4 mul_add(real a, real4 b, real4 c) { return mul_add(real4(a), b, c); }
real4 mul_add(real a, real4 b, real c) { return mul_add(real4(a), b, real4(c)); }
real4 neg_mul_add(real a, real4 b, real4 c) { return neg_mul_add(real4(a), b, c); }

// To which every number is added unchanged. A literal may lose its sign.
#ifdef GRADLOOM_DOUBLE
double negative_zero() { return packDouble2x32(uvec2(0u, 0x80000000u)); }
#else
float negative_zero() { return uintBitsToFloat(0x80000000u); }
#endif

// Invocations of a workgroup. A shader that wants to choose defines GRADLOOM_OWN_GROUP and its own kGroup.
#ifndef GRADLOOM_OWN_GROUP
const uint kGroup = 64;
layout(local_size_x = 64) in;
#endif

// Dispatches are rows of 65535 groups at most.
uint group_number() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

#endif
