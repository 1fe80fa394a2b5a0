// Functions of single elements: relu with one thread an element, gelu with four, and sums with a chunk a block.

// Right.
extern "C" __global__ void relu_elements(float *out, const float *input, long long count) {
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    float value = input[at];
    out[at] = value < 0.0f ? 0.0f : value;
}

// WRONG: one thread too many passes the guard, and writes one element behind the output.
extern "C" __global__ void relu_elements_one_more(float *out, const float *input, long long count) {
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at > count) return;
    float value = at < count ? input[at] : 0.0f;
    out[at] = value < 0.0f ? 0.0f : value;
}

static __device__ float gelu(float value) { return 0.5f * value * (1.0f + erff(value * 0.7071067811865476f)); }

// Right: the last, incomplete four are written one by one.
extern "C" __global__ void gelu_vectors(float *out, const float *input, long long count) {
    long long at = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (at + 4 <= count) {
        float4 value = *(const float4 *)(input + at);
        *(float4 *)(out + at) = make_float4(gelu(value.x), gelu(value.y), gelu(value.z), gelu(value.w));
        return;
    }
    for (; at < count; at++) out[at] = gelu(input[at]);
}

// WRONG: the last, incomplete four are loaded one by one but stored as a vector, over what lies behind the output.
extern "C" __global__ void gelu_vectors_whole_store(float *out, const float *input, long long count) {
    long long at = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= count) return;
    float4 value = make_float4(input[at], 0.0f, 0.0f, 0.0f);
    if (at + 1 < count) value.y = input[at + 1];
    if (at + 2 < count) value.z = input[at + 2];
    if (at + 3 < count) value.w = input[at + 3];
    *(float4 *)(out + at) = make_float4(gelu(value.x), gelu(value.y), gelu(value.z), gelu(value.w));
}

// Right: chunks are rounded up, and the last one is cut off at the end.
extern "C" __global__ void add_chunks(float *out, const float *input, const float *other, float alpha,
                                      long long count) {
    long long chunk = (count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * chunk;
    long long end = min(first + chunk, count);
    for (long long at = first + threadIdx.x; at < end; at += blockDim.x) out[at] = input[at] + alpha * other[at];
}

// WRONG: chunks are rounded down, and what is left over falls to no block.
extern "C" __global__ void add_chunks_rounded_down(float *out, const float *input, const float *other, float alpha,
                                                   long long count) {
    long long chunk = count / gridDim.x, first = blockIdx.x * chunk;
    long long end = first + chunk;
    for (long long at = first + threadIdx.x; at < end; at += blockDim.x) out[at] = input[at] + alpha * other[at];
}
