// Barriers that all threads reach, and barriers that some do not.

// Right: threads that have nothing to add still come to the barrier.
extern "C" __global__ void halving_sum(const float *in, float *out, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

// Right: how often the loop runs depends on the block, and on a value that all threads read from one place.
extern "C" __global__ void uniform_loop(const float *in, float *out, const int *lengths) {
    __shared__ float tile[128];
    int length = lengths[blockIdx.x];
    float sum = 0;
    for (int start = 0; start < length; start += 128) {
        tile[threadIdx.x] = in[start + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 128; k++) sum += tile[k] * (k + 1);
        __syncthreads();
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}

// Right: threads agree by a barrier whether to go on.
extern "C" __global__ void until_all_agree(float *x) {
    float value = x[threadIdx.x];
    while (__syncthreads_or(value > 1.0f)) {
        value *= 0.5f;
        __syncthreads();
    }
    x[threadIdx.x] = value;
}

// Wrong: threads beyond the end leave before the barrier.
extern "C" __global__ void early_return(const float *in, float *out, int n) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    tile[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = tile[255 - threadIdx.x];
}

// Wrong: only the first half comes to the barrier.
extern "C" __global__ void half_of_them(float *x) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < 128) {
        tile[threadIdx.x] += tile[threadIdx.x + 128];
        __syncthreads();
        x[threadIdx.x] = tile[127 - threadIdx.x];
    }
}

// Wrong: each thread has its own number of turns.
extern "C" __global__ void own_turns(float *x, const int *turns) {
    __shared__ float tile[256];
    for (int turn = 0; turn < turns[threadIdx.x]; turn++) {
        tile[threadIdx.x] = x[threadIdx.x] + turn;
        __syncthreads();
        x[threadIdx.x] = tile[255 - threadIdx.x];
    }
}
