// WRONG: the sum is written where some threads have yet to read the maximum.

#define THREADS 128

// Writes a softmax that is right whenever all warps happen to be equally fast.
extern "C" __global__ void softmax(float *out, const float *input, int rows, int columns) {
    __shared__ float parts[THREADS];
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        // 64 bits: row times columns passes 2^31 in tensors of everyday size.
        const float *from = input + (long long)row * columns;
        float *to = out + (long long)row * columns;

        // From -infinity. fmaxf would drop NaN, and a row with NaN has to be NaN.
        float largest = __int_as_float(0xff800000);
        for (int column = threadIdx.x; column < columns; column += THREADS) {
            float x = from[column];
            largest = x > largest || x != x ? x : largest;
        }
        parts[threadIdx.x] = largest;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                float x = parts[threadIdx.x + half];
                if (x > parts[threadIdx.x] || x != x) parts[threadIdx.x] = x;
            }
            __syncthreads();
        }
        largest = parts[0];

        float sum = 0.0f;
        for (int column = threadIdx.x; column < columns; column += THREADS) sum += expf(from[column] - largest);
        parts[threadIdx.x] = sum;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
            __syncthreads();
        }
        sum = parts[0];
        for (int column = threadIdx.x; column < columns; column += THREADS) to[column] = expf(from[column] - largest) / sum;
        // The next row begins when all threads have read the sum of this one.
        __syncthreads();
    }
}
