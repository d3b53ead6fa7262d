// The scalar of a shader: float, or double when it is compiled with GRADLOOM_DOUBLE; and how groups are numbered.
//
// Every variable that arithmetic ends in is `precise`, so that no compiler fuses or reorders: the order of operations is
// that of the C++ definition, and so are the bits. What is fused under contract 2 stands as mul_add, as in C++; a shader
// that is compiled with GRADLOOM_FUSED rounds it once, any other rounds the product first.
#ifndef GRADLOOM_REAL_GLSL
#define GRADLOOM_REAL_GLSL

// The numerical contract, as in gradloom/kernels/contract.h.
#ifndef GRADLOOM_CONTRACT
#define GRADLOOM_CONTRACT 2
#endif

#ifdef GRADLOOM_DOUBLE
#define real double
#define real4 dvec4
#else
#define real float
#define real4 vec4
#endif

// a b + c and c - a b: gradloom/kernels/contract.h.
#ifdef GRADLOOM_FUSED
#define GRADLOOM_MUL_ADD(type)                                  \
  type mul_add(type a, type b, type c) {                        \
    precise type result = fma(a, b, c);                         \
    return result;                                              \
  }                                                             \
  type neg_mul_add(type a, type b, type c) {                    \
    precise type result = fma(-a, b, c);                        \
    return result;                                              \
  }
#else
#define GRADLOOM_MUL_ADD(type)                                  \
  type mul_add(type a, type b, type c) {                        \
    precise type product = a * b;                               \
    precise type result = c + product;                          \
    return result;                                              \
  }                                                             \
  type neg_mul_add(type a, type b, type c) {                    \
    precise type product = a * b;                               \
    precise type result = c - product;                          \
    return result;                                              \
  }
#endif
GRADLOOM_MUL_ADD(real)
GRADLOOM_MUL_ADD(real4)
real4 mul_add(real a, real4 b, real4 c) { return mul_add(real4(a), b, c); }
real4 mul_add(real a, real4 b, real c) { return mul_add(real4(a), b, real4(c)); }
real4 neg_mul_add(real a, real4 b, real4 c) { return neg_mul_add(real4(a), b, c); }

// Invocations of a workgroup. A shader that wants to choose defines GRADLOOM_OWN_GROUP and its own kGroup.
#ifndef GRADLOOM_OWN_GROUP
const uint kGroup = 64;
layout(local_size_x = 64) in;
#endif

// Dispatches are rows of 65535 groups at most.
uint group_number() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

#endif
