// The mean of every window of a row; padding counts as zeros. A thread has one window.

extern "C" __global__ void right(float *out, const float *input, int rows, int length, int windows, int size,
                                 int stride, int padding) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)rows * windows) return;
    const float *row = input + at / windows * length;
    const int first = (int)(at % windows) * stride - padding;
    float sum = 0.0f;
    for (int place = first; place < first + size; place += 1) {
        if (place >= 0 && place < length) sum += row[place];
    }
    out[at] = sum / size;
}

// WRONG: a window ends one element too late, and the last one of the tensor beyond its end.
extern "C" __global__ void wrong(float *out, const float *input, int rows, int length, int windows, int size,
                                 int stride, int padding) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)rows * windows) return;
    const float *row = input + at / windows * length;
    const int first = (int)(at % windows) * stride - padding;
    float sum = 0.0f;
    for (int place = first; place <= first + size; place += 1) {
        if (place >= 0 && place <= length) sum += row[place];
    }
    out[at] = sum / size;
}
