// Two kernels in one file.
extern "C" __global__ void scale(float *x, float factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        x[i] *= factor;
    }
}

extern "C" __global__ void shift(double *x, double offset, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        x[i] += offset;
    }
}
