// A function that calls itself: the assembler cannot put it into the kernel.
__device__ __noinline__ int sum_below(int n, volatile int *p) {
    volatile int kept[8];
    kept[n & 7] = n;
    return n < 2 ? kept[p[0] & 7] : sum_below(n - 1, p) + sum_below(n - 2, p);
}

extern "C" __global__ void sums(int *x, int n) { x[0] = sum_below(n, x); }
