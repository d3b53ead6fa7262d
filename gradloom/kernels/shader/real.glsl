// The scalar of a shader: float, or double when it is compiled with GRADLOOM_DOUBLE; and how groups are numbered.
//
// Every variable that arithmetic ends in is `precise`, so that no compiler fuses or reorders: the order of operations is
// that of the C++ definition, and so are the bits.
#ifndef GRADLOOM_REAL_GLSL
#define GRADLOOM_REAL_GLSL

#ifdef GRADLOOM_DOUBLE
#define real double
#define real4 dvec4
#else
#define real float
#define real4 vec4
#endif

// Invocations of a workgroup. A shader that wants to choose defines GRADLOOM_OWN_GROUP and its own kGroup.
#ifndef GRADLOOM_OWN_GROUP
const uint kGroup = 64;
layout(local_size_x = 64) in;
#endif

// Dispatches are rows of 65535 groups at most.
uint group_number() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

#endif
