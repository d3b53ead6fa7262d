// The largest values of each chunk, and what is left of the others: gradloom/kernels/compress/compress.h. A group owns a
// chunk of 256, an invocation four of its values; everybody counts who comes before its own.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/shader/real.glsl"

layout(push_constant) uniform What {
  uint count;
  uint kept;
  uint places_at;  // in words
} what;

layout(std430, binding = 0) readonly buffer Gradient { real gradient[]; };
layout(std430, binding = 1) buffer Residual { real residual[]; };
layout(std430, binding = 2) writeonly buffer Values { real values[]; };
layout(std430, binding = 3) writeonly buffer Places { uint places[]; };

const uint kChunk = 256, kMine = kChunk / kGroup;
shared uvec2 shared_key[kChunk];  // upper and lower bits of the magnitude
shared uint shared_place[kChunk];

uvec2 key_of(real value) {
#ifdef GRADLOOM_DOUBLE
  return unpackDouble2x32(abs(value)).yx;
#else
  return uvec2(floatBitsToUint(abs(value)), 0u);
#endif
}

bool larger(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y > b.y); }

void main() {
  const uint chunk = group_number(), first = chunk * kChunk, me = gl_LocalInvocationID.x;
  const uint count = first < what.count ? min(kChunk, what.count - first) : 0;
  for (uint n = me; n < kChunk; n += kGroup) shared_place[n] = 0;
  precise real mine[kMine];
  for (uint m = 0; m < kMine; ++m) {
    const uint n = m * kGroup + me;
    if (n >= count) continue;
    mine[m] = gradient[first + n] + residual[first + n];
    shared_key[n] = key_of(mine[m]);
  }
  barrier();
  for (uint m = 0; m < kMine; ++m) {
    const uint n = m * kGroup + me;
    if (n >= count) {
      if (n < what.kept && first < what.count) values[chunk * what.kept + n] = real(0);
      continue;
    }
    const uvec2 key = shared_key[n];
    uint rank = 0;
    for (uint other = 0; other < count; ++other)
      rank += larger(shared_key[other], key) || (shared_key[other] == key && other < n) ? 1 : 0;
    const bool sent = rank < what.kept;
    if (sent) {
      values[chunk * what.kept + rank] = mine[m];
      shared_place[rank] = n;
    }
    residual[first + n] = sent ? real(0) : mine[m];
  }
  barrier();
  if (first >= what.count) return;
  const uint words = (what.kept + 3) / 4;
  for (uint w = me; w < words; w += kGroup) {
    uint word = 0;
    for (uint b = 0; b < 4; ++b)
      if (4 * w + b < what.kept) word |= shared_place[4 * w + b] << (8 * b);
    places[what.places_at + chunk * words + w] = word;
  }
}
