// Numbers counted in shared memory first, by one block: count[i] is how often i occurs among them.

#define MOST_BINS 64

extern "C" __global__ void right(long long *out, const long long *numbers, int count, int bins) {
    __shared__ unsigned counts[MOST_BINS];
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) counts[bin] = 0;
    __syncthreads();
    for (int at = threadIdx.x; at < count; at += blockDim.x) atomicAdd(&counts[numbers[at]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) out[bin] = counts[bin];
}

// WRONG: threads that count the same number at once overwrite each other's count.
extern "C" __global__ void wrong(long long *out, const long long *numbers, int count, int bins) {
    __shared__ unsigned counts[MOST_BINS];
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) counts[bin] = 0;
    __syncthreads();
    for (int at = threadIdx.x; at < count; at += blockDim.x) counts[numbers[at]] += 1;
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) out[bin] = counts[bin];
}
