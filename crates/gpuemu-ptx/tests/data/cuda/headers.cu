// Needs the headers of CUDA, and one of its own folder.
#include <cuda_fp16.h>

#include "doubled.h"

extern "C" __global__ void twice(__half *x, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        x[i] = doubled(x[i]);
    }
}
