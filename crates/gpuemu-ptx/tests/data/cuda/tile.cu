// Every block of 256 numbers, in reverse.
extern "C" __global__ void reverse_blocks(float *out, const float *in) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 256 + threadIdx.x] = tile[255 - threadIdx.x];
}
